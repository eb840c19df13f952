"""The tables of README.md, docs/*.md and docs/notebook/*.md, made from bench/results/*.json.

common.py what all share; markov.py, spgemm.py, spmm.py, contract.py, gnn.py, reading.py the detailed tables of an
operation; calls.py the Python package; cases.py every case as one record; compact.py tables of a few cases and their
means; markers.py which table stands at which marker; add.py reports of gnn train joined to a result.
"""

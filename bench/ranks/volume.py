"""What P processes of mcl-gpu receive, keep and compute: reckoned by volume.c, beside real runs of a few processes.

usage: python3 -B bench/ranks/volume.py [--networks q20000,p20000,string=data/4932.protein.physical.links.v12.0.txt.gz]
                                        [--real 2,4,9] [--sizes 2,4,9,16,64,256,1024] [--output FILE]

Needs `make mpi generators build/bench/volume` and mpirun. Networks are those of bench/bench_mcl.sh, or NAME=FILE.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile

from side_by_side import BUILD, MPIRUN, ROOT, generate, told, whole
from tables.ranks import check_table, volume_table


def reckoned(path, sizes):
    command = [os.path.join(BUILD, "bench", "volume"), path, "2", sizes]
    return json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)


def real(path, size, folder):
    """Bytes that the processes of a run received, and the memory of the largest."""
    text = []
    command = [*MPIRUN, size, os.path.join(BUILD, "bin", "mcl-gpu"), path, "-I", "2", "--device", "cpu", "-te", "1",
               "-o", os.path.join(folder, "clusters")]
    taken = whole.sample(command, 7200, text)
    if taken is None:
        sys.exit(f"{path} failed with {size} processes")
    memory = re.search(r"at most ([\d,]+) MB of memory in one", text[0])
    return {**told(text[0]), "peak_bytes": int(memory[1].replace(",", "")) * 1000000}


def measure(network, options):
    name, _, path = network.partition("=")
    with tempfile.TemporaryDirectory() as folder:
        if not path:
            path = os.path.join(folder, name + ".abc")
            generate(name, path)
        return {"network": name, "real": {size: real(path, size, folder) for size in options.real.split(",") if size},
                **reckoned(path, options.sizes)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--networks", default="q20000,p20000,string=" + os.path.join(
        ROOT, "data", "4932.protein.physical.links.v12.0.txt.gz"))
    parser.add_argument("--real", default="2,4,9")
    parser.add_argument("--sizes", default="2,4,9,16,64,256,1024")
    parser.add_argument("--output", default=os.path.join(ROOT, "bench", "results", "volume-cpu.json"))
    options = parser.parse_args()
    results = {"bench": "volume", **whole.circumstances(), "networks": []}
    for network in options.networks.split(","):
        results["networks"].append(measure(network, options))
        with open(options.output, "w") as file:  # a line a network: thousands of numbers
            head = json.dumps({key: value for key, value in results.items() if key != "networks"})
            lines = ",\n".join(map(json.dumps, results["networks"]))
            file.write(f'{head[:-1]}, "networks": [\n{lines}\n]}}\n')
    print(check_table([results]), volume_table([results]), sep="\n\n")


if __name__ == "__main__":
    main()

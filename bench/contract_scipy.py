"""scipy beside sparse-bench contract, for bench/bench_contract.sh on the CPU.

    contract_scipy.py RESULT.json    times scipy's S·G·Sᵀ on the files that RESULT.json names, for its labels, and
                                     adds it there as a peer, with its rows sorted and as they come

scipy multiplies on one thread. S and its transpose lie in memory as CSR before the clock starts, as they do for the
other peers that multiply.
"""
import sys

import numpy as np
import scipy.sparse

import scipy_peer


def mix(z):
    z = (z + np.uint64(0x9e3779b97f4a7c15)) * np.uint64(0xbf58476d1ce4e5b9)
    z = (z ^ z >> np.uint64(27)) * np.uint64(0x94d049bb133111eb)
    return z ^ z >> np.uint64(31)


def labels_of(case, seed):
    """As sparse-bench draws them."""
    node = np.arange(case["nodes"], dtype=np.uint64)
    groups = np.uint64(case["groups"])
    drawn = mix(np.uint64(seed) ^ mix(node)) % groups if case["labels"] == "random" else \
        node * groups // np.uint64(case["nodes"])
    return drawn.astype(np.int32)


def memberships(case, seed):
    nodes = case["nodes"]
    places = labels_of(case, seed), np.arange(nodes, dtype=np.int32)
    return scipy.sparse.csr_array((np.ones(nodes, np.float32), places), shape=(case["groups"], nodes))


def sums_in_f64(s, graph):
    """The quotient, and the sums of magnitudes."""
    s, graph = s.astype(np.float64), graph.astype(np.float64)
    transposed = s.T.tocsr()
    exact = s @ graph @ transposed
    exact.sort_indices()
    if np.min(graph.data, initial=0) >= 0:
        return exact, exact
    bound = s @ abs(graph) @ transposed
    bound.sort_indices()
    return exact, bound


def error_of(quotient, exact, bound):
    """Relative to the sums of magnitudes; infinite where the patterns differ."""
    if not np.array_equal(quotient.indices, exact.indices) or not np.array_equal(quotient.indptr, exact.indptr):
        return float("inf")
    return float(np.max(np.abs(quotient.data - exact.data) / np.maximum(bound.data, 1e-300), initial=0))


def measure(case, graph, options, limit=3):
    s = memberships(case, options["seed"])
    transposed = s.T.tocsr()
    should = sums_in_f64(s, graph)

    def sorted_product():
        quotient = s @ graph @ transposed
        quotient.sort_indices()
        return quotient

    peers = []
    for title, ordered, product in (("scipy", True, sorted_product),
                                    ("scipy unsorted", False, lambda: s @ graph @ transposed)):
        taken, quotient = scipy_peer.samples(product, options["repeat"], limit)
        if not ordered:
            quotient.sort_indices()
        if quotient.nnz != case["nnz_quotient"]:
            sys.exit(f"{case['file']}: scipy's quotient has {quotient.nnz} entries, ours {case['nnz_quotient']}")
        peers.append(scipy_peer.peer(title, error_of(quotient, *should), taken, sorted=ordered))
    return peers


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    scipy_peer.add_peers(sys.argv[1], "edges", measure)

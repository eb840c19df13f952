"""What networkx asks a back end as it is imported. A module of its own, so that `import networkx` loads no library."""

_FUNCTIONS = {
    "adamic_adar_index": "",
    "average_clustering": "Edge weights are summed in another order than in networkx.",
    "clustering": "Edge weights are summed in another order than in networkx.",
    "common_neighbor_centrality": "Only for alpha=1, the numbers of common neighbours.",
    "generalized_degree": "",
    "jaccard_coefficient": "Only for graphs without loops.",
    "pagerank": "Sums run in another order than in networkx.",
    "resource_allocation_index": "",
    "square_clustering": "Only for undirected graphs. Loops are ignored, as in networkx from 3.5 on.",
    "transitivity": "",
    "triangles": "",
}


def get_info():
    """The answer to the entry point `networkx.backend_info`."""
    return {
        "backend_name": "spgraph",
        "project": "spgraph",
        "package": "spgraph",
        "short_summary": "Products of sparse matrices on all processors.",
        "functions": {name: {"additional_docs": note} for name, note in _FUNCTIONS.items()},
    }

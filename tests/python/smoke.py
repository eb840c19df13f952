"""The wheel in one Python, against scipy and known figures: test_interpreters.sh runs it in each."""

import os
import sys

import numpy as np
import scipy
import scipy.sparse as ss

import spgraph
from spgraph import cluster, graph

package = os.path.dirname(spgraph.__file__)
for folder, _, names in os.walk(package):  # torch and networkx are not here, but their modules must be of this Python
    for name in names:
        if name.endswith(".py"):
            with open(os.path.join(folder, name)) as file:
                compile(file.read(), name, "exec")

DATA = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "data")

rng = np.random.default_rng(1)
a, b = (ss.csr_array(ss.random(300, 300, 0.05, "csr", random_state=rng)) for _ in range(2))
for found, wanted in ((spgraph.matmul(a, b), a @ b), (spgraph.matmul(a, b, transpose_b=True), a @ b.T),
                      (spgraph.add(a, b), a + b), (spgraph.MatmulPlan(a, b)(2 * a.data), 2 * (a @ b))):
    assert type(found) is type(a)
    np.testing.assert_allclose(found.toarray(), wanted.toarray(), rtol=1e-12, atol=1e-14)
x = rng.random((300, 16))
np.testing.assert_allclose(spgraph.SpmmPlan(a, 16)(x), a @ x, rtol=1e-12)
try:
    spgraph.matmul(a, b[:7])
except ValueError as error:
    assert "300" in str(error)
else:
    raise AssertionError("a product of matrices that do not fit")

hu = graph.read(os.path.join(DATA, "Hu-2007.txt.gz"))
coarse = cluster.mcl(hu, 1.4)
assert len(coarse) == 86 and graph.contract(hu, coarse).shape == (86, 86)
print(f"Python {sys.version.split()[0]}, numpy {np.__version__}, scipy {scipy.__version__}")

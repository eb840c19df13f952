"""The tests of the Python package run on an installed wheel, away from the checkout."""

import os

import numpy as np
import pytest
import scipy.sparse as ss

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(ROOT, os.environ.get("BUILD", "build"))


@pytest.fixture
def rng():
    return np.random.default_rng(7)


@pytest.fixture
def make(rng):
    """make(rows, cols, density, dtype, kind, index): a random matrix; whole numbers are small and of both signs."""

    def made(rows, cols, density=0.1, dtype=np.float64, kind=ss.csr_array, index=np.int32):
        count = int(rows * cols * density)
        if np.dtype(dtype).kind in "biu":
            values = rng.integers(0, 2 if np.dtype(dtype).kind == "b" else 5, count).astype(dtype)
        else:
            values = rng.standard_normal(count).astype(dtype)
        row, col = rng.integers(0, rows, count), rng.integers(0, cols, count)
        csr = ss.coo_array((values, (row, col)), shape=(rows, cols)).tocsr()
        csr.sum_duplicates()
        csr = kind(csr)
        csr.indptr, csr.indices = csr.indptr.astype(index), csr.indices.astype(index)
        return csr

    return made


@pytest.fixture
def data():
    """The path of a file of the repository's data."""
    return lambda name: os.path.join(ROOT, "data", name)


@pytest.fixture
def mcl_gpu():
    path = os.path.join(BUILD, "bin", "mcl-gpu")
    if not os.path.exists(path):
        pytest.skip("mcl-gpu is not built")
    return path

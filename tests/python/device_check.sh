#!/bin/bash
# Runs the tests of spgraph.torch, and of tensors and matrices where they lie, on a machine with a GPU, with the library
# of the build (make CUDA=1) and without a wheel: torch, torch_geometric and pytest must be there; cupy and numba are
# tried if they are. PYTHON is the interpreter that has them [python3]. Arguments go to pytest. test_python.sh runs the
# other tests of the package.
#   tests/python/device_check.sh                       all of them, in one process
#   tests/python/device_check.sh -n 6                  in six processes that share the GPU (pytest-xdist), but for one test
#   tests/python/device_check.sh -k memory_is_flat     that test alone: it counts the free memory of the whole GPU, so it
#                                                      also fails if a process of somebody else allocates there
cd "$(dirname "$0")/../.." || exit 1
PYTHONPATH=$(scripts/lay-out-python) || exit 1
export PYTHONPATH PYTHONDONTWRITEBYTECODE=1 BUILD=${BUILD:-build}
"${PYTHON:-python3}" -m pytest -p no:cacheprovider -q -rs "$@" "$PWD"/tests/python/test_device.py \
    "$PWD"/tests/python/test_products.py::test_device_of_matrices_of_scipy \
    "$PWD"/tests/python/test_graph.py::test_devices \
    "$PWD"/tests/python/test_torch_cuda.py "$PWD"/tests/python/test_torch.py "$PWD"/tests/python/test_maxk.py \
    "$PWD"/tests/python/test_sampler.py \
    "$PWD"/tests/python/test_bulk_sampler.py

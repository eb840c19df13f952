"""Where torch computes here: the tests that ask for `device` run on the CPU and, if there is one, on a GPU."""

import pytest
import torch

DEVICES = ["cpu"] + (["cuda"] if torch.cuda.is_available() else [])


@pytest.fixture(params=DEVICES)
def device(request):
    return request.param

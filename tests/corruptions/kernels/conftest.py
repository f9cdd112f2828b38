"""Where the tests of the torch backend put their arrays."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"


PLACES = ["torch", *(["interpreter"] if INTERPRETED else []), pytest.param("cuda", marks=pytest.mark.gpu)]


@pytest.fixture(params=PLACES)
def put(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], Any]:
    """Return a conversion to tensors: for plain torch, Triton's interpreter (`make kernels`), or CUDA."""
    torch = pytest.importorskip("torch")
    if request.param == "interpreter":
        pytest.importorskip("triton")
    if request.param == "cuda" and (INTERPRETED or not torch.cuda.is_available()):
        pytest.skip("no CUDA device")
    monkeypatch.setenv("BEAUFORT_KERNELS", "0" if request.param == "torch" else "1")
    device = "cuda" if request.param == "cuda" else "cpu"
    return lambda array: torch.from_numpy(array).to(device)

"""Plain torch code, with divisions as CUDA makes them, against the CPU backend."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch: Any = pytest.importorskip("torch")
dispatch: Any = pytest.importorskip("torch.utils._python_dispatch")

from beaufort._core.arrays import on_host  # noqa: E402
from beaufort.corruptions import corruptions  # noqa: E402
from beaufort.corruptions.sequences import perturbations  # noqa: E402
from beaufort.testing._contracts import example_image  # noqa: E402


class AsOnCuda(dispatch.TorchDispatchMode):  # type: ignore[misc]
    """A quotient by a number of the host is a product with its inverse, which rounds twice."""

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if function is torch.ops.aten.div.Tensor and args[0].ndim and isinstance(args[1], float | int):
            dtype = torch.result_type(args[0], 1.0)
            return args[0] * (torch.ones((), dtype=dtype) / args[1])
        return function(*args, **(kwargs or {}))


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BEAUFORT_KERNELS", "0")


def test_it_rounds_twice() -> None:
    values = torch.arange(256).float()
    with AsOnCuda():
        assert not torch.equal(values / 255, values / torch.full((1,), 255.0))


@pytest.mark.parametrize("name", ["fog", "gaussian_blur", "glass_blur"])
def test_corruptions(name: str) -> None:
    images = np.stack([example_image(33, 32, variant=i) for i in range(2)])
    wanted = corruptions[name](images, 1, ids=range(2))
    with AsOnCuda():
        made = corruptions[name](torch.from_numpy(images).movedim(-1, 1), 1, ids=range(2), backend="torch")
    off = np.abs(made.movedim(1, -1).numpy().astype(int) - wanted)
    assert off.max() <= 1
    assert (off > 0).mean() <= 2e-4


@pytest.mark.parametrize("name", ["gaussian_blur", "rotate", "tilt", "zoom_blur"])
def test_frames_of_sequences(name: str) -> None:
    images = np.stack([example_image(40, 44, variant=i) for i in range(2)])
    with AsOnCuda():
        frames = perturbations[name].frames(torch.from_numpy(images), scale="cifar")
        there = [on_host(frame) for frame in frames]
    assert np.array_equal(there, list(perturbations[name].frames(images, scale="cifar")))

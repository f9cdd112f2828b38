"""Pessimal noise: the covariance of normal noise that hurts a network most, learned by gradient ascent.

As in the paper and its notebook: noise `z·A` on a tile of 14×14, scaled to the norm 10.63 / 4, repeated four
times. A starts as the identity and ascends Conv1's training loss by SGD with step 1000 in batches of 100, for
135 epochs; the step is a tenth from epoch 45 and a thousandth from epoch 90 on.
"""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from beaufort._core.catalog import fetch
from beaufort._core.errors import AssetError
from beaufort._core.files import write_bytes
from beaufort.studies.predictions import CorruptedImages, open_arrays
from beaufort.studies.study_file import StudySettings
from beaufort.studies.trained_arms import test_images, training_images
from beaufort.training import TrainingData, load_trained

_NORM = 10.63 / 4
_SIDE = 14
_STEP, _BATCH, _EPOCHS = 1000.0, 100, 135


def make_pessimal(folder: Path, deadline: float | None, *, settings: StudySettings, seed: int) -> bool:
    """Learn the matrix that hurts a Conv1 most, measure its effect on test digits, and write both."""
    model, _ = load_trained(folder / "models" / f"conv1-seed{seed}")
    digits = test_images(settings)
    device = str(digits.labels.device)
    model = model.to(device).eval().requires_grad_(False)
    epochs = 1 if settings.rehearse else _EPOCHS
    matrix = _ascend(model, training_images(settings), epochs, seed, device)
    clean = CorruptedImages({settings.clean: digits.images[settings.clean]}, digits.labels)
    about = {"seed": seed, "epochs": epochs, "accuracy": _accuracies(model, matrix, clean, seed)}
    buffer = io.BytesIO()
    np.savez(buffer, matrix=matrix, about=np.frombuffer(json.dumps(about).encode(), np.uint8))
    write_bytes(folder / "pessimal" / f"seed{seed}.npz", buffer.getvalue())
    return True


def _ascend(
    model: nn.Module, source: TrainingData, epochs: int, seed: int, device: str
) -> NDArray[np.float32]:
    random = torch.Generator(device).manual_seed(seed)
    matrix = torch.eye(_SIDE**2, device=device, requires_grad=True)
    block = source.read(np.arange(len(source)), device)
    images = block.images.float() / 255
    for epoch in range(epochs):
        step = _STEP * (1.0 if epoch < 44 else 0.1 if epoch < 89 else 0.001)
        order = torch.randperm(len(images), generator=random, device=device)
        for batch in order.split(_BATCH):
            normal = torch.randn((len(batch), _SIDE**2), generator=random, device=device)
            noisy = _add_noise(images[batch], normal @ matrix)
            loss = functional.cross_entropy(model(noisy), block.labels[batch])
            (slope,) = torch.autograd.grad(loss, matrix)
            with torch.no_grad():
                matrix += step * slope
    learned: NDArray[np.float32] = matrix.detach().cpu().numpy()
    return learned


def _add_noise(images: Tensor, noise: Tensor) -> Tensor:
    tile = noise * (_NORM / noise.norm(dim=1, keepdim=True))
    return (images + tile.view(-1, 1, _SIDE, _SIDE).repeat(1, 1, 2, 2)).clamp(0, 1)


def _accuracies(
    model: nn.Module, matrix: NDArray[np.float32], digits: CorruptedImages, seed: int
) -> dict[str, float]:
    """Return the accuracy on clean digits, under this and the published matrix, and under white noise."""
    device = digits.labels.device
    (pixels,) = digits.images.values()
    images = pixels.float() / 255
    matrices: dict[str, Any] = {"ours": matrix, "white": np.eye(_SIDE**2, dtype=np.float32)}
    try:
        values = np.fromfile(fetch("mnist-c/pessimal_noise_matrix.f32"), np.float32)
        matrices["published"] = values.reshape(_SIDE**2, _SIDE**2)
    except AssetError:
        pass  # the page lists only the others

    def accuracy(images: Tensor) -> float:
        correct = torch.cat([model(some).argmax(1) for some in images.split(1000)]) == digits.labels
        return float(correct.float().mean())

    random = torch.Generator(device).manual_seed(seed)
    with torch.no_grad():
        accuracies = {"clean": accuracy(images)}
        for name, one in matrices.items():
            normal = torch.randn((len(images), _SIDE**2), generator=random, device=device)
            accuracies[name] = accuracy(
                _add_noise(images, normal @ torch.from_numpy(np.array(one)).to(device))
            )
    return accuracies


def read_pessimal(path: Path) -> tuple[NDArray[np.float32], dict[str, Any]]:
    """Read a matrix and its accuracies."""
    with open_arrays(path, "a noise matrix") as file:
        return file["matrix"], json.loads(bytes(file["about"]))


def rank_one_fraction(matrix: NDArray[Any]) -> float:
    """Return the fraction of a matrix's energy in its leading direction; 1 is a fixed pattern, not noise.

    >>> rank_one_fraction(np.outer([1.0, 2.0], [3.0, 4.0]))
    1.0
    """
    values = np.linalg.svd(np.asarray(matrix, np.float64), compute_uv=False)
    return float(round(values[0] ** 2 / (values**2).sum(), 12))

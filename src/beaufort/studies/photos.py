"""The tasks on photos, one per condition, so that each photo is corrupted once for all networks and arms.

A task corrupts all photos, applies every image filter once, and evaluates every network. On a CPU the
predictions are those of `beaufort run --filter`; a GPU multiplies in TF32.
"""

from __future__ import annotations

import io
import time
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from beaufort._core.arrays import Bytes
from beaufort._core.errors import ImageFileError
from beaufort._core.files import write_bytes
from beaufort.corruptions import corruptions
from beaufort.data import PreparedImages, Problem, Step, load_dataset
from beaufort.data.labels import DatasetLabels, LabelSpace, ModelOutputs, class_names, find_label_space
from beaufort.models.filters import estimate_noise, load_filter
from beaufort.models.onnx_graph import GraphNetwork, Lines, open_graph, renormalizing_lines
from beaufort.models.torch import choose_device
from beaufort.studies.enhancements import condition_file, lines_file, network_files
from beaufort.studies.predictions import correct_only, open_arrays, write_predictions
from beaufort.studies.study_file import StudySettings, definition
from beaufort.training.stylization import Stylize

FILTERS: dict[str, dict[str, str]] = definition("imagenet-c-enhancements")["photo_filters"]
"""The arms of each pass and their image filters."""

SIDE = 224
GATE = 0.03
"""Noise above which the gated arms apply non-local means."""
RENORMALIZED = "clahe-renormalized"

Networks = dict[str, tuple[GraphNetwork, ...]]
"""Each network, and behind CLAHE the two that are renormalized for photos at even and at odd positions."""


def renormalize(folder: Path, deadline: float | None, *, settings: StudySettings, network: str) -> bool:
    """Re-estimate the statistics of a network behind CLAHE, on each half of the photos for the other."""
    device = choose_device(settings.device)
    pixels = photos_of(settings, SIDE).pixels
    graph = _graph(network_files(settings)[network], device)
    arrays: dict[str, NDArray[np.float32]] = {}
    for half in (0, 1):
        plain = as_tensor(pixels[1 - half :: 2], device)
        (filtered,) = load_filter(FILTERS["filters"]["clahe"]).apply_tensors(plain, (SIDE, SIDE))
        lines = renormalizing_lines(graph, plain.float() / 255, filtered.float() / 255)
        arrays |= {f"{half}/{name}": torch.stack(pair).cpu().numpy() for name, pair in lines.items()}
    content = io.BytesIO()
    np.savez(content, allow_pickle=False, **arrays)
    write_bytes(folder / lines_file(network), content.getvalue())
    return True


def predict_condition(
    folder: Path, deadline: float | None, *, settings: StudySettings, which: str, condition: str
) -> bool:
    """Evaluate all networks on all photos under a condition, behind every image filter of a pass."""
    start = time.monotonic()
    device = choose_device(settings.device)
    photos = photos_of(settings, 256 if which == "crops" else SIDE)
    networks: Networks = {}
    for name, path in network_files(settings).items():
        graph = _graph(path, device)
        networks[name] = (graph, *(_renormalized(folder, name, graph) if which == "filters" else ()))
    size = 125 if device.startswith("cuda") else 25
    parts: dict[str, list[Tensor]] = {}
    with torch.no_grad(), torch.backends.cudnn.flags(enabled=True, benchmark=True, allow_tf32=True):
        for first in range(0, len(photos.pixels), size):
            images = corrupted_photos(photos, condition, first, size, device)
            for key, predicted in _predict_batch(images, first, which, networks, photos.space):
                parts.setdefault(key, []).append(predicted.cpu())
    correct = _correct({key: torch.cat(some).numpy() for key, some in parts.items()}, photos.labels)
    facts = {"condition": condition, "device": device, "seconds": round(time.monotonic() - start, 1)}
    rows = np.stack(list(correct.values())).astype(np.uint8)
    write_predictions(folder / condition_file(which, condition), correct_only(correct, rows, facts))
    return True


@lru_cache(maxsize=8)
def _graph(path: Path, device: str) -> GraphNetwork:
    return open_graph(path, device)


def _renormalized(folder: Path, network: str, graph: GraphNetwork) -> tuple[GraphNetwork, GraphNetwork]:
    halves: tuple[Lines, Lines] = {}, {}
    with open_arrays(folder / lines_file(network), "the statistics of a network") as file:
        for key in file.files:
            half, _, name = key.partition("/")
            factor, offset = torch.from_numpy(file[key])
            halves[int(half)][name] = factor, offset
    return graph.scaled(halves[0]), graph.scaled(halves[1])


def _predict_batch(
    images: Tensor, first: int, which: str, networks: Networks, space: LabelSpace
) -> Iterator[tuple[str, Tensor]]:
    """Yield the predictions by `network/arm`, and the noise of each photo as `noise`."""

    def predict(graph: GraphNetwork) -> Tensor:
        probabilities = [graph(view.float() / 255).softmax(1) for view in views]
        classes: Tensor = space.apply(torch.stack(probabilities).mean(0)).argmax(1)
        return classes

    for arm, image_filter in FILTERS[which].items():
        views = load_filter(image_filter).apply_tensors(images, (SIDE, SIDE)) if image_filter else [images]
        for name, (graph, *renormalized) in networks.items():
            yield f"{name}/{arm}", predict(graph)
            if arm == "clahe":
                even = torch.arange(first, first + len(images), device=images.device) % 2 == 0
                halves = [predict(half) for half in renormalized]
                yield f"{name}/{RENORMALIZED}", torch.where(even, halves[0], halves[1])
    if which == "filters":
        pixels = np.ascontiguousarray(images.permute(0, 2, 3, 1).cpu().numpy())
        yield "noise", torch.from_numpy(estimate_noise(pixels))


def _correct(predicted: dict[str, NDArray[Any]], labels: NDArray[np.int64]) -> dict[str, NDArray[np.bool_]]:
    """Return which predictions are correct; a gated arm denoises only noisy photos."""
    noise = predicted.pop("noise", None)
    correct = {key: some == labels for key, some in predicted.items()}
    if noise is not None:
        for name in dict.fromkeys(key.partition("/")[0] for key in predicted):
            for arm in FILTERS["filters"]:
                if arm.startswith("nlm"):
                    denoised, plain = correct[f"{name}/{arm}"], correct[f"{name}/plain"]
                    correct[f"{name}/{arm}-above{GATE}"] = np.where(noise > GATE, denoised, plain)
    return correct


class Photos(NamedTuple):
    """Square photos of one side, with labels."""

    pixels: Bytes
    ids: tuple[str, ...]
    labels: NDArray[np.int64]
    space: LabelSpace


@lru_cache(maxsize=2)
def photos_of(settings: StudySettings, side: int) -> Photos:
    """Return the photos, prepared as by `beaufort run --suite imagenet-c`: short side 256, center crop."""
    dataset = load_dataset(settings.dataset("photos"), limit=settings.rehearsal.get("test"))
    prepared = PreparedImages(dataset, (Step.parse("resize 256"), Step.parse(f"crop {side}")), False)
    pixels = []
    for index in range(len(dataset)):
        image = prepared(index)
        if isinstance(image, Problem):
            raise ImageFileError(f"cannot read {image.id} of {settings.dataset('photos')}: {image.message}")
        pixels.append(image)
    names = DatasetLabels(dataset.name, dataset.classes, np.unique(dataset.labels), dataset.by_name)
    outputs = ModelOutputs("the networks", 1000, class_names("imagenet-1k"), "imagenet-1k")
    space = find_label_space(names, outputs)
    return Photos(np.stack(pixels), tuple(dataset.ids), np.asarray(dataset.labels), space)


def corrupted_photos(photos: Photos, condition: str, first: int, size: int, device: str) -> Tensor:
    """Return some of the photos under a condition, uint8 `(n, 3, h, w)`."""
    pixels, ids = photos.pixels[first : first + size], list(photos.ids[first : first + size])
    name, _, severity = condition.partition("@")
    if name == "stylize":
        return as_tensor(Stylize(severity).apply(pixels, ids=ids, seed=0), device)
    images = as_tensor(pixels, device)
    if condition == "clean":
        return images
    corrupted: Tensor = corruptions[name](images, int(severity), ids=ids, seed=0, scale="imagenet")
    return corrupted


def as_tensor(pixels: Bytes, device: str) -> Tensor:
    """Return images `(n, h, w, 3)` as `(n, 3, h, w)` on a device."""
    return torch.from_numpy(np.ascontiguousarray(pixels.transpose(0, 3, 1, 2))).to(device)

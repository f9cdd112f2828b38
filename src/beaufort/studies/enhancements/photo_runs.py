"""The tasks on photos: a condition at a time, so that each photo is corrupted once for all networks and arms.

A task corrupts all photos in one way, applies every image filter once, and evaluates every network. The
predictions are those of `beaufort run --filter`, on whatever device there is; a GPU rounds what it multiplies
to 10 bits.
"""

from __future__ import annotations

import io
import time
from collections.abc import Iterator, Mapping
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
from beaufort.models.torch import choose_device
from beaufort.studies.enhancements.enhancement_settings import (
    CLEAN,
    EnhancementSettings,
    PhotoPass,
    condition_file,
    lines_file,
)
from beaufort.studies.enhancements.onnx_graph import GraphNetwork, Lines, open_graph, renormalizing_lines
from beaufort.studies.predictions import correct_only, open_arrays, write_predictions
from beaufort.training.stylization import Stylize

NLM = {f"nlm-h{h:g}": f"nlm:h={h}" for h in (0.4, 0.8, 1.2)}
FILTERS: Mapping[PhotoPass, Mapping[str, str]] = {
    "fronts": {
        "plain": "",
        **NLM,
        "clahe": "clahe:clip=2,tiles=8",
        "equalize": "equalize",
        "stretch": "stretch",
    },
    "crops": {"middle-crop": "multi-crop:grid=1,mirror=no,side=256", "ten-crop": "ten-crop:side=256"},
    "styles": {"plain": ""},
}
"""The arms of each pass over the photos, and their front ends. Two more kinds of `fronts` follow from these:
non-local means behind a gate, and CLAHE with renormalized networks."""

SIDE = 224
SIDES: Mapping[PhotoPass, int] = {"fronts": 224, "crops": 256, "styles": 224}
"""Of the pictures that are corrupted, with the constants for 224 pixels."""


GATE = 0.03
"""Noise above which the gated arms of non-local means denoise."""
RENORMALIZED = "clahe-renormalized"
_CHUNK, _GPU_CHUNK = 25, 125

Networks = dict[str, tuple[GraphNetwork, ...]]
"""Each network, and behind it the two that are renormalized for photos at even and at odd places."""


def renormalize(folder: Path, deadline: float | None, *, settings: EnhancementSettings, network: str) -> bool:
    """Estimate anew the statistics of a network behind CLAHE: of each half of the photos, for the other."""
    device = choose_device(settings.device)
    pixels = photos_of(settings, SIDE).pixels
    graph = _graph(settings.network_files[network], device)
    arrays: dict[str, NDArray[np.float32]] = {}
    for half in (0, 1):
        plain = as_tensor(pixels[1 - half :: 2], device)
        (shown,) = load_filter(FILTERS["fronts"]["clahe"]).apply_tensors(plain, (SIDE, SIDE))
        lines = renormalizing_lines(graph, plain.float() / 255, shown.float() / 255)
        arrays |= {f"{half}/{name}": torch.stack(pair).cpu().numpy() for name, pair in lines.items()}
    content = io.BytesIO()
    np.savez(content, allow_pickle=False, **arrays)
    write_bytes(folder / lines_file(network), content.getvalue())
    return True


def predict_condition(
    folder: Path, deadline: float | None, *, settings: EnhancementSettings, which: PhotoPass, condition: str
) -> bool:
    """Ask all networks about all photos under a condition, behind every front end of a pass."""
    start = time.monotonic()
    device = choose_device(settings.device)
    photos = photos_of(settings, SIDES[which])
    networks = _networks(folder, settings, device, which)
    size = _GPU_CHUNK if device.startswith("cuda") else _CHUNK
    parts: dict[str, list[Tensor]] = {}
    with torch.no_grad(), torch.backends.cudnn.flags(enabled=True, benchmark=True, allow_tf32=True):
        for first in range(0, len(photos.pixels), size):
            images = corrupted_photos(photos, condition, first, size, device)
            for key, predicted in _predict_chunk(images, first, which, networks, photos.space):
                parts.setdefault(key, []).append(predicted.cpu())
    correct = _correct({key: torch.cat(some).numpy() for key, some in parts.items()}, photos.labels)
    facts = {"condition": condition, "device": device, "seconds": round(time.monotonic() - start, 1)}
    rows = np.stack(list(correct.values())).astype(np.uint8)
    write_predictions(folder / condition_file(which, condition), correct_only(correct, rows, facts))
    return True


@lru_cache(maxsize=8)
def _graph(path: Path, device: str) -> GraphNetwork:
    return open_graph(path, device)


def _networks(folder: Path, settings: EnhancementSettings, device: str, which: PhotoPass) -> Networks:
    found: Networks = {}
    for name, path in settings.network_files.items():
        graph = _graph(path, device)
        found[name] = (graph, *(_renormalized(folder, name, graph) if which == "fronts" else ()))
    return found


def _renormalized(folder: Path, network: str, graph: GraphNetwork) -> tuple[GraphNetwork, GraphNetwork]:
    halves: tuple[Lines, Lines] = {}, {}
    with open_arrays(folder / lines_file(network), "statistics of a network") as file:
        for key in file.files:
            half, _, name = key.partition("/")
            factor, offset = torch.from_numpy(file[key])
            halves[int(half)][name] = factor, offset
    return graph.scaled(halves[0]), graph.scaled(halves[1])


def _predict_chunk(
    images: Tensor, first: int, which: PhotoPass, networks: Networks, space: LabelSpace
) -> Iterator[tuple[str, Tensor]]:
    """The answers about some photos by `network/arm`, and how noisy the photos look as `noise`."""
    for arm, front in FILTERS[which].items():
        views = load_filter(front).apply_tensors(images, (SIDE, SIDE)) if front else [images]
        for name, (graph, *renormalized) in networks.items():
            yield f"{name}/{arm}", _predict(graph, views, space)
            if arm == "clahe":
                even = torch.arange(first, first + len(images), device=images.device) % 2 == 0
                each = [_predict(one, views, space) for one in renormalized]
                yield f"{name}/{RENORMALIZED}", torch.where(even, each[0], each[1])
    if which == "fronts":
        pixels = np.ascontiguousarray(images.permute(0, 2, 3, 1).cpu().numpy())
        yield "noise", torch.from_numpy(estimate_noise(pixels))


def _predict(graph: GraphNetwork, views: list[Tensor], space: LabelSpace) -> Tensor:
    """The class that a network answers for each picture, by the mean of its probabilities for the views."""
    probabilities = [graph(view.float() / 255).softmax(1) for view in views]
    found: Tensor = space.apply(torch.stack(probabilities).mean(0)).argmax(1)
    return found


def _correct(predicted: dict[str, NDArray[Any]], labels: NDArray[np.int64]) -> dict[str, NDArray[np.bool_]]:
    """Which answers are right; behind a gate, a noisy picture is denoised and any other is as it is."""
    noise = predicted.pop("noise", None)
    found = {key: some == labels for key, some in predicted.items()}
    if noise is not None:
        for name in dict.fromkeys(key.partition("/")[0] for key in predicted):
            for arm in NLM:
                denoised, plain = found[f"{name}/{arm}"], found[f"{name}/plain"]
                found[f"{name}/{arm}-above{GATE}"] = np.where(noise > GATE, denoised, plain)
    return found


class Photos(NamedTuple):
    """Squares of one side, and what is right about them."""

    pixels: Bytes
    ids: tuple[str, ...]
    labels: NDArray[np.int64]
    space: LabelSpace


@lru_cache(maxsize=2)
def photos_of(settings: EnhancementSettings, side: int) -> Photos:
    """The photos as `beaufort run --suite imagenet-c` prepares them: short side 256, the middle square."""
    dataset = load_dataset(settings.photos, limit=settings.limit)
    ready = PreparedImages(dataset, (Step.parse("resize 256"), Step.parse(f"crop {side}")), False)
    pixels = []
    for place in range(len(dataset)):
        picture = ready(place)
        if isinstance(picture, Problem):
            raise ImageFileError(f"{picture.id} of {settings.photos} cannot be read: {picture.message}")
        pixels.append(picture)
    names = DatasetLabels(dataset.name, dataset.classes, np.unique(dataset.labels), dataset.by_name)
    outputs = ModelOutputs("the networks", 1000, class_names("imagenet-1k"), "imagenet-1k")
    space = find_label_space(names, outputs)
    return Photos(np.stack(pixels), tuple(dataset.ids), np.asarray(dataset.labels), space)


def corrupted_photos(photos: Photos, condition: str, first: int, size: int, device: str) -> Tensor:
    """Some of the photos under a condition, uint8 `(n, 3, h, w)`."""
    pixels, ids = photos.pixels[first : first + size], list(photos.ids[first : first + size])
    name, _, severity = condition.partition("@")
    if name == "stylize":
        return as_tensor(Stylize(severity).apply(pixels, ids=ids, seed=0), device)
    images = as_tensor(pixels, device)
    if condition == CLEAN:
        return images
    made: Tensor = corruptions[name](images, int(severity), ids=ids, seed=0, scale="imagenet")
    return made


def as_tensor(pixels: Bytes, device: str) -> Tensor:
    """Images `(n, h, w, 3)` as `(n, 3, h, w)` on a device."""
    return torch.from_numpy(np.ascontiguousarray(pixels.transpose(0, 3, 1, 2))).to(device)

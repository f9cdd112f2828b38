"""The tasks on photos: a condition at a time, so that each photo is corrupted once for all networks and arms.

A task corrupts all photos in one way, applies every front end once, and asks every network. Answers are those
of `beaufort run --filter`, on whatever device there is; a GPU rounds what it multiplies to 10 bits.
"""

from __future__ import annotations

import io
import time
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from beaufort._core.files import write_bytes
from beaufort.data.labels import LabelSpace
from beaufort.models.filters import estimate_noise, load_filter
from beaufort.models.torch import choose_device
from beaufort.studies.answers import StudyAnswers, open_arrays, write_answers
from beaufort.studies.enhancements.graph import GraphNetwork, open_graph
from beaufort.studies.enhancements.photo_files import condition_file, lines_file
from beaufort.studies.enhancements.photos import (
    FRONTS,
    NLM,
    SIDE,
    SIDES,
    as_tensor,
    corrupted_photos,
    photos_of,
)
from beaufort.studies.enhancements.renormalized import Lines, renormalizing_lines
from beaufort.studies.enhancements.settings import EnhancementSettings, PhotoPass

GATE = 0.03
"""Noise above which the gated arms of non-local means denoise."""
RENORMALIZED = "clahe-renormalized"
_CHUNK, _GPU_CHUNK = 25, 125

Networks = dict[str, tuple[GraphNetwork, ...]]
"""Each network, and behind it the two that are renormalized for photos at even and at odd places."""


def renormalize(folder: Path, deadline: float | None, *, settings: Mapping[str, Any], network: str) -> bool:
    """Estimate anew the statistics of a network behind CLAHE: of each half of the photos, for the other."""
    chosen = EnhancementSettings(**settings)
    device = choose_device(chosen.device)
    pixels = photos_of(chosen, SIDE).pixels
    graph = _graph(chosen.network_files[network], device)
    arrays: dict[str, NDArray[np.float32]] = {}
    for half in (0, 1):
        plain = as_tensor(pixels[1 - half :: 2], device)
        (shown,) = load_filter(FRONTS["fronts"]["clahe"]).show_tensors(plain, (SIDE, SIDE))
        lines = renormalizing_lines(graph, plain.float() / 255, shown.float() / 255)
        arrays |= {f"{half}/{name}": torch.stack(pair).cpu().numpy() for name, pair in lines.items()}
    content = io.BytesIO()
    np.savez(content, allow_pickle=False, **arrays)
    write_bytes(folder / lines_file(network), content.getvalue())
    return True


def answer_condition(
    folder: Path, deadline: float | None, *, settings: Mapping[str, Any], which: PhotoPass, condition: str
) -> bool:
    """Ask all networks about all photos under a condition, behind every front end of a pass."""
    start = time.monotonic()
    chosen = EnhancementSettings(**settings)
    device = choose_device(chosen.device)
    photos = photos_of(chosen, SIDES[which])
    networks = _networks(folder, chosen, device, which)
    size = _GPU_CHUNK if device.startswith("cuda") else _CHUNK
    parts: dict[str, list[Tensor]] = {}
    with torch.no_grad(), torch.backends.cudnn.flags(enabled=True, benchmark=True, allow_tf32=True):
        for first in range(0, len(photos.pixels), size):
            images = corrupted_photos(photos, condition, first, size, device)
            for key, answers in _ask(images, first, which, networks, photos.space):
                parts.setdefault(key, []).append(answers.cpu())
    right = _right({key: torch.cat(some).numpy() for key, some in parts.items()}, photos.labels)
    facts = {"condition": condition, "device": device, "seconds": round(time.monotonic() - start, 1)}
    rows = np.stack(list(right.values())).astype(np.uint8)
    found = StudyAnswers(tuple(right), rows, np.ones(rows.shape[1], np.uint8), facts)
    write_answers(folder / condition_file(which, condition), found)
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


def _ask(
    images: Tensor, first: int, which: PhotoPass, networks: Networks, space: LabelSpace
) -> Iterator[tuple[str, Tensor]]:
    """The answers about some photos by `network/arm`, and how noisy the photos look as `noise`."""
    for arm, front in FRONTS[which].items():
        views = load_filter(front).show_tensors(images, (SIDE, SIDE)) if front else [images]
        for name, (graph, *renormalized) in networks.items():
            yield f"{name}/{arm}", _answers(graph, views, space)
            if arm == "clahe":
                even = torch.arange(first, first + len(images), device=images.device) % 2 == 0
                each = [_answers(one, views, space) for one in renormalized]
                yield f"{name}/{RENORMALIZED}", torch.where(even, each[0], each[1])
    if which == "fronts":
        pixels = np.ascontiguousarray(images.permute(0, 2, 3, 1).cpu().numpy())
        yield "noise", torch.from_numpy(estimate_noise(pixels))


def _answers(graph: GraphNetwork, views: list[Tensor], space: LabelSpace) -> Tensor:
    """The class that a network answers for each picture, by the mean of its probabilities for the views."""
    shares = [graph(view.float() / 255).softmax(1) for view in views]
    found: Tensor = space.apply(torch.stack(shares).mean(0)).argmax(1)
    return found


def _right(answers: dict[str, NDArray[Any]], labels: NDArray[np.int64]) -> dict[str, NDArray[np.bool_]]:
    """Which answers are right; behind a gate, a noisy picture is denoised and any other is as it is."""
    noise = answers.pop("noise", None)
    found = {key: some == labels for key, some in answers.items()}
    if noise is not None:
        for name in dict.fromkeys(key.partition("/")[0] for key in answers):
            for arm in NLM:
                denoised, plain = found[f"{name}/{arm}"], found[f"{name}/plain"]
                found[f"{name}/{arm}-above{GATE}"] = np.where(noise > GATE, denoised, plain)
    return found

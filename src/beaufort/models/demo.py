"""Two classifiers for a first try: one that comes with Beaufort, one that the catalog fetches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Unpack

from beaufort._core.catalog import fetch
from beaufort._core.registry import Registry
from beaufort.data.labels import class_names
from beaufort.models import _efficientnet_lite0, onnx
from beaufort.models.network import Network
from beaufort.models.options import PreprocessingOptions


@dataclass(frozen=True)
class _Demo:
    file: Callable[[], Path]
    classes: Callable[[], tuple[str, ...]]
    label_space: str
    changes: PreprocessingOptions
    """What the file cannot say about its preprocessing."""


demos: Registry[_Demo] = Registry("model for a first try")
"""The models by the word after `demo:`."""

demos.register(
    "digits",
    _Demo(
        lambda: Path(__file__).parent / "data" / "digits.onnx",
        lambda: class_names("mnist"),
        "mnist",
        {},
    ),
)
demos.register(
    "efficientnet-lite0",
    _Demo(
        lambda: fetch(_efficientnet_lite0.ASSET),
        lambda: class_names("imagenet-1k"),
        "imagenet-1k",
        {"resize": 256, "interpolation": "bicubic"},
    ),
)


def load(
    text: str,
    *,
    name: str | None = None,
    device: str = "auto",
    threads: int | None = None,
    max_batch: int | None = None,
    **changes: Unpack[PreprocessingOptions],
) -> Network:
    """A classifier for a first try.

    Args:
        text: `digits`, a small network for MNIST that comes with Beaufort (the recipe `digits` trains it);
            `efficientnet-lite0`, a small network for photos, fetched on the first use.
        name: what tables call it.
        device: as for ONNX files.
        threads: as for ONNX files.
        max_batch: the most images to run at once.
        **changes: what is to be different about the preprocessing.
    """
    demo = demos[text]
    wanted: PreprocessingOptions = {**demo.changes, **changes}
    network = onnx.load(
        str(demo.file()),
        name=text if name is None else name,
        classes=demo.classes(),
        label_space=demo.label_space,
        device=device,
        threads=threads,
        max_batch=max_batch,
        **wanted,
    )
    return replace(network, spec=replace(network.spec, source=f"demo:{text}"))

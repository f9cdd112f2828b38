"""Two classifiers for a first try: one that comes with Beaufort, one that the catalog fetches."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Unpack

from beaufort._core.catalog import fetch
from beaufort._core.validation import validate_choice
from beaufort.data.labels import class_names
from beaufort.models import _efficientnet_lite0, onnx
from beaufort.models.network import Network
from beaufort.models.options import PreprocessingOptions

_LABEL_SPACES = {"digits": "mnist", "efficientnet-lite0": "imagenet-1k"}


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
        name: as for all models.
        device: as for ONNX files.
        threads: as for ONNX files.
        max_batch: the most images to run at once.
        **changes: what is to be different about the preprocessing.
    """
    space = _LABEL_SPACES[validate_choice("demo model", text, _LABEL_SPACES)]
    file = Path(__file__).parent / "data" / "digits.onnx"
    if text == "efficientnet-lite0":
        file = fetch(_efficientnet_lite0.ASSET)
        changes = {"resize": 256, "interpolation": "bicubic", **changes}
    network = onnx.load(
        str(file),
        name=text if name is None else name,
        classes=class_names(space),
        label_space=space,
        device=device,
        threads=threads,
        max_batch=max_batch,
        **changes,
    )
    return replace(network, spec=replace(network.spec, source=f"demo:{text}"))

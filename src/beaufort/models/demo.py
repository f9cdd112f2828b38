"""Example models: one included in Beaufort, one downloaded from the catalog."""

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
    """Return an example model.

    Args:
        text: `digits`, a small network for MNIST, trained by the recipe `digits`; or `efficientnet-lite0`, a
            small network for photos, downloaded on first use.
        name: name in tables and stores.
        device: as for ONNX files.
        threads: as for ONNX files.
        max_batch: largest number of images to run at once.
        **changes: changes to the preprocessing.
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

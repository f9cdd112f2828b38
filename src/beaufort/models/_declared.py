"""What model files declare about their input: the preprocessing for it, and the batch size."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from beaufort._core.errors import OptionError
from beaufort.models.network import Network
from beaufort.models.options import DeviceOptions, make_spec
from beaufort.models.preprocessing import Preprocessing
from beaufort.models.spec import ModelError, ModelSpec


class DeclaredInput(NamedTuple):
    """The preprocessing for the input of a model file."""

    preprocessing: Preprocessing
    batch: int | None
    """The only batch size that it accepts; None if any."""


def declared_input(file: Path, shape: Sequence[Any], dtype: str) -> DeclaredInput:
    """Return the preprocessing for images `(n, c, h, w)` or `(n, h, w, c)`, in [0, 1] unless of uint8.

    Images of another size are resized by their short side if the input is square, else stretched.

    Args:
        file: the file, for messages.
        shape: the sides; values that are not positive integers are free.
        dtype: `float32`, `float16` or `uint8`.
    """
    sides = [side if isinstance(side, int) and side > 0 else None for side in shape]
    last = len(sides) == 4 and sides[3] in (1, 3) and sides[1] not in (1, 3)
    channels = (sides[3] if last else sides[1]) if len(sides) == 4 else 0
    if channels not in (None, 1, 3):
        raise ModelError(f"the input of {file} must have four axes and 1 or 3 channels, got {list(shape)}")
    height, width = sides[1:3] if last else sides[2:4]
    size = None if height is None or width is None else (height, width)
    preprocessing = Preprocessing(
        size=size,
        resize=None if size is None else size[0] if size[0] == size[1] else size,
        channels=channels or 3,
        value_range="0..255" if dtype == "uint8" else "0..1",
        layout="NHWC" if last else "NCHW",
        dtype=dtype,
    )
    return DeclaredInput(preprocessing, sides[0])


def file_network(
    source: str,
    file: Path,
    declared: DeclaredInput,
    run: Callable[[NDArray[Any]], Any],
    options: DeviceOptions,
    *,
    weights: str,
    device: str,
    details: Mapping[str, Any] | None = None,
    complete: Callable[[ModelSpec], ModelSpec] = lambda spec: spec,
) -> Network:
    """Return the network of a file.

    Args:
        source: kind and path, as for `load_model`.
        file: the file.
        declared: its input.
        run: function from a batch of the input to logits; a smaller batch than a fixed one is padded.
        options: options of the model.
        weights: identity of the parameters.
        device: where it runs.
        details: other values that change predictions.
        complete: adds what else the file declares to a spec.
    """
    base = declared.preprocessing
    spec = make_spec(
        options,
        default_name=file.stem,
        source=source,
        base=base,
        weights=weights,
        details=details,
    )
    changed = spec.preprocessing
    if base.size not in (None, changed.size) and changed.layout == base.layout:
        raise OptionError(f"input_size must be {base.size}, which is fixed in {file}, got {changed.size}")

    def forward(batch: NDArray[Any]) -> NDArray[Any]:
        count = len(batch)
        if declared.batch and count < declared.batch:
            padding = np.zeros((declared.batch - count, *batch.shape[1:]), batch.dtype)
            batch = np.concatenate([batch, padding])
        logits = np.asarray(run(batch))[:count]
        return logits.reshape(count, -1) if set(logits.shape[2:]) == {1} else logits

    limits = [limit for limit in (declared.batch, options.get("max_batch")) if limit is not None]
    return Network(complete(spec), forward, device, min(limits, default=None)).with_class_count()

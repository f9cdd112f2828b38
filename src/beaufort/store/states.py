"""States of models that adapt, beside the predictions up to an image: safetensors files, never pickles.

```
STORE/predictions/model=NAME/condition=NAME/FINGERPRINT-STOP.safetensors
```

A state is written before the predictions up to STOP, and removed after those of the next piece, so that an
interrupted stream continues with identical predictions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from beaufort._core.optional import require
from beaufort.store.cells import Cell
from beaufort.store.files import PREDICTIONS, FileStore
from beaufort.store.protocol import Store

State = Mapping[str, NDArray[Any]]


def write_state(store: Store, cell: Cell, stop: int, state: State) -> None:
    """Store the state of a model after the images below `stop`; a store of another kind keeps none."""
    if isinstance(store, FileStore):
        save = _library().save
        arrays = {name: np.array(value, order="C") for name, value in state.items()}
        store.disk.write(_path(cell, stop), save(arrays, metadata={"fingerprint": cell.fingerprint}))


def read_state(store: Store, cell: Cell, stop: int) -> dict[str, NDArray[Any]] | None:
    """Return a stored state; None if it is missing or damaged."""
    if not isinstance(store, FileStore):
        return None
    try:
        content = store.disk.read(_path(cell, stop))
    except FileNotFoundError:
        return None
    try:
        found: dict[str, NDArray[Any]] = _library().load(content)
    except Exception:  # the error class of safetensors is not public in all versions
        return None
    return found


def remove_state(store: Store, cell: Cell, stop: int) -> None:
    """Remove a stored state if there is one."""
    if isinstance(store, FileStore):
        store.disk.remove(_path(cell, stop))


def _path(cell: Cell, stop: int) -> str:
    return f"{PREDICTIONS}/{cell.folder}/{cell.fingerprint}-{stop}.safetensors"


def _library() -> Any:
    return require("safetensors.numpy", "torch", what="streams of models that adapt")

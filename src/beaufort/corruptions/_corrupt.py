"""One image, one corruption: the call that most people need."""

from __future__ import annotations

from typing import Any

import numpy as np

from beaufort._core.errors import OptionError
from beaufort.corruptions._chain import Chain, is_chain
from beaufort.corruptions._corruption import Severity, corruptions
from beaufort.corruptions._names import SUBSETS
from beaufort.corruptions.rng import Id


def corrupt(
    image: Any,
    severity: Severity | None = None,
    corruption_name: str | None = None,
    corruption_number: int = -1,
    *,
    scale: str = "auto",
    seed: int = 0,
    image_id: Id | None = None,
    stream: str = "keyed",
) -> Any:
    """Corrupt one image.

    Args:
        image: a uint8 NumPy array `(h, w)` or `(h, w, 1|3|4)`, or a PIL image.
        severity: 1 to 5, also 2.5. None is 1, or at scale `mnist` the published severity.
        corruption_name: one of `get_corruption_names("all")` or `get_corruption_names("mnist-c-all")`, or of
            your own; or one or a chain with severities of its own, `fog@2.5`, `fog@2+jpeg_compression@3`.
        corruption_number: instead of the name, its place (0 to 18) in `get_corruption_names("all")`.
        scale: which published constants to use; see `Corruption.__call__`.
        seed: any integer.
        image_id: what identifies the image, a number or a text. Without, its own pixels do.
        stream: `keyed` or `reference`; see `Corruption.__call__`.

    >>> import numpy as np
    >>> photo = np.full((32, 32, 3), 100, np.uint8)
    >>> corrupt(photo, 2, "brightness")[0, 0]
    array([125, 125, 125], dtype=uint8)
    """
    name = corruption_name if corruption_name is not None else _by_number(corruption_number)
    ids = None if image_id is None else [image_id]
    if isinstance(name, str) and ("@" in name or "+" in name):
        if severity is not None:
            whose = "a chain" if is_chain(name) else f"'{name}'"
            raise OptionError(f"severity must be None for {whose}, which has its own, got {severity!r}")
        return Chain.parse(name)(image, ids=ids, seed=seed, scale=scale, stream=stream)
    return corruptions[name](image, severity, ids=ids, seed=seed, scale=scale, stream=stream)


def _by_number(number: int) -> str:
    names = SUBSETS["all"]
    whole = isinstance(number, int | np.integer) and not isinstance(number, bool)
    if not whole or number not in range(len(names)):
        raise OptionError(
            f"corruption_number must be an integer from 0 ({names[0]}) to {len(names) - 1} ({names[-1]}), "
            f"got {number!r}; or give a name as corruption_name"
        )
    return names[number]

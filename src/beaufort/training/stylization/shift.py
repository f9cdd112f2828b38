"""The shift `stylize`: the style of an image depends on its id, the strength on the severity."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from beaufort._core.arrays import Bytes, checked_batch
from beaufort._core.errors import BeaufortError, OptionError
from beaufort.corruptions.rng import Id, id_words, validate_ids

VARIABLE = "BEAUFORT_STYLIZER"
_OWN = Path(__file__).parent / "data"
"""The network in the package, trained with the recipe `stylizer`."""


class StylizerError(BeaufortError, OSError):
    """A stylization network with missing or invalid files."""


class StyleNetworkProtocol(Protocol):
    """A stylization network: our own, or AdaIN."""

    @property
    def styles(self) -> int:
        """Number of styles."""

    @property
    def facts(self) -> dict[str, Any]:
        """What determines the pixels: the kind, and digests of weights and style images."""

    @property
    def strengths(self) -> tuple[float, ...]:
        """Fraction of the style at severities 0 to 5."""

    @property
    def batch(self) -> int:
        """Batch size."""

    def paint(self, images: Bytes, styles: Sequence[int], strength: float) -> Bytes:
        """Return stylized images, each in its own style."""


class Stylize:
    """The `ImageShift` `stylize@3`; `BEAUFORT_STYLIZER` names the directory of another network.

    At severity 0, the network paints without a style, which may reduce accuracy too.
    """

    def __init__(self, level: str) -> None:
        if level not in ("0", "1", "2", "3", "4", "5"):
            raise OptionError(f"severity of stylize must be an integer from 0 to 5, got {level!r:.60}")
        self.severity = int(level)

    @property
    def features(self) -> str:
        """The network whose features were used in training; empty if unknown."""
        return str(_network(_folder()).facts.get("features", ""))

    def facts(self, *, seed: int) -> dict[str, Any]:
        """Return the strength, the seed and the facts about the network."""
        network = _network(_folder())
        return {"version": 1, "strength": network.strengths[self.severity], "seed": seed, **network.facts}

    def apply(self, images: Bytes, *, ids: Sequence[Id], seed: int) -> Bytes:
        """Return stylized images; grayscale images are painted in color and converted back."""
        images = checked_batch(images, "images are stylized before values are scaled")
        validate_ids(ids, len(images))
        network = _network(_folder())
        words = id_words(ids).tolist()
        styles = [_style_of(word, seed, network.styles) for word in words]
        color = images if images.shape[-1] == 3 else np.repeat(images, 3, axis=-1)
        strength, size = network.strengths[self.severity], network.batch
        starts = range(0, len(color), size)
        parts = [network.paint(color[i : i + size], styles[i : i + size], strength) for i in starts]
        painted = np.concatenate(parts) if parts else color.copy()
        if images.shape[-1] == 3:
            return painted
        return painted.mean(axis=-1, keepdims=True).round().astype(np.uint8)


def _style_of(word: int, seed: int, count: int) -> int:
    """Return the style of an image, the same at all severities."""
    digest = hashlib.blake2b(f"beaufort|style|{seed}|{word}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") % count


def _folder() -> str:
    return os.environ.get(VARIABLE) or str(_OWN)


@lru_cache(maxsize=2)
def _network(folder: str) -> StyleNetworkProtocol:
    place = Path(folder)
    if (place / "decoder.pth").is_file():
        from beaufort.training.stylization.adain import open_adain

        return open_adain(place)
    if (place / "training.json").is_file():
        from beaufort.training.stylization.network import open_stylizer

        return open_stylizer(place)
    raise StylizerError(
        f"{VARIABLE} must be a directory with training.json (from `beaufort train stylizer`) or with AdaIN "
        f"(vgg_normalised.pth, decoder.pth, styles/), got {folder}"
    )

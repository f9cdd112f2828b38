"""Stylization as a shift of images: the style of an image goes by its id, the strength by the severity."""

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

_MOST = 5
"""Severities go from 0, the network that paints without any style, which may cost accuracy, too, to this."""

VARIABLE = "BEAUFORT_STYLIZER"
_OWN = Path(__file__).parent / "data"
"""The network that comes with the package, made by the recipe `stylizer`."""


class StylizerError(BeaufortError, OSError):
    """A network that stylizes is missing, or its files are not what they must be."""


class StyleNetworkProtocol(Protocol):
    """What paints: a network of our own, or AdaIN with the weights of a user."""

    @property
    def styles(self) -> int:
        """How many styles there are."""

    @property
    def facts(self) -> dict[str, Any]:
        """What decides the pixels: the kind and the digests of weights and of style pictures."""

    @property
    def strengths(self) -> tuple[float, ...]:
        """How much of a style there is at severities 0 to 5, of 1; 0 is the network without any."""

    @property
    def batch(self) -> int:
        """How many images to paint at once."""

    def paint(self, images: Bytes, styles: Sequence[int], strength: float) -> Bytes:
        """Return stylized images, each in a style of its own."""


class Stylize:
    """`stylize@3`: an `ImageShift`; `BEAUFORT_STYLIZER` names the folder of another network than ours."""

    def __init__(self, level: str) -> None:
        if level not in map(str, range(_MOST + 1)):
            raise OptionError(f"severity of stylize must be an integer from 0 to {_MOST}, got {level!r:.60}")
        self.severity = int(level)

    @property
    def features(self) -> str:
        """The network whose features taught it to paint; empty if that is not known."""
        return str(_network(_folder()).facts.get("features", ""))

    def facts(self, *, seed: int) -> dict[str, Any]:
        """The strength, the seed of styles and what the network is."""
        network = _network(_folder())
        return {"version": 1, "strength": network.strengths[self.severity], "seed": seed, **network.facts}

    def apply(self, images: Bytes, *, ids: Sequence[Id], seed: int) -> Bytes:
        """The images in their styles; grey ones are painted in color and become grey again."""
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
    """The style of an image, the same at all severities."""
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
        f"{VARIABLE} must name a folder with training.json, as `beaufort train stylizer` makes it, or with "
        f"vgg_normalised.pth, decoder.pth and a folder styles of pictures (AdaIN), got {folder}"
    )

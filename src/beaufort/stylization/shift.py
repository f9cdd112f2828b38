"""Stylization as a shift of images: the style of an image goes by its id, the strength by the severity."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from beaufort.arrays import Bytes
from beaufort.errors import BeaufortError, OptionError
from beaufort.rng import Id, id_words
from beaufort.shifts import register_shift

__all__ = ["STRENGTHS", "StyleNetworkProtocol", "Stylize", "StylizerError"]

STRENGTHS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
"""How much of the style there is at severities 0 to 5; 0 is the network alone, which costs accuracy, too."""

VARIABLE = "BEAUFORT_STYLIZER"


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

    def paint(self, images: Bytes, styles: Sequence[int], strength: float) -> Bytes:
        """Stylized images, each in a style of its own."""


@register_shift("stylize")
class Stylize:
    """`stylize@3`: an `ImageShift`; `BEAUFORT_STYLIZER` names the folder of the network."""

    def __init__(self, level: str) -> None:
        if level not in map(str, range(len(STRENGTHS))):
            raise OptionError(f"severity of stylize must be an integer from 0 to 5, got {level!r:.60}")
        self.severity = int(level)

    @property
    def features(self) -> str:
        """The network whose features taught it to paint; empty if that is not known."""
        return str(_network(_folder()).facts.get("features", ""))

    def facts(self, *, seed: int) -> dict[str, Any]:
        """The strength, the seed of styles and what the network is."""
        known = _network(_folder()).facts
        return {"version": 1, "strength": STRENGTHS[self.severity], "seed": seed, **known}

    def apply(self, images: Bytes, *, ids: Sequence[Id], seed: int) -> Bytes:
        """The images in their styles; grey ones are painted in color and become grey again."""
        network = _network(_folder())
        words = id_words(ids).tolist()
        styles = [_style_of(word, seed, network.styles) for word in words]
        color = images if images.shape[-1] == 3 else np.repeat(images, 3, axis=-1)
        painted = network.paint(color, styles, STRENGTHS[self.severity])
        return (
            painted
            if images.shape[-1] == 3
            else painted.mean(axis=-1, keepdims=True).round().astype(np.uint8)
        )


def _style_of(word: int, seed: int, count: int) -> int:
    """The style of an image, the same at all severities."""
    digest = hashlib.blake2b(f"beaufort|style|{seed}|{word}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") % count


def _folder() -> str:
    named = os.environ.get(VARIABLE, "")
    if not named:
        raise StylizerError(
            f"stylize needs a network: name its folder in {VARIABLE}, either one that `beaufort train "
            "stylizer` made, or one with vgg_normalised.pth, decoder.pth and a folder styles of pictures"
        )
    return named


@lru_cache(maxsize=2)
def _network(folder: str) -> StyleNetworkProtocol:
    place = Path(folder)
    if (place / "decoder.pth").is_file():
        from beaufort.stylization.adain import open_adain

        return open_adain(place)
    if (place / "training.json").is_file():
        from beaufort.stylization.network import open_stylizer

        return open_stylizer(place)
    raise StylizerError(
        f"{folder} must have training.json, as `beaufort train stylizer` makes it, or decoder.pth of AdaIN"
    )

"""Chains of corruptions: `fog@2+jpeg_compression@3` is fog, then JPEG compression of the foggy image."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from beaufort._core.arrays import as_batch
from beaufort._core.errors import OptionError, UnknownNameError
from beaufort.corruptions._corruption import Severity, corruptions, parse_severity
from beaufort.corruptions._kernels import ops_of
from beaufort.corruptions._recipe import Choice
from beaufort.corruptions._sizes import SCALES
from beaufort.corruptions.rng import Id, validate_seed

_LONGEST = 120
"""Maximum length of a chain's name, which is also used for folders."""


class Link(NamedTuple):
    """One corruption of a chain."""

    name: str
    severity: Severity | None = None
    """None for the published severity at the scale `mnist`."""

    def __str__(self) -> str:
        return self.name if self.severity is None else f"{self.name}@{self.severity}"

    def choose(self, text: str, *, scale: str, side: int, channels: int) -> Choice:
        """Return what `Corruption.choose` does; raise an error if a required severity is missing.

        Args:
            text: the name of the chain, for the message.
            scale: as for a call.
            side: short side of the images in pixels.
            channels: 1 for gray images.
        """
        choice = corruptions[self.name].choose(self.severity, scale=scale, side=side, channels=channels)
        if self.severity is None and choice.scale != "mnist" and len(choice.recipe.levels) > 1:
            raise OptionError(
                f"{self.name} requires a severity at the scale {choice.scale!r}, as in '{self.name}@3', got "
                f"{text!r}; only the scale 'mnist' has a published severity"
            )
        return choice


@dataclass(frozen=True)
class Chain:
    """Corruptions that are applied one after the other; `parse` is the inverse of `str`.

    Each link draws random numbers of its own, even if the same corruption occurs twice. The first link gives
    the same result as the corruption alone.

    >>> chain = Chain.parse("fog@2.5+jpeg_compression@3")
    >>> str(chain), chain.links[1].severity
    ('fog@2.5+jpeg_compression@3', 3)
    """

    links: tuple[Link, ...]

    @classmethod
    def parse(cls, text: str) -> Chain:
        """Parse a chain; a single corruption is a chain of one link."""
        if not isinstance(text, str) or len(text) > _LONGEST:
            raise OptionError(f"a chain must be a string of at most {_LONGEST} characters, got {text!r:.60}")
        return cls(tuple(_link(part, text) for part in text.split("+")))

    @classmethod
    def of(cls, name: str, severity: Severity | None = None) -> Chain:
        """Return one corruption at a severity, or parse a name with severities of its own."""
        return cls.parse(name) if severity is None else cls((Link(name, severity),))

    def __str__(self) -> str:
        return "+".join(map(str, self.links))

    @property
    def tensors(self) -> bool:
        """Whether all links run on torch tensors on their device."""
        return all(corruptions[link.name].tensors for link in self.links)

    def check(self, scale: str, *, side: int | None = None, channels: int = 3) -> None:
        """Raise an error unless each link of several has a severity, or one was published at the scale.

        Args:
            scale: as for a call.
            side: short side of the images in pixels; without it, scale `auto` is not checked.
            channels: 1 for gray images.
        """
        without = [link for link in self.links if link.severity is None and len(self.links) > 1]
        for link in without if side or scale != "auto" else ():
            link.choose(str(self), scale=scale, side=side or SCALES.get(scale, 224), channels=channels)

    def __call__(
        self,
        images: Any,
        *,
        ids: Sequence[Id] | None = None,
        seed: int = 0,
        scale: str = "auto",
        stream: str = "keyed",
        jobs: int = 1,
        backend: str = "auto",
    ) -> Any:
        """Corrupt one image or a batch by each link in turn.

        Args:
            images: as for a `Corruption`.
            ids: one id per image. By default its pixels before the first link identify it.
            seed: any integer; the seeds of later links are derived from it and their position.
            scale: as for a `Corruption`.
            stream: as for a `Corruption`.
            jobs: as for a `Corruption`.
            backend: as for a `Corruption`.
        """
        seed = validate_seed(seed)
        if len(self.links) > 1:
            color = as_batch(images).color
            height, width, channels = color.shape[1:]
            self.check(scale, side=min(height, width), channels=channels)
            ids = ops_of(color).content_ids(color).tolist() if ids is None else ids
        for place, (name, severity) in enumerate(self.links):
            images = corruptions[name](
                images,
                severity,
                ids=ids,
                seed=_seed_of(seed, place, 4 if stream == "reference" else 8),
                scale=scale,
                stream=stream,
                jobs=jobs,
                backend=backend,
            )
        return images


def is_chain(name: object) -> bool:
    """Whether a name means a chain of several corruptions.

    >>> is_chain("fog@2+jpeg_compression@3"), is_chain("fog@2")
    (True, False)
    """
    return isinstance(name, str) and "+" in name


def _link(text: str, chain: str) -> Link:
    name, at, severity = text.partition("@")
    if name not in corruptions:
        raise UnknownNameError(f"{corruptions.unknown_message(name)} (in the chain {chain!r})")
    try:
        return Link(name, parse_severity(severity) if at else None)
    except OptionError as error:
        raise OptionError(f"{error} (in the chain {chain!r})") from None


@lru_cache(maxsize=1024)
def _seed_of(seed: int, place: int, size: int) -> int:
    """Return the seed of a link by its position, with `size` bytes; the first link has the chain's seed."""
    if place == 0:
        return seed
    digest = hashlib.blake2b(f"beaufort|link|{seed}|{place}".encode(), digest_size=8).digest()
    return int.from_bytes(digest[:size], "little")

"""Corruptions one after the other: `fog@2+jpeg_compression@3` is fog, and then a JPEG file of the fog."""

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

ONE_PUBLISHED = "mnist"
"""The scale at which every corruption was published at one severity."""

_LONGEST = 120
"""Characters of a chain's name, which names folders, too."""


class Link(NamedTuple):
    """One corruption of a chain."""

    name: str
    severity: Severity | None = None
    """None for the one that was published, at the scale `mnist`."""

    def __str__(self) -> str:
        return self.name if self.severity is None else f"{self.name}@{self.severity}"

    def choose(self, text: str, *, scale: str, side: int, channels: int) -> Choice:
        """What `Corruption.choose` gives; an error if which of several severities is meant stays open.

        Args:
            text: what the link is part of, for the message.
            scale: as for a call.
            side: the short side of the images in pixels.
            channels: 1 for grey images.
        """
        choice = corruptions[self.name].choose(self.severity, scale=scale, side=side, channels=channels)
        if self.severity is None and choice.scale != ONE_PUBLISHED and len(choice.recipe.levels) > 1:
            raise OptionError(
                f"{self.name} must have a severity at the scale {choice.scale!r}, as '{self.name}@3', got "
                f"'{text}' without one; the scale {ONE_PUBLISHED!r} has one that was published"
            )
        return choice


@dataclass(frozen=True)
class Chain:
    """Corruptions that are done one after the other; its text reads back as what it was.

    Each link draws random numbers of its own, also where the same corruption comes twice. The first link does
    what the corruption does alone.

    >>> chain = Chain.parse("fog@2.5+jpeg_compression@3")
    >>> str(chain), chain.links[1].severity
    ('fog@2.5+jpeg_compression@3', 3)
    """

    links: tuple[Link, ...]

    @classmethod
    def parse(cls, text: str) -> Chain:
        """The chain that a text stands for; a single corruption is a chain of one link."""
        if not isinstance(text, str) or len(text) > _LONGEST:
            raise OptionError(f"a chain must be a text of at most {_LONGEST} characters, got {text!r:.60}")
        return cls(tuple(_link(part, text) for part in text.split("+")))

    @classmethod
    def of(cls, name: str, severity: Severity | None = None) -> Chain:
        """The corruption of a name at a severity, or what the name says with severities of its own."""
        return cls.parse(name) if severity is None else cls((Link(name, severity),))

    def __str__(self) -> str:
        return "+".join(map(str, self.links))

    @property
    def tensors(self) -> bool:
        """Whether all of it works on torch tensors where they are."""
        return all(corruptions[link.name].tensors for link in self.links)

    def check(self, scale: str, *, side: int | None = None, channels: int = 3) -> None:
        """Raise an error unless each link of several has a severity, or one was published at the scale.

        Args:
            scale: as for a call.
            side: the short side of the images in pixels; without it, `auto` may yet be a scale with one.
            channels: 1 for grey images.
        """
        unsaid = [link for link in self.links if link.severity is None and len(self.links) > 1]
        for link in unsaid if side or scale != "auto" else ():
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
            ids: one identity an image. Without, its pixels before the first link identify it.
            seed: any integer; the links after the first have seeds that follow from it and their place.
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
    """Whether a text is meant as a chain of several corruptions.

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
    """The seed of the link at a place, of some bytes; the first one has the chain's."""
    if place == 0:
        return seed
    digest = hashlib.blake2b(f"beaufort|link|{seed}|{place}".encode(), digest_size=8).digest()
    return int.from_bytes(digest[:size], "little")

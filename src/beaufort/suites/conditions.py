"""Conditions: a dataset, and what was done to its images before a model saw them.

`imagenet-val` is the clean dataset, `imagenet-val/fog@3` the same images in fog of severity 3. At
the scale `mnist` every corruption has one published severity, and `mnist-test/fog` stands for it. Several
corruptions one after the other are a chain, `imagenet-val/fog@2+jpeg_compression@3`. What is not a corruption
is a shift of another kind, with a level of its own: `imagenet-val/pgd-linf@0.5/255`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from beaufort._core.arrays import MIN_SIDE, as_batch
from beaufort._core.errors import OptionError, UnknownNameError
from beaufort.corruptions import (
    SCALES,
    Chain,
    Choice,
    Link,
    Severity,
    corruptions,
    is_chain,
    parse_severity,
    validate_seed,
    validate_severity,
)
from beaufort.corruptions.rng import Id
from beaufort.suites import attacks as _attacks  # noqa: F401  registers its shifts
from beaufort.suites import frames as _frames  # noqa: F401  registers frames of sequences
from beaufort.suites.shifts import ImageShift, ModelShift, Shift, shifts

DATASET_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
"""What a dataset may be called; such a name is a safe name of a file, too."""

_TEXT = re.compile(rf"({DATASET_NAME.pattern})(?:/([^/@]+)(?:@(.+))?)?")
_LEVEL = re.compile(r"[A-Za-z0-9._/+=,:-]{1,60}")


@dataclass(frozen=True)
class Condition:
    """A dataset and what was done to it; its text reads back as what it was.

    >>> Condition.parse("imagenet-val/fog@3")
    Condition(dataset='imagenet-val', corruption='fog', severity=3, level=None)
    >>> str(Condition("mnist-test", "stripe"))
    'mnist-test/stripe'
    """

    dataset: str
    corruption: str | None = None
    """Of what was done: a corruption, a chain of them, or a shift of another kind; None for clean images."""
    severity: Severity | None = None
    """Of a corruption, 1 to 5; None for clean images, for the severity that was published, and for a chain,
    whose name has its severities."""
    level: str | None = None
    """How strong a shift of another kind is, in its own words."""

    def __post_init__(self) -> None:
        if not DATASET_NAME.fullmatch(self.dataset):
            raise OptionError(
                "the name of a dataset must have letters, digits, '-', '_' and '.' only, a letter or digit "
                f"first, got {self.dataset!r:.60}"
            )
        if self.severity is not None:
            object.__setattr__(self, "severity", validate_severity(self.severity))
        extra = self.level if self.severity is None else self.severity
        if self.corruption is None:
            rule = "clean images have no severity; name a corruption"
        elif is_chain(self.corruption):
            rule = "a chain has a severity at each link, as 'fog@2+jpeg_compression@3'"
            object.__setattr__(self, "corruption", str(Chain.parse(self.corruption)))
        elif self.corruption in corruptions:
            rule, extra = f"{self.corruption} has severities, not levels", self.level
        elif self.corruption in shifts:
            rule, extra = f"{self.corruption} has levels, not severities", self.severity
        else:
            known = dict.fromkeys(sorted((*corruptions, *shifts)))
            raise UnknownNameError(corruptions.unknown_message(self.corruption, known))
        if extra is not None:
            raise OptionError(f"{rule}, got {extra!r:.60}")
        if self.level is not None and not _LEVEL.fullmatch(self.level):
            raise OptionError(
                f"a level must be up to 60 letters, digits and ._/+=,:- , got {self.level!r:.80}"
            )
        self.shift  # noqa: B018  a level that means nothing is an error

    @classmethod
    def parse(cls, text: str) -> Condition:
        """The condition that a text stands for.

        >>> Condition.parse("imagenet-val/fog@9")
        Traceback (most recent call last):
        beaufort.OptionError: 'imagenet-val/fog@9' is not a condition; write 'dataset' or \
'dataset/corruption@severity', for example 'imagenet-val/fog@3'; severities are from 1 to 5, as 3 or 2.5
        """
        wrong = OptionError(
            f"{text!r:.80} is not a condition; write 'dataset' or 'dataset/corruption@severity', "
            "for example 'imagenet-val/fog@3'; severities are from 1 to 5, as 3 or 2.5"
        )
        match = _TEXT.fullmatch(text)
        if match is None:
            raise wrong
        dataset, corruption, level = match.groups()
        if corruption not in shifts and is_chain(done := text.partition("/")[2]):
            return cls(dataset, done)
        if level is None or corruption in shifts:
            return cls(dataset, corruption, None, level)
        try:
            return cls(dataset, corruption, parse_severity(level))
        except OptionError:
            raise wrong from None

    def __str__(self) -> str:
        return self.dataset if self.corruption is None else f"{self.dataset}/{self.done}"

    @property
    def done(self) -> str:
        """What was done to the images, as it stands behind the dataset; empty for clean ones."""
        strength = self.level if self.severity is None else self.severity
        return (self.corruption or "") + ("" if strength is None else f"@{strength}")

    @property
    def clean(self) -> bool:
        """Whether nothing was done to the images."""
        return self.corruption is None

    @property
    def counterpart(self) -> Condition:
        """The clean images that it is compared with."""
        return Condition(self.dataset)

    @property
    def links(self) -> tuple[Link, ...]:
        """The corruptions that do it, one after the other; none for clean images and other shifts."""
        if self.corruption is None:
            return ()
        if is_chain(self.corruption):
            return Chain.parse(self.corruption).links
        return (Link(self.corruption, self.severity),) if self.corruption in corruptions else ()

    @property
    def shift(self) -> Shift | None:
        """What does it, where that is not corruptions."""
        if self.corruption is None or self.links:
            return None
        return shifts[self.corruption](self.level or "")

    @property
    def least_side(self) -> int:
        """Pixels that both sides of an image must have at least; 0 if any will do."""
        return MIN_SIDE if self.links else int(getattr(self.shift, "least_side", 0))

    @property
    def needs_model(self) -> bool:
        """Whether images are changed for the model that sees them, so that `apply` cannot make them."""
        return isinstance(self.shift, ModelShift)

    def apply(
        self, images: Any, *, ids: Sequence[Id], seed: int = 0, scale: str = "auto", jobs: int = 1
    ) -> Any:
        """The images under this condition; clean ones are given back as they are.

        Args:
            images: whatever a `Corruption` takes, one image or a batch.
            ids: one identity an image; with the seed it decides everything that is random.
            seed: any integer.
            scale: whose constants to use, as for a `Corruption`.
            jobs: threads to use on a batch.
        """
        if self.corruption is None:
            return images
        if (shift := self.shift) is not None:
            if not isinstance(shift, ImageShift):
                raise OptionError(f"'{self}' is made for a model; evaluate one under it")
            return shift.apply(images, ids=ids, seed=seed)
        if any(link.severity is None for link in self.links):
            height, width, channels = as_batch(images).color.shape[1:]
            self.facts(scale=scale, side=min(height, width), channels=channels)
        return Chain(self.links)(images, ids=ids, seed=seed, scale=scale, jobs=jobs)

    def facts(
        self, *, scale: str = "auto", seed: int = 0, side: int | None = None, channels: int = 3
    ) -> dict[str, Any]:
        """All that decides what is done to an image, ready for JSON; equal facts, equal pixels.

        The scale is the one whose constants are used and the severity the one that is meant, so `auto`
        and the scale that it takes have the same facts. The seed is among them only if something is
        random. The dataset, its images and their ids are not: they have facts of their own.

        >>> Condition.parse("cifar10-test/contrast@2").facts(scale="cifar", seed=7)
        {'corruption': 'contrast', 'version': 1, 'severity': 2, 'scale': 'cifar', 'params': {'factor': 0.5}}

        Args:
            scale: as for `apply`.
            seed: as for `apply`.
            side: the short side of the images in pixels, for the scales `auto` and `relative`.
            channels: 1 for grey images; `auto` takes `mnist` for those only.
        """
        if self.corruption is None:
            return {"corruption": None}
        if (shift := self.shift) is not None:
            level = {} if self.level is None else {"level": self.level}
            return {"corruption": self.corruption, **level, **shift.facts(seed=validate_seed(seed))}
        if side is None and scale not in SCALES:
            raise OptionError(
                f"the scale {scale!r} depends on the size of the images; give side, their short side in "
                "pixels"
            )
        side = SCALES[scale] if side is None else side
        choices = [link.choose(str(self), scale=scale, side=side, channels=channels) for link in self.links]
        facts = [_facts_of(*chosen) for chosen in zip(self.links, choices, strict=True)]
        drawn = any(choice.recipe.draw is not None for choice in choices)
        whole = facts[0] if len(facts) == 1 else {"corruption": self.corruption, "links": facts}
        return {**whole, "seed": validate_seed(seed)} if drawn else whole


def _facts_of(link: Link, choice: Choice) -> dict[str, Any]:
    """What decides the pixels of one corruption, but for the seed."""
    return {
        "corruption": link.name,
        "version": corruptions[link.name].version,
        "severity": choice.recipe.published if link.severity is None else link.severity,
        "scale": choice.scale,
        "params": choice.params._asdict(),
    }

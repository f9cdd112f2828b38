"""Conditions: a dataset, and how its images are changed before a model sees them.

`imagenet-val` is the clean dataset, `imagenet-val/fog@3` the same images in fog of severity 3. At
the scale `mnist` every corruption has one published severity, and `mnist-test/fog` stands for it.
`imagenet-val/fog@2+jpeg_compression@3` is a chain of corruptions. Other shifts have a level of their own:
`imagenet-val/pgd-linf@0.5/255`.
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
from beaufort.suites import published_shifts as _published  # noqa: F401  registers its shifts
from beaufort.suites import streams as _streams  # noqa: F401  registers streams
from beaufort.suites.native_corruptions import link_facts
from beaufort.suites.shifts import ImageShift, ModelShift, Shift, shifts

DATASET_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
"""Valid names of datasets, which are also safe file names."""

_TEXT = re.compile(rf"({DATASET_NAME.pattern})(?:/([^/@]+)(?:@(.+))?)?")
_LEVEL = re.compile(r"[A-Za-z0-9._/+=,:-]{1,200}")


@dataclass(frozen=True)
class Condition:
    """A dataset and a change of its images; `Condition.parse(str(condition))` gives the same condition.

    >>> Condition.parse("imagenet-val/fog@3")
    Condition(dataset='imagenet-val', corruption='fog', severity=3, level=None)
    >>> str(Condition("mnist-test", "stripe"))
    'mnist-test/stripe'
    """

    dataset: str
    corruption: str | None = None
    """A corruption, a chain of them, or another shift; None for clean images."""
    severity: Severity | None = None
    """Severity of a corruption, from 1 to 5; None for clean images, for the published severity, and for a
    chain, whose name has its severities."""
    level: str | None = None
    """Strength of another shift, in its own notation."""

    def __post_init__(self) -> None:
        if not DATASET_NAME.fullmatch(self.dataset):
            raise OptionError(
                "the name of a dataset must consist of letters, digits, '-', '_' and '.' and start with a "
                f"letter or digit, got {self.dataset!r:.60}"
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
                f"a level must be at most 200 letters, digits and ._/+=,:- , got {self.level!r:.80}"
            )
        self.shift  # noqa: B018  an invalid level raises an error

    @classmethod
    def parse(cls, text: str) -> Condition:
        """Return the condition of a text.

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
        """The part of the text after the dataset, such as `fog@3`; empty for clean images."""
        strength = self.level if self.severity is None else self.severity
        return (self.corruption or "") + ("" if strength is None else f"@{strength}")

    @property
    def clean(self) -> bool:
        """Whether the images are unchanged."""
        return self.corruption is None

    @property
    def counterpart(self) -> Condition:
        """The condition of the clean images."""
        return Condition(self.dataset)

    @property
    def links(self) -> tuple[Link, ...]:
        """Its corruptions in order; empty for clean images and other shifts."""
        if self.corruption is None:
            return ()
        if is_chain(self.corruption):
            return Chain.parse(self.corruption).links
        return (Link(self.corruption, self.severity),) if self.corruption in corruptions else ()

    @property
    def shift(self) -> Shift | None:
        """The shift that changes the images; None for clean images and corruptions."""
        if self.corruption is None or self.links:
            return None
        return shifts[self.corruption](self.level or "")

    @property
    def least_side(self) -> int:
        """Minimum side of an image in pixels; 0 if any size is valid."""
        return MIN_SIDE if self.links else int(getattr(self.shift, "least_side", 0))

    @property
    def needs_model(self) -> bool:
        """Whether the change depends on the model (an attack), so that `apply` cannot make it."""
        return isinstance(self.shift, ModelShift)

    def apply(
        self, images: Any, *, ids: Sequence[Id], seed: int = 0, scale: str = "auto", jobs: int = 1
    ) -> Any:
        """Return the images under this condition.

        Args:
            images: one image or a batch, as for a `Corruption`.
            ids: one id per image; ids and seed determine everything random.
            seed: any integer.
            scale: whose constants to use, as for a `Corruption`.
            jobs: number of threads for a batch.
        """
        if self.corruption is None:
            return images
        if (shift := self.shift) is not None:
            if not isinstance(shift, ImageShift):
                raise OptionError(f"'{self}' depends on a model; use `evaluate` instead of `apply`")
            return shift.apply(images, ids=ids, seed=seed)
        if any(link.severity is None for link in self.links):
            height, width, channels = as_batch(images).color.shape[1:]
            self.facts(scale=scale, side=min(height, width), channels=channels)
        return Chain(self.links)(images, ids=ids, seed=seed, scale=scale, jobs=jobs)

    def facts(
        self, *, scale: str = "auto", seed: int = 0, side: int | None = None, channels: int = 3
    ) -> dict[str, Any]:
        """Return all that determines the change of an image, ready for JSON: equal facts give equal pixels.

        Scale and severity are resolved, so `auto` and the scale that it selects have the same facts. The seed
        is included only if something is random.

        >>> Condition.parse("cifar10-test/contrast@2").facts(scale="cifar", seed=7)
        {'corruption': 'contrast', 'version': 1, 'severity': 2, 'scale': 'cifar', 'params': {'factor': 0.5}}

        Args:
            scale: as for `apply`.
            seed: as for `apply`.
            side: short side of the images in pixels, for the scales `auto` and `relative`.
            channels: number of channels; `auto` selects `mnist` for 1 only.
        """
        if self.corruption is None:
            return {"corruption": None}
        if (shift := self.shift) is not None:
            level = {} if self.level is None else {"level": self.level}
            return {"corruption": self.corruption, **level, **shift.facts(seed=validate_seed(seed))}
        if side is None and scale not in SCALES:
            raise OptionError(
                f"the scale {scale!r} depends on the size of the images; pass side, their short side in "
                "pixels"
            )
        side = SCALES[scale] if side is None else side
        choices = [link.choose(str(self), scale=scale, side=side, channels=channels) for link in self.links]
        facts = [link_facts(*chosen) for chosen in zip(self.links, choices, strict=True)]
        drawn = any(choice.recipe.draw is not None for choice in choices)
        whole = facts[0] if len(facts) == 1 else {"corruption": self.corruption, "links": facts}
        return {**whole, "seed": validate_seed(seed)} if drawn else whole

"""Corruptions at the size of the model's input, after its own resize and crop, as in the ImageNet testbed.

`imagenet-val/native-fog@3` is fog of severity 3 with the constants of ImageNet-C on the image that the model
would see. A suite's corruptions, in contrast, are the same images for all models.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from beaufort._core.arrays import Images, on_host
from beaufort._core.errors import OptionError
from beaufort.corruptions import (
    Chain,
    Choice,
    Link,
    Severity,
    corruptions,
    get_corruption_names,
    parse_severity,
    validate_seed,
)
from beaufort.corruptions.rng import Id
from beaufort.data.labels import LabelSpace
from beaufort.suites.shifts import register_shift

if TYPE_CHECKING:
    from beaufort.models import Model
    from beaufort.models.spec import Logits

NATIVE = "native-"
"""Prefix of the names."""
_SCALE, _SIDE = "imagenet", 224


@dataclass(frozen=True)
class NativeCorruption:
    """A corruption of the images that a model sees: a `ModelShift`."""

    corruption: str
    severity: Severity | None

    def facts(self, *, seed: int) -> dict[str, Any]:
        """Return the parameters of the corruption."""
        choice = self._link.choose(f"{NATIVE}{self.corruption}", scale=_SCALE, side=_SIDE, channels=3)
        drawn = {"seed": validate_seed(seed)} if choice.recipe.draw is not None else {}
        return {"at": "model input", "made": link_facts(self._link, choice), **drawn}

    @property
    def _link(self) -> Link:
        return Link(self.corruption, self.severity)

    def predict(
        self,
        model: Model,
        images: Images,
        *,
        ids: Sequence[Id],
        labels: NDArray[np.int64],  # noqa: ARG002  of the protocol
        space: LabelSpace,  # noqa: ARG002  of the protocol
        seed: int,
    ) -> Logits:
        """Return the logits of the corrupted images."""
        fitted = np.ascontiguousarray(model.spec.preprocessing.fit(on_host(images)))
        return model(Chain((self._link,))(fitted, ids=ids, seed=seed, scale=_SCALE))


def link_facts(link: Link, choice: Choice) -> dict[str, Any]:
    """Return all that determines the pixels of a corruption, without the seed."""
    return {
        "corruption": link.name,
        "version": corruptions[link.name].version,
        "severity": choice.recipe.published if link.severity is None else link.severity,
        "scale": choice.scale,
        "params": choice.params._asdict(),
    }


def _open(level: str, corruption: str) -> NativeCorruption:
    if not level:
        raise OptionError(f"{NATIVE}{corruption} requires a severity, as in {NATIVE}{corruption}@3")
    return NativeCorruption(corruption, parse_severity(level))


for _name in (*get_corruption_names("all"), "greyscale"):
    register_shift(f"{NATIVE}{_name}")(partial(_open, corruption=_name))

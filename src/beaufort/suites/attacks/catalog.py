"""Attacks by name, and as shifts of conditions.

| condition | attack |
|---|---|
| `…/pgd-linf@8/255`, `…/pgd-l2@0.5` | PGD of 100 steps on the true label, clipped |
| `…/pgd-linf@8/255,steps=20` | of 20 steps |
| `…/testbed-pgd-linf@2/255`, `…/testbed-pgd-l2@0.5` | PGD as in the ImageNet testbed |
| `…/autoattack-linf@8/255`, `…/autoattack-l2@0.5` | AutoAttack, if it is installed |
| `…/foolbox@LinfPGD:8/255` | an attack of foolbox with its defaults, if it is installed |
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from beaufort._core.arrays import Images
from beaufort._core.errors import OptionError
from beaufort._core.registry import Registry
from beaufort.corruptions.rng import Id
from beaufort.data.labels import LabelSpace
from beaufort.suites.attacks.attack import Attack, attack_images, check_attackable
from beaufort.suites.attacks.libraries import AutoAttack, Foolbox
from beaufort.suites.attacks.pgd import PGD
from beaufort.suites.shifts import register_shift

if TYPE_CHECKING:
    from beaufort.models import Model
    from beaufort.models.spec import Logits

attacks: Registry[Attack] = Registry("attack")
"""Attacks by name, without those of foolbox."""

_EPSILON = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,9})?)(?:/([1-9][0-9]{0,5}))?")
_OPTION = re.compile(r"(steps|step)=([0-9]{1,6}(?:\.[0-9]{1,9})?)")


@dataclass(frozen=True)
class AttackShift:
    """An attack with its epsilon: a `ModelShift`."""

    attack: Attack
    epsilon: float
    """Radius of the ball around an image, for values in 0..1."""

    def facts(self, *, seed: int) -> dict[str, Any]:
        """Return all settings."""
        return {**self.attack.facts(), "epsilon": self.epsilon, "seed": seed}

    @property
    def passes(self) -> int:
        """Approximate maximum cost, in predictions."""
        return self.attack.passes

    def check(self, model: Model) -> None:
        """Raise `AttackError` if a model has no gradients."""
        check_attackable(model)

    def predict(
        self,
        model: Model,
        images: Images,
        *,
        ids: Sequence[Id],
        labels: NDArray[np.int64],
        space: LabelSpace,
        seed: int,
    ) -> Logits:
        """Return the logits of the attacked images."""
        network = check_attackable(model)
        attacked = attack_images(
            self.attack, network, images, labels, epsilon=self.epsilon, ids=ids, seed=seed, space=space
        )
        logits: Logits = network.predict_pixels(attacked).cpu().numpy()
        return logits


def parse_epsilon(text: str, example: str = "") -> float:
    """Return the number that a text stands for, rounded once.

    >>> parse_epsilon("0.5/255") == 0.5 / 255
    True
    >>> parse_epsilon("-1")
    Traceback (most recent call last):
    beaufort.OptionError: epsilon must be a number from 0, written as 8/255 or 0.5, got '-1'

    Args:
        text: a number, or a number over an integer.
        example: an example of the whole level, for the error.
    """
    match = _EPSILON.fullmatch(text)
    if match is None:
        whole = f", as in {example}" if example else ""
        raise OptionError(
            f"epsilon must be a number from 0, written as 8/255 or 0.5{whole}, got {text!r:.60}"
        )
    return float(Fraction(match[1]) / int(match[2] or 1))


def register_attack(attack: Attack) -> None:
    """Register an attack for conditions, `dataset/name@epsilon`.

    >>> register_attack(PGD(name="quick-pgd", norm="linf", steps=7))
    >>> attacks["quick-pgd"].facts()["steps"]
    7
    """

    def shift(level: str) -> AttackShift:
        text, *options = level.split(",")
        return AttackShift(_changed(attack, options), parse_epsilon(text, f"{attack.name}@8/255"))

    register_shift(attack.name)(shift)
    attacks.register(attack.name, attack)


def _changed(attack: Attack, options: Sequence[str]) -> Attack:
    """Return an attack with the options of a level, which only PGD has."""
    if not options:
        return attack
    matches = [_OPTION.fullmatch(text) for text in options]
    given: Mapping[str, str] = {match[1]: match[2] for match in matches if match is not None}
    if not isinstance(attack, PGD) or len(given) < len(options) or "." in given.get("steps", ""):
        accepted = "steps=20 and step=0.1, each once" if isinstance(attack, PGD) else "none"
        raise OptionError(f"options of {attack.name} must be {accepted}, got {','.join(options)!r}")
    if float(given.get("step", 1)) == 0:
        raise OptionError(f"step must be a fraction of epsilon above 0, got {','.join(options)!r}")
    steps = int(given.get("steps", attack.steps))
    by_steps = attack.step == 2.5 / attack.steps  # the default, which follows the number of steps
    step = float(given["step"]) if "step" in given else 0.0 if by_steps else attack.step
    return replace(attack, steps=steps, step=step)


@register_shift("foolbox")
def _foolbox(level: str) -> AttackShift:
    kind, colon, text = level.partition(":")
    if not colon or not kind.isalnum():
        raise OptionError(
            f"an attack of foolbox must be written as foolbox@LinfPGD:8/255, got foolbox@{level}"
        )
    return AttackShift(Foolbox(kind), parse_epsilon(text, f"foolbox@{kind}:8/255"))


for _attack in (
    PGD(name="pgd-linf", norm="linf"),
    PGD(name="pgd-l2", norm="l2"),
    PGD(name="testbed-pgd-linf", norm="linf", step=0.03, use_labels=False, clip=False, keep_best=False),
    PGD(name="testbed-pgd-l2", norm="l2", step=0.1, use_labels=False, clip=False, keep_best=False, grow=True),
    AutoAttack("autoattack-linf", "linf"),
    AutoAttack("autoattack-l2", "l2"),
):
    register_attack(_attack)

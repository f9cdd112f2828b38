"""The attacks by name.

| name | what it is |
|---|---|
| `pgd-linf`, `pgd-l2` | PGD of 100 steps on the true label, clipped; `pgd-linf-20` takes 20 steps |
| `testbed-pgd-linf`, `testbed-pgd-l2` | PGD as the ImageNet testbed made it |
| `autoattack-linf`, `autoattack-l2` | AutoAttack, if it is installed |
| `foolbox.LinfPGD`, … | any attack of foolbox, if it is installed |
"""

from __future__ import annotations

import re
from dataclasses import replace

from beaufort.attacks.attack import Attack
from beaufort.attacks.external import AutoAttack, Foolbox
from beaufort.attacks.pgd import PGD
from beaufort.errors import UnknownNameError
from beaufort.registry import Registry

__all__ = ["attacks", "get_attack", "is_attack"]

attacks: Registry[Attack] = Registry("attack")
"""Attacks by name; `attacks.register("mine", PGD(name="mine", norm="linf", steps=7))` adds one."""

for _attack in (
    PGD(name="pgd-linf", norm="linf"),
    PGD(name="pgd-l2", norm="l2"),
    PGD(name="testbed-pgd-linf", norm="linf", step=0.03, truth=False, clip=False, keep_best=False),
    PGD(name="testbed-pgd-l2", norm="l2", step=0.1, truth=False, clip=False, keep_best=False, grow=True),
    AutoAttack("autoattack-linf", "linf"),
    AutoAttack("autoattack-l2", "l2"),
):
    attacks.register(_attack.name, _attack)

_STEPS = re.compile(r"(pgd-(?:linf|l2))-([1-9][0-9]{0,4})")
_FOOLBOX = re.compile(r"foolbox\.([A-Za-z0-9]{1,60})")


def get_attack(name: str) -> Attack:
    """The attack of a name.

    >>> get_attack("pgd-linf-20").facts()["steps"]
    20
    >>> get_attack("pgd-l1")
    Traceback (most recent call last):
    beaufort.errors.UnknownNameError: 'pgd-l1' is not an attack; did you mean 'pgd-l2' or 'pgd-linf'?
    """
    if match := _STEPS.fullmatch(name):
        plain = attacks[match[1]]
        assert isinstance(plain, PGD)
        return replace(plain, name=name, steps=int(match[2]), step=0.0)
    if match := _FOOLBOX.fullmatch(name):
        return Foolbox(match[1])
    return attacks[name]


def is_attack(name: str) -> bool:
    """Whether a name is one of an attack."""
    try:
        get_attack(name)
    except UnknownNameError:
        return False
    return True

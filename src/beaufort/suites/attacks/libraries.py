"""Attacks of other libraries: foolbox and AutoAttack.

The library gets the victim as a torch module with inputs in 0..1, images, labels and the radius, and returns
images. Its random generators are seeded per batch, not per image: another batch size gives other images.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module, metadata
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from beaufort._core.errors import MissingExtraError, UnknownNameError
from beaufort._core.registry import unknown_message
from beaufort.data.labels import NO_LABEL
from beaufort.suites.attacks.attack import AttackError, Victim
from beaufort.suites.attacks.balls import BALLS

_AUTOATTACK = ("autoattack", "pyautoattack")
"""The package of AutoAttack's authors, and the same program on the package index."""

_TARGETS = 9
"""Target classes of AutoAttack's targeted attacks."""


class _LibraryAttack:
    """An attack of a library, which runs on correctly classified images only."""

    name: str
    clip: bool = True

    def run(self, victim: Victim, images: Any, labels: Any, radius: float, seed: int) -> Any:
        """Return the library's images for images with one label each."""
        raise NotImplementedError

    def radius(self, epsilon: float, side: int) -> float:  # noqa: ARG002
        """Return epsilon."""
        return epsilon

    def perturb(
        self,
        victim: Victim,
        pixels: Any,
        label_sets: Any,
        *,
        radius: float,
        words: NDArray[np.uint64],
        seed: int,
    ) -> Any:
        """Return perturbed images; misclassified ones stay unchanged."""
        if label_sets.shape[1] != 1:
            raise AttackError(f"{self.name} does not support label sets; use pgd-linf or pgd-l2")
        labels = label_sets[:, 0]
        _, wrong, _ = victim.look(pixels, label_sets)
        places = (~wrong & (labels != NO_LABEL)).nonzero()[:, 0]
        if not len(places) or radius == 0:
            return pixels
        found = pixels.clone()
        with _seeded(seed, words):
            try:
                found[places] = self.run(victim, pixels[places], labels[places], radius, seed).detach()
            except Exception as error:  # libraries raise errors of any class
                raise AttackError(f"{self.name} failed: {type(error).__name__}: {error!s:.300}") from error
        return found


@dataclass(frozen=True)
class AutoAttack(_LibraryAttack):
    """AutoAttack (Croce & Hein, 2020), the version called standard."""

    name: str
    norm: str
    clip: bool = True
    passes: int = 11_000
    """Gradients of 1,000 APGD steps and 900 FAB steps, and 5,000 Square queries."""

    def facts(self) -> dict[str, Any]:
        """Return the settings and the version of the library."""
        library = _library(*_AUTOATTACK, what="AutoAttack")
        return {"attack": self.name, "norm": self.norm, "variant": "standard", **library}

    def run(self, victim: Victim, images: Any, labels: Any, radius: float, seed: int) -> Any:
        """Return the images of the standard evaluation."""
        module = _module(victim)
        name = _library(*_AUTOATTACK, what="AutoAttack")["library"]
        made = import_module(name).AutoAttack(
            module, norm=self.norm.capitalize(), eps=radius, seed=seed, device=str(images.device)
        )
        made.verbose = False
        targets = min(_TARGETS, (victim.space.column_count or module(images[:1]).shape[1]) - 1)
        made.apgd_targeted.n_target_classes = made.fab.n_target_classes = targets
        batch = {"bs" if name == "autoattack" else "batch_size": len(images)}
        found = made.run_standard_evaluation(images, labels, **batch)
        return found[0] if isinstance(found, tuple) else found


@dataclass(frozen=True)
class Foolbox(_LibraryAttack):
    """An attack of foolbox with its defaults, by class name: `LinfPGD`, `L2DeepFoolAttack`, …"""

    kind: str
    clip: bool = True

    @property
    def name(self) -> str:  # type: ignore[override]
        """Name in conditions."""
        return f"foolbox@{self.kind}"

    @property
    def passes(self) -> int:
        """A gradient per step; 100 steps if the attack does not give their number."""
        steps = getattr(self._attack, "steps", None)
        return 3 * (steps if isinstance(steps, int) else 100)

    @cached_property
    def _attack(self) -> Any:
        _library("foolbox", what="foolbox")
        library: Any = _imported("foolbox").attacks
        known = {key: None for key, value in vars(library).items() if isinstance(value, type)}
        if self.kind not in known:
            raise UnknownNameError(unknown_message("foolbox attack", self.kind, known))
        try:
            return getattr(library, self.kind)()
        except TypeError as error:
            raise AttackError(f"cannot create {self.name} without arguments: {error!s:.200}") from None

    @property
    def norm(self) -> str:
        """`linf` or `l2`."""
        p = getattr(getattr(self._attack, "distance", None), "p", None)
        for name, order in (("linf", np.inf), ("l2", 2)):
            if p == order:
                return name
        raise AttackError(f"{self.name} has the norm {p}; use an attack in {' or '.join(BALLS)}")

    def facts(self) -> dict[str, Any]:
        """Return the version of the library, and the settings that are numbers or text."""
        settings = {
            key: value
            for key, value in sorted(vars(self._attack).items())
            if isinstance(value, int | float | str) and not key.startswith("_")
        }
        library = _library("foolbox", what="foolbox")
        return {"attack": self.name, "norm": self.norm, **library, "settings": settings}

    def run(self, victim: Victim, images: Any, labels: Any, radius: float, seed: int) -> Any:  # noqa: ARG002
        """Return the images of the attack."""
        model = _imported("foolbox").PyTorchModel(_module(victim), bounds=(0, 1), device=images.device)
        _, found, _ = self._attack(model, images, labels, epsilons=radius)
        return found


def _module(victim: Victim) -> Any:
    import torch

    class Module(torch.nn.Module):
        def forward(self, pixels: Any) -> Any:
            return victim.logits(pixels)

    return Module().eval()


@contextmanager
def _seeded(seed: int, words: NDArray[np.uint64]) -> Iterator[None]:
    """Seed the global generators for a batch, and restore them afterwards."""
    import torch

    number = int(np.bitwise_xor.reduce(words)) ^ (seed & 0xFFFFFFFF)
    before = random.getstate(), np.random.get_state()  # noqa: NPY002
    devices = list(range(torch.cuda.device_count()))
    with torch.random.fork_rng(devices):
        torch.manual_seed(number & 0x7FFFFFFF)
        np.random.seed(number & 0xFFFFFFFF)  # noqa: NPY002
        random.seed(number)
        try:
            yield
        finally:
            random.setstate(before[0])
            np.random.set_state(before[1])  # noqa: NPY002


def _imported(package: str) -> Any:
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # foolbox imports deprecated names
        return import_module(package)


def _library(*packages: str, what: str) -> dict[str, Any]:
    """Return the first package that is installed, and its version."""
    for package in packages:
        if find_spec(package) is not None:
            return {"library": package, "library_version": metadata.version(package)}
    raise MissingExtraError(f"{what} is not installed: pip install {packages[-1]}")

"""The trainings on CIFAR-10: every arm of every question, as changes to a recipe."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from beaufort.studies.enhancements.enhancement_settings import EnhancementSettings
from beaufort.training import Recipe, get_recipe

BASE, CONTROL = "resnet20", "tuned-plain"
"""What fine-tuning starts from, whose first seed divides mCE; and fine-tuning without anything."""

_MOVES = {"shift": 4, "flip": True}
_UNRECORDED = frozenset({"augmix", "prime"})
"""Interventions that choose operations on the way, so that a step cannot be recorded and replayed."""


@dataclass(frozen=True)
class TrainingArm:
    """One way to train, or to test what another arm trained."""

    name: str
    recipe: str = "cifar10-tuned"
    changes: Mapping[str, Any] = field(default_factory=dict)
    """Fields of the recipe that are different."""
    start: str = ""
    """The arm whose network it starts from."""
    image_filter: str = ""
    """The image filter that it is tested behind."""
    tests: str = ""
    """The arm whose network it tests, if it trains none itself."""

    def made(self, settings: EnhancementSettings, start: str) -> Recipe:
        """Its recipe, small for a rehearsal."""
        recipe = replace(get_recipe(self.recipe), name=self.name, start=start, **self.changes)
        if not settings.rehearse:
            return recipe
        kept = {key: value for key, value in recipe.architecture_options.items() if key == "shake"}
        small = {**_SMALL[recipe.architecture], **kept}
        return replace(recipe, epochs=1, batch=16, architecture_options=small)


_SMALL: Mapping[str, Mapping[str, Any]] = {
    "resnet": {"depth": 8, "width": 4},
    "densenet": {"depth": 10, "growth": 4},
    "resnext": {"depth": 11, "cardinality": 2, "base": 4},
    "multigrid-resnet": {"widths": ((4, 2), (4, 2), (4,)), "blocks": 1},
    "msdnet": {"exits": 2, "base": 2, "step": 1, "growth": 2, "first": 4, "hidden": 8},
    "shake-shake": {"depth": 8, "width": 4},
}
"""Networks of a rehearsal."""


_MATCHED_MSDNET = {"exits": 2, "base": 3, "step": 2, "growth": 8, "first": 32, "hidden": 16}
"""As large as ResNet-20: parameters a fifth above, multiply-adds a fifth below. Nearer in one is farther in
the other, because its coarse scales have many weights that are used at few places."""


def training_arms(settings: EnhancementSettings) -> dict[str, list[TrainingArm]]:
    """Return the arms of each question; those of `base` come first."""
    clahe = "clahe:clip=2,tiles=4"
    return {
        "base": [TrainingArm(BASE, "cifar10-resnet20")],
        "control": [TrainingArm(CONTROL, start=BASE)],
        "clahe": [
            TrainingArm("clahe-untuned", tests=BASE, image_filter=clahe),
            replace(_tuned("clahe-tuned", "front", front=clahe), image_filter=clahe),
        ],
        "stability": list(_stability(settings)),
        "ten-crop": [TrainingArm("ten-crop", tests=BASE, image_filter="ten-crop:pad=4")],
        "small": [
            _network("resnet20-quarter", "resnet", depth=20, width=4),
            _network("resnet20-half", "resnet", depth=20, width=8),
            _network("resnet20-double", "resnet", depth=20, width=32),
            *map(_pruned, (50, 75, 90)),
        ],
        "aggregation": [
            _network("resnet56", "resnet", depth=56),
            _network("resnet110", "resnet", depth=110),
            _network("densenet40", "densenet", depth=40, growth=12),
            _network("densenet40-24", "densenet", depth=40, growth=24),
            _network("resnext29", "resnext", cardinality=4, base=16),
        ],
        "multiscale": [
            _network("multigrid", "multigrid-resnet"),
            _network("msdnet", "msdnet", **_MATCHED_MSDNET),
        ],
        "transfer": list(_transfer(settings)),
        "shake": [
            _network("shake26-shake", "shake-shake", width=32, shake=True),
            _network("shake26-no-shake", "shake-shake", width=32, shake=False),
        ],
        "augmentation": [
            _tuned("augmix", "augmix"),
            _tuned("prime", "prime"),
            _tuned("gaussian-0.1", "noise", noise="gaussian", strength=0.1, clean=0.5),
        ],
    }


def _network(name: str, architecture: str, **options: Any) -> TrainingArm:
    changes = {"architecture": architecture, "architecture_options": options}
    return TrainingArm(name, "cifar10-resnet20", changes=changes)


def _tuned(name: str, intervention: str, **options: Any) -> TrainingArm:
    changes = {"intervention": intervention, "intervention_options": {**_MOVES, **options}}
    return TrainingArm(name, changes={**changes, "replay": intervention not in _UNRECORDED}, start=BASE)


def _pruned(percent: int) -> TrainingArm:
    arm = _tuned(f"resnet56-pruned{percent}", "pruning", share=percent / 100)
    changes = {"architecture_options": {"depth": 56}, "epochs": 10}
    return replace(arm, changes={**arm.changes, **changes}, start="resnet56")


def _stability(settings: EnhancementSettings) -> Iterator[TrainingArm]:
    limits, weights = ((0.05,), (0.05,)) if settings.rehearse else ((0.01, 0.05, 0.1), (0.01, 0.05, 0.1))
    for strength in limits:
        for weight in weights:
            yield _tuned(f"stability-{strength:g}-w{weight:g}", "stability", strength=strength, weight=weight)
        yield _tuned(f"noise-{strength:g}", "noise", strength=strength)
    for weight in () if settings.rehearse else (1, 10):
        yield _tuned(f"stability-0.05-w{weight}", "stability", strength=0.05, weight=weight)


def _transfer(settings: EnhancementSettings) -> Iterator[TrainingArm]:
    common = {"severity": list(settings.severities), "scale": "cifar"}
    for name in settings.corruptions:
        yield _tuned(f"on-{name}", "corruptions", names=[name], **common)
        yield _tuned(f"but-{name}", "corruptions", names=list(settings.corruptions), but=[name], **common)
    yield _tuned("on-all", "corruptions", names=list(settings.corruptions), **common)
    yield _tuned("on-extra", "corruptions", names=list(settings.extra), **common)

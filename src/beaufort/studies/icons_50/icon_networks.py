"""The design of the study: networks, arms, splits, published accuracies, and the size of a rehearsal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from beaufort.studies.engine import StudySettings
from beaufort.training import Recipe, get_recipe

Changes = tuple[str, ...]


class NetworkVariant(NamedTuple):
    """A recipe, perhaps changed."""

    title: str
    recipe: str
    changes: Changes = ()


NETWORKS = {
    "resnet20": NetworkVariant("ResNet-20", "icons-resnet20"),
    "densenet40": NetworkVariant("DenseNet-40", "icons-densenet40"),
    "resnext29": NetworkVariant("ResNeXt-29", "icons-resnext29"),
    "msdnet": NetworkVariant("MSDNet", "icons-msdnet"),
    "shake26-96d": NetworkVariant("Shake-Shake 26 2×96d (500 epochs)", "icons-shake26-96d"),
}
"""The paper's table. It calls the last one "ResNeXt + Shake-Shake"."""

_STILL = "architecture_options.shake=false"
ARMS = {
    "shake26-32d-50": NetworkVariant("Shake-Shake 26 2×32d (50 epochs)", "icons-shake26-32d"),
    "still26-32d-50": NetworkVariant(
        "Shake-Shake 26 2×32d not shaken (50 epochs)", "icons-shake26-32d", (_STILL,)
    ),
    "shake26-32d-200": NetworkVariant(
        "Shake-Shake 26 2×32d (200 epochs)", "icons-shake26-32d", ("epochs=200",)
    ),
    "still26-32d-200": NetworkVariant(
        "Shake-Shake 26 2×32d not shaken (200 epochs)", "icons-shake26-32d", (_STILL, "epochs=200")
    ),
    "shake26-96d-50": NetworkVariant("Shake-Shake 26 2×96d (50 epochs)", "icons-shake26-96d", ("epochs=50",)),
}
"""Is it the method or the length of the training? The same small network with and without each, and the
paper's own for as long as the networks that it is compared with."""

OTHERS = {
    "wrn16-4": NetworkVariant("WRN-16-4", "icons-wrn16-4"),
    "condensenet86": NetworkVariant("CondenseNet-86", "icons-condensenet86"),
    "multigrid": NetworkVariant("Multigrid-ResNet", "icons-multigrid"),
}
"""Networks that the paper has elsewhere, or in its program alone."""

VARIANTS = {**NETWORKS, **ARMS, **OTHERS}

SPLITS = {
    "style": "Microsoft's style",
    "subtype": "subtypes",
    "subtype-released": "subtypes, released rule",
    "traditional": "renditions",
    "traditional-released": "renditions, released rule",
}
"""What is held out; each is the protocol `icons-50-NAME`. `style-VENDOR` holds out another vendor."""

_PUBLISHED_STYLE = "microsoft"


def style_split(vendor: str) -> str:
    """Return the name of the split that holds out a vendor's icons."""
    return "style" if vendor == _PUBLISHED_STYLE else f"style-{vendor}"


def held_out_title(split: str) -> str:
    """Return what a split holds out, in words."""
    return SPLITS.get(split) or f"{split.removeprefix('style-')}'s style"


STYLES_BY = ("resnet20", "wrn16-4")
"""Networks that are trained without each vendor in turn."""

PAPER: dict[str, dict[str, float]] = {
    "resnet20": {"style": 0.583, "subtype-released": 0.575, "traditional-released": 0.972},
    "densenet40": {"style": 0.485, "subtype-released": 0.587, "traditional-released": 0.973},
    "resnext29": {"style": 0.518, "subtype-released": 0.600, "traditional-released": 0.980},
    "msdnet": {"style": 0.651},
    "shake26-96d": {"style": 0.760, "subtype-released": 0.636},
}
"""Accuracies that the paper prints, each of one training. They are, as far as can be told, under the rules of
the released program."""

_TINY: dict[str, Changes] = {
    "icons-resnet20": ("architecture_options.depth=8", "architecture_options.width=4"),
    "icons-densenet40": ("architecture_options.depth=10", "architecture_options.growth=4"),
    "icons-resnext29": (
        "architecture_options.depth=11",
        "architecture_options.base=4",
        "architecture_options.cardinality=2",
    ),
    "icons-msdnet": (
        'architecture_options={"exits": 2, "base": 1, "step": 1, "growth": 2, "first": 4, "hidden": 8}',
    ),
    "icons-shake26-96d": ("architecture_options.depth=8", "architecture_options.width=4"),
    "icons-shake26-32d": ("architecture_options.depth=8", "architecture_options.width=4"),
    "icons-wrn16-4": ("architecture_options.depth=10", "architecture_options.factor=1"),
    "icons-condensenet86": ('architecture_options={"layers": [1, 1, 1], "growth": [4, 4, 4]}',),
    "icons-multigrid": ('architecture_options={"widths": [[4, 2], [4, 2], [4]], "blocks": 1}',),
}
_FEW = ("epochs=1", "batch=16")


@dataclass(frozen=True, kw_only=True)
class IconSettings(StudySettings):
    """How much is done, and with which icons."""

    data: str = "icons-50"

    @property
    def train_limit(self) -> int | None:
        return 48 if self.rehearse else None

    @property
    def test_limit(self) -> int | None:
        return 40 if self.rehearse else None

    def recipe(self, name: str) -> Recipe:
        """The recipe of a variant, made small for a rehearsal."""
        variant = VARIANTS[name]
        recipe = get_recipe(variant.recipe).changed(variant.changes)
        return recipe.changed((*_TINY[variant.recipe], *_FEW)) if self.rehearse else recipe

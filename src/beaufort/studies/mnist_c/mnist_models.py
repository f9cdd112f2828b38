"""The design of the study: models, corruptions, and the size of a rehearsal."""

from __future__ import annotations

from dataclasses import dataclass

from beaufort.corruptions import SUBSETS
from beaufort.studies.engine import StudySettings
from beaufort.training import Recipe, get_recipe

CLEAN = "none"
"""What the paper's tables call the clean digits."""

MODELS = {
    "conv1": "Conv1",
    "conv2-pgd": "Conv2 (PGD)",
    "conv3-pgd": "Conv3 (PGD)",
    "conv3-gan": "Conv3 (GAN)",
    "capsule": "Capsule",
    "abs": "ABS",
}
"""Recipes, and what the paper's tables call the models."""

COLUMNS = ("clean", "all_but_one", "all", "single")
"""Of Figure 4."""

_REHEARSAL: dict[str, list[str]] = {
    "conv1": ["epochs=1"],
    "conv1-tuned": ["epochs=1"],
    "conv2-pgd": ["epochs=1", "batch=100", "intervention_options.steps=1", "architecture_options.hidden=8"],
    "conv3-pgd": ["epochs=1", "intervention_options.steps=1"],
    "conv3-gan": ["epochs=1", "intervention_options.steps=1", "intervention_options.width=4"],
    "capsule": ["epochs=1", 'architecture_options={"filters": 4, "channels": 2, "hidden": 8}'],
    "abs": ["epochs=1", "batch=100", 'architecture_options={"samples": 20, "steps": 1}'],
}
_FEW = ("stripe", "brightness", "translate")


@dataclass(frozen=True, kw_only=True)
class MnistSettings(StudySettings):
    """How much is done, and with which digits."""

    train: str = "mnist-train"
    test: str = "mnist-test"

    @property
    def benchmark(self) -> tuple[str, ...]:
        """The corruptions of the paper's tables."""
        return _FEW if self.rehearse else SUBSETS["mnist-c"]

    @property
    def all_corruptions(self) -> tuple[str, ...]:
        """The 31 that the 15 were chosen from, in the order of the tables, then the others."""
        others = () if self.rehearse else tuple(n for n in SUBSETS["mnist-c-all"] if n not in self.benchmark)
        return (*self.benchmark, *(("inverse",) if self.rehearse else others))

    @property
    def train_limit(self) -> int | None:
        return 300 if self.rehearse else None

    @property
    def test_limit(self) -> int | None:
        return 40 if self.rehearse else None

    def recipe(self, name: str) -> Recipe:
        """A recipe, made small for a rehearsal."""
        return get_recipe(name).changed(_REHEARSAL[name] if self.rehearse else [])

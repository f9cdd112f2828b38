"""Training: one loop, recipes as data, one file for each network and each intervention.

>>> from beaufort.training import get_recipe
>>> get_recipe("conv1").architecture
'conv1'
"""

from __future__ import annotations

from beaufort.training.data import Decoded, InMemory, Source, open_source
from beaufort.training.loop import Progress, Training, train
from beaufort.training.recipe import Recipe, get_recipe, read_recipe, recipe_names
from beaufort.training.trained import TrainingFileError, find_trained, load_trained

__all__ = [
    "Decoded",
    "InMemory",
    "Progress",
    "Recipe",
    "Source",
    "Training",
    "TrainingFileError",
    "find_trained",
    "get_recipe",
    "load_trained",
    "open_source",
    "read_recipe",
    "recipe_names",
    "train",
]

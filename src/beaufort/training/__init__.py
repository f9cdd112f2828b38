"""Training networks by recipes: architectures, interventions and the training loop.

>>> from beaufort.training import get_recipe
>>> get_recipe("conv1").architecture
'conv1'
"""

from __future__ import annotations

from beaufort.training.checkpoint import TrainingFileError
from beaufort.training.data import DecodedData, TrainingData, TrainingTensors, open_training_data
from beaufort.training.ending import failure
from beaufort.training.loop import Training, TrainingProgress, train
from beaufort.training.recipe import Recipe, get_recipe, read_recipe, recipe_names
from beaufort.training.trained import find_trained, load_trained

__all__ = [
    "DecodedData",
    "Recipe",
    "Training",
    "TrainingData",
    "TrainingFileError",
    "TrainingProgress",
    "TrainingTensors",
    "failure",
    "find_trained",
    "get_recipe",
    "load_trained",
    "open_training_data",
    "read_recipe",
    "recipe_names",
    "train",
]

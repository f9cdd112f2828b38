"""Hard test images: categories in unusual surroundings, planned, generated, and kept with how they were made.

`make_plan` crosses categories with nuisances into a list that can be read before it costs anything;
`generate` carries it out with any `Generator`. `CompositeGenerator` puts cut-outs on backgrounds and surfaces
and needs neither a GPU nor weights.
"""

from __future__ import annotations

from beaufort.mining.composite import CompositeGenerator
from beaufort.mining.diffusion import DiffusionGenerator
from beaufort.mining.folder import FolderGenerator
from beaufort.mining.generation import GeneratedImage, generate, read_generated
from beaufort.mining.generators import Generator
from beaufort.mining.nuisances import BUILT_IN, KINDS, read_names
from beaufort.mining.plan import TEMPLATES, MiningError, PlanItem, make_plan, read_plan, write_plan

__all__ = [
    "BUILT_IN",
    "KINDS",
    "TEMPLATES",
    "CompositeGenerator",
    "DiffusionGenerator",
    "FolderGenerator",
    "GeneratedImage",
    "Generator",
    "MiningError",
    "PlanItem",
    "generate",
    "make_plan",
    "read_generated",
    "read_names",
    "read_plan",
    "write_plan",
]

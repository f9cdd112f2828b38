"""Label maps: classes of published data sets, each with the classes of ImageNet that count as it.

They are files of the package, `data/maps/<name>.txt`: a line for each class, its name and its numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from typing import NamedTuple

from beaufort._core.errors import UnknownNameError
from beaufort._core.registry import Registry, unknown
from beaufort.data.labels.matching import Grouping


@dataclass(frozen=True)
class LabelMap:
    """Which of ImageNet's 1,000 classes count as each class of a data set.

    >>> label_maps["objectnet"].outputs[0]
    (409, 530)
    """

    name: str

    @cached_property
    def classes(self) -> tuple[str, ...]:
        """What each class is called: its folder's name where there are folders."""
        return tuple(name for name, _ in _rows(self.name))

    @cached_property
    def outputs(self) -> tuple[tuple[int, ...], ...]:
        """The numbers of each class; none for a class that ImageNet does not have."""
        return tuple(outputs for _, outputs in _rows(self.name))

    @property
    def grouping(self) -> Grouping:
        """Outputs by class, as `find_space` takes them."""
        return dict(_rows(self.name))

    @cached_property
    def class_of(self) -> dict[int, int]:
        """The class, by its place, of each number that belongs to one."""
        return {output: place for place, outputs in enumerate(self.outputs) for output in outputs}


@cache
def _rows(name: str) -> tuple[tuple[str, tuple[int, ...]], ...]:
    text = (files("beaufort.data.labels") / "data" / "maps" / f"{name}.txt").read_text(encoding="utf-8")
    lines = (line.split("\t") for line in text.splitlines() if not line.startswith("#"))
    return tuple((line[0], tuple(map(int, line[1].split()))) for line in lines)


label_maps: Registry[LabelMap] = Registry("label map")
"""Every map by its name."""

for _name in (
    "imagenet-a",
    "imagenet-d",
    "imagenet-r",
    "objectnet",
    "objectnet-125",
    "one-eighth",
    "vid-robust",
    "ytbb-robust",
):
    label_maps.register(_name, LabelMap(_name))


COARSE, IMAGENET_25 = "cifar-100-coarse", "imagenet-25"
_CIFAR = """
aquatic_mammals: seal beaver whale dolphin otter
fish: shark flatfish ray trout aquarium_fish
flowers: tulip rose sunflower orchid poppy
food_containers: can plate bottle bowl cup
fruit_and_vegetables: mushroom apple orange pear sweet_pepper
household_electrical_devices: lamp keyboard clock television telephone
household_furniture: chair couch wardrobe table bed
insects: butterfly cockroach bee beetle caterpillar
large_carnivores: lion wolf leopard bear tiger
large_man-made_outdoor_things: house castle skyscraper bridge road
large_natural_outdoor_scenes: mountain forest sea cloud plain
large_omnivores_and_herbivores: camel chimpanzee cattle elephant kangaroo
medium_mammals: skunk porcupine raccoon possum fox
non-insect_invertebrates: snail crab lobster worm spider
people: boy baby girl man woman
reptiles: dinosaur turtle crocodile snake lizard
small_mammals: rabbit mouse shrew hamster squirrel
trees: palm_tree oak_tree maple_tree pine_tree willow_tree
vehicles_1: bicycle pickup_truck train bus motorcycle
vehicles_2: streetcar rocket lawn_mower tractor tank
"""


class Superclass(NamedTuple):
    """A class and the narrower ones that count as it."""

    name: str
    members: tuple[str, ...]
    """Classes of CIFAR-100 in the order in which they are held out; WordNet ids that ImageNet-1k has."""
    others: tuple[str, ...]
    """WordNet ids that only the full ImageNet has; none for CIFAR-100."""


@cache
def superclasses(name: str) -> tuple[Superclass, ...]:
    """The broad classes of `cifar-100-coarse` or `imagenet-25`, in the order of their labels.

    >>> superclasses("cifar-100-coarse")[0].members
    ('seal', 'beaver', 'whale', 'dolphin', 'otter')
    >>> [sum(map(len, each)) for each in zip(*[one[1:] for one in superclasses("imagenet-25")])]
    [542, 5017]
    """
    if name == COARSE:
        rows = (line.partition(": ") for line in _CIFAR.split("\n") if line)
        return tuple(Superclass(broad, tuple(members.split()), ()) for broad, _, members in rows)
    if name != IMAGENET_25:
        raise UnknownNameError(unknown("list of broad classes", name, {COARSE: (), IMAGENET_25: ()}))
    text = (files("beaufort.data.labels") / "data" / "broad" / f"{name}.txt").read_text(encoding="utf-8")
    lines = (line.split("\t") for line in text.splitlines() if not line.startswith("#"))
    return tuple(Superclass(line[0], *(_wnids(numbers) for numbers in line[1:])) for line in lines)


def _wnids(numbers: str) -> tuple[str, ...]:
    return tuple(f"n{number}" for number in numbers.split())

"""Broad classes and what they are made of: CIFAR-100's 20, and 25 of ImageNet, a file of the package."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import NamedTuple

from beaufort._core.errors import UnknownNameError
from beaufort._core.registry import unknown

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


class BroadClass(NamedTuple):
    """A class and the narrower ones that count as it."""

    name: str
    members: tuple[str, ...]
    """Classes of CIFAR-100 in the order in which they are held out; WordNet ids that ImageNet-1k has."""
    others: tuple[str, ...]
    """WordNet ids that only the full ImageNet has; none for CIFAR-100."""


@cache
def broad_classes(name: str) -> tuple[BroadClass, ...]:
    """The broad classes of `cifar-100-coarse` or `imagenet-25`, in the order of their labels.

    >>> broad_classes("cifar-100-coarse")[0].members
    ('seal', 'beaver', 'whale', 'dolphin', 'otter')
    >>> [sum(map(len, each)) for each in zip(*[one[1:] for one in broad_classes("imagenet-25")])]
    [542, 5017]
    """
    if name == COARSE:
        rows = (line.partition(": ") for line in _CIFAR.split("\n") if line)
        return tuple(BroadClass(broad, tuple(members.split()), ()) for broad, _, members in rows)
    if name != IMAGENET_25:
        raise UnknownNameError(unknown("list of broad classes", name, {COARSE: (), IMAGENET_25: ()}))
    text = (files("beaufort.data.labels") / "data" / "broad" / f"{name}.txt").read_text(encoding="utf-8")
    lines = (line.split("\t") for line in text.splitlines() if not line.startswith("#"))
    return tuple(BroadClass(line[0], *(_wnids(numbers) for numbers in line[1:])) for line in lines)


def _wnids(numbers: str) -> tuple[str, ...]:
    return tuple(f"n{number}" for number in numbers.split())

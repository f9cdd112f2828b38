"""Well-known class lists, and when two names mean the same class."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from importlib.resources import files

from beaufort._core.registry import Registry

IMAGENET = "imagenet-1k"

_CIFAR100 = """
apple aquarium_fish baby bear beaver bed bee beetle bicycle bottle bowl boy bridge bus butterfly camel can
castle caterpillar cattle chair chimpanzee clock cloud cockroach couch crab crocodile cup dinosaur dolphin
elephant flatfish forest fox girl hamster house kangaroo keyboard lamp lawn_mower leopard lion lizard
lobster man maple_tree motorcycle mountain mouse mushroom oak_tree orange orchid otter palm_tree pear
pickup_truck pine_tree plain plate poppy porcupine possum rabbit raccoon ray road rocket rose sea seal
shark shrew skunk skyscraper snail snake spider squirrel streetcar sunflower sweet_pepper table tank
telephone television tiger tractor train trout tulip turtle wardrobe whale willow_tree wolf woman worm
"""

_ICONS = """
airplane arrow_directions ball biking bird blade boat books building bunny_ears cartwheeling clock cloud disk
drinks emotion_face envelope family fast_train feline flag flower footwear golfing hand hat heart
holding_hands japanese_ideograph kiss lock mailbox marine_animals medal money monkey moon mountain numbers
phone prohibit_sign star surfing tree umbrella vehicle water_polo worker wrestling writing_utensil
"""

_COARSE = """
aquatic_mammals fish flowers food_containers fruit_and_vegetables household_electrical_devices
household_furniture insects large_carnivores large_man-made_outdoor_things large_natural_outdoor_scenes
large_omnivores_and_herbivores medium_mammals non-insect_invertebrates people reptiles small_mammals trees
vehicles_1 vehicles_2
"""

_BROAD = """
amphibian appliance aquatic_mammal bird bear beverage big_cat building cat clothing dog electronic_equipment
fish footwear fruit fungus geological_formation hoofed_animal insect musical_instrument primate reptile
utensil vegetable vehicle
"""

class_lists: Registry[tuple[str, ...]] = Registry("label space with names")
"""The class names of label spaces in the order of their labels; ImageNet's are in a file of the package."""

class_lists.register(
    "cifar-10",
    ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"),
)
class_lists.register("mnist", tuple("0123456789"))
class_lists.register("cifar-100", tuple(_CIFAR100.split()))
class_lists.register("icons-50", tuple(_ICONS.split()))
class_lists.register("cifar-100-coarse", tuple(_COARSE.split()))
class_lists.register("imagenet-25", tuple(_BROAD.split()))
class_lists.register(IMAGENET, ())

_WNID = re.compile(r"n\d{8}")
_SHARED = {"n02012849": "crane", "n03126707": "crane", "n02113186": "Cardigan", "n02963159": "cardigan"}
"""What a class is called elsewhere, where the file has another name to tell two classes apart."""
_SHARED |= {"n03710721": "maillot"}


_WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
_DIGITS = {word: str(digit) for digit, word in enumerate(_WORDS)}


@cache
def _imagenet() -> tuple[tuple[str, str], ...]:
    text = (files("beaufort.data.labels") / "data" / f"{IMAGENET}.txt").read_text(encoding="utf-8")
    pairs = (line.partition(" ") for line in text.splitlines())
    return tuple((wnid, name) for wnid, _, name in pairs)


def class_names(label_space: str) -> tuple[str, ...]:
    """The name of every class, no two the same.

    >>> class_names("imagenet-1k")[:2]
    ('tench', 'goldfish')
    """
    return class_lists[label_space] or tuple(name for _, name in _imagenet())


def class_ids(label_space: str) -> tuple[str, ...]:
    """What identifies every class: WordNet ids for ImageNet, names elsewhere.

    >>> class_ids("imagenet-1k")[0]
    'n01440764'
    """
    return class_lists[label_space] or tuple(wnid for wnid, _ in _imagenet())


@cache
def devkit_ids() -> tuple[str, ...]:
    """The WordNet ids of ImageNet's classes as the development kit of ILSVRC2012 numbers them, from 1.

    >>> devkit_ids()[490 - 1]  # its first validation picture has the number 490, a sea snake
    'n01751748'
    """
    text = (files("beaufort.data.labels") / "data" / f"{IMAGENET}-devkit.txt").read_text(encoding="utf-8")
    return tuple(text.split())


@cache
def _by_name() -> dict[str, str]:
    """WordNet ids by plain name, for the names that only one class has, and digits by their words."""
    named = [(wnid, _plain(name)) for wnid, name in _imagenet()]
    named += [(wnid, _plain(name)) for wnid, name in _SHARED.items()]
    counts = Counter(name for _, name in named)
    return {name: wnid for wnid, name in named if counts[name] == 1} | _DIGITS


def same_name(name: str) -> str:
    """One text for all that a class may be called: its WordNet id for classes of ImageNet, else a plain name.

    Case, underscores, hyphens and spaces do not matter; of synonyms after commas, the first counts. A digit
    may be a word.

    >>> same_name("Great_white_shark"), same_name("tench, Tinca tinca"), same_name("My  Class")
    ('n01484850', 'n01440764', 'my class')
    >>> same_name("Seven")
    '7'
    """
    plain = _plain(name)
    if _WNID.fullmatch(plain):
        return plain
    known = _by_name()
    return known.get(plain) or known.get(_plain(name.partition(",")[0])) or plain


def _plain(name: str) -> str:
    return re.sub(r"[\s_-]+", " ", name).strip().casefold()

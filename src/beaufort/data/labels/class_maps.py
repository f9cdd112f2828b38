"""Label maps: classes of published datasets and the ImageNet classes that count as each.

They are files of the package, `data/maps/<name>.txt`: one line per class with its name and numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from typing import NamedTuple

from beaufort._core.registry import Registry
from beaufort._core.validation import validate_choice
from beaufort.data.labels.known_classes import data_rows
from beaufort.data.labels.matching import Grouping


@dataclass(frozen=True)
class LabelMap:
    """Which of ImageNet's 1,000 classes count as each class of a dataset.

    >>> label_maps["objectnet"].outputs[0]
    (409, 530)
    """

    name: str

    @cached_property
    def classes(self) -> tuple[str, ...]:
        """Name of each class, or of its directory."""
        return tuple(name for name, _ in _rows(self.name))

    @cached_property
    def outputs(self) -> tuple[tuple[int, ...], ...]:
        """ImageNet classes of each class; none for a class that ImageNet lacks."""
        return tuple(outputs for _, outputs in _rows(self.name))

    @property
    def grouping(self) -> Grouping:
        """Outputs by class, as `find_label_space` takes them."""
        return dict(_rows(self.name))

    @cached_property
    def class_of(self) -> dict[int, int]:
        """Class index by ImageNet class."""
        return {output: place for place, outputs in enumerate(self.outputs) for output in outputs}


@cache
def _rows(name: str) -> tuple[tuple[str, tuple[int, ...]], ...]:
    return tuple((line[0], tuple(map(int, line[1].split()))) for line in data_rows(f"maps/{name}.txt"))


label_maps: Registry[LabelMap] = Registry("label map")
"""All maps by name."""

for _name in (
    *("imagenet-a", "imagenet-d", "imagenet-r", "objectnet", "objectnet-125"),
    *("one-eighth", "vid-robust", "ytbb-robust"),
):
    label_maps.register(_name, LabelMap(_name))

_COARSE, _IMAGENET_25 = "cifar-100-coarse", "imagenet-25"


class Superclass(NamedTuple):
    """A class and the narrower classes that it contains."""

    name: str
    members: tuple[str, ...]
    """Classes of CIFAR-100 in the order in which they are held out, or WordNet ids of ImageNet-1k."""
    others: tuple[str, ...]
    """WordNet ids of the full ImageNet alone; none for CIFAR-100."""


@cache
def superclasses(name: str) -> tuple[Superclass, ...]:
    """Return the superclasses of `cifar-100-coarse` or `imagenet-25` in the order of their labels.

    >>> superclasses("cifar-100-coarse")[0].members
    ('seal', 'beaver', 'whale', 'dolphin', 'otter')
    >>> [sum(map(len, each)) for each in zip(*[one[1:] for one in superclasses("imagenet-25")])]
    [542, 5017]
    """
    validate_choice("list of superclasses", name, (_COARSE, _IMAGENET_25))
    start = "n" if name == _IMAGENET_25 else ""  # of WordNet ids
    found = []
    for broad, *lists in data_rows(f"broad/{name}.txt"):
        members, others = ([f"{start}{one}" for one in some.split()] for some in (*lists, "")[:2])
        found.append(Superclass(broad, tuple(members), tuple(others)))
    return tuple(found)

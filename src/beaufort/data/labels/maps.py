"""Label maps: classes of published data sets, each with the classes of ImageNet that count as it.

They are files of the package, `data/maps/<name>.txt`: a line for each class, its name and its numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files

from beaufort._core.registry import Registry
from beaufort.data.labels.find import Grouping


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

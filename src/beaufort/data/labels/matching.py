"""Matching of the labels of a dataset with the outputs of a model.

Labels given as numbers are indices of outputs. Labels that are only indices of sorted names, such as class
directories, are matched by name if both sides have names. Ambiguous cases are rejected.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from beaufort._core.files import read_json
from beaufort._core.text import counted
from beaufort.data.labels.known_classes import IMAGENET, class_ids, class_key, class_lists, class_names
from beaufort.data.labels.space import LabelError, LabelSpace, check_convention

IDENTITY = "identity"
"""Name of the space in which label i means output i."""

Grouping = Mapping[str, Sequence[int | str]]
"""Outputs by class, each a number or a name."""

_FORM = f"{IDENTITY!r}, or a JSON file with a list of outputs for each class"
_NAME = "pass --classes FILE with a name for each output"
_GROUP = "pass --labels FILE.json with the outputs of each class"
_INSIST = f"pass --labels {IDENTITY} if labels are indices of outputs"

_PLACEHOLDER = re.compile(r"(label|class|output)?[ _-]*\d+", re.IGNORECASE)


@dataclass(frozen=True)
class DatasetLabels:
    """The classes of a dataset."""

    name: str
    classes: tuple[str, ...]
    used: NDArray[np.int64]
    """The labels that occur, without duplicates."""
    by_name: bool = False
    """Whether labels are indices into the sorted class names, rather than numbers given by the source."""

    @property
    def numbers(self) -> tuple[int, ...] | None:
        """The class names as numbers, if all are numbers."""
        whole = all(name.isascii() and name.isdecimal() and len(name) < 10 for name in self.classes)
        return tuple(map(int, self.classes)) if whole else None

    def named(self, label: int) -> bool:
        """Return whether a class has a name other than its number."""
        return self.classes[label] != str(label)


@dataclass(frozen=True)
class ModelOutputs:
    """The outputs of a model."""

    model: str
    count: int | None
    names: tuple[str, ...] | None = None
    label_space: str | None = None
    """A name of `class_lists`, or another text."""
    suite_space: str | None = None
    """The class list of the suite, which the outputs may have if the model does not name them."""
    outcomes: int = 0
    """Number of outputs after the classes, as of `LabelSpace`."""

    @property
    def description(self) -> str:
        """The list of outputs in messages."""
        return self.label_space or f"the outputs of {self.model}"

    def sure_names(self) -> list[set[str]] | None:
        """Return the names of each output that the model states; None if it states none."""
        space = IMAGENET if self.names == class_names(IMAGENET) else self.label_space
        ids = class_ids(space) if space is not None and space in class_lists else None
        if ids is not None and len(ids) != self.count:
            ids = None
        if self.names is None or all(_PLACEHOLDER.fullmatch(name) for name in self.names):
            if ids is None and self.names is not None and self.numbered:
                return [{name} for name in self.names]
            return None if ids is None else [{class_key(one)} for one in ids]
        found = [{class_key(name)} for name in self.names]
        known = frozenset(class_ids(IMAGENET))
        for place, one in enumerate(ids or ()):
            if not found[place] & known:  # a name that ImageNet's list lacks or has twice
                found[place].add(class_key(one))
        return found

    @property
    def numbered(self) -> bool:
        """Whether the names of outputs are numbers, as for digits."""
        return self.names is not None and all(name.isdecimal() for name in self.names)

    def possible_names(self, used: Iterable[str]) -> list[set[str]] | None:
        """Return the names of a list, of the suite or of ImageNet, that contains all of some classes."""
        wanted = {class_key(name) for name in used}
        return next((names for names in self._lists().values() if wanted <= set().union(*names)), None)

    def likely_names(self, used: Iterable[str]) -> tuple[str, list[set[str]]] | None:
        """Return a list that contains half of some classes, with its name; the others may be misspelled."""
        wanted = {class_key(name) for name in used}
        for space, names in self._lists().items():
            if 2 * len(wanted & set().union(*names)) >= len(wanted):
                return space, names
        return None

    def _lists(self) -> dict[str, list[set[str]]]:
        """Return the lists with as many classes as there are outputs, that of the suite first."""
        spaces = [
            space for space in (self.suite_space, IMAGENET) if space is not None and space in class_lists
        ]
        return {
            space: [{class_key(one)} for one in class_ids(space)]
            for space in spaces
            if len(class_ids(space)) == self.count
        }


def find_label_space(
    data: DatasetLabels,
    outputs: ModelOutputs,
    *,
    labels: str | Path | Grouping | LabelSpace | None = None,
    convention: str | None = None,
) -> LabelSpace:
    """Return the label space of a model on a dataset; raise a `LabelError` with solutions if there is none.

    Args:
        data: the classes of the dataset.
        outputs: the outputs of the model.
        labels: `identity`; outputs by class, or a JSON file of them; a space; by default, matched by names.
        convention: `restricted` by default.
    """
    if outputs.outcomes and not (isinstance(labels, LabelSpace) and labels.outcomes):
        assert outputs.count is not None
        names = None if outputs.names is None else outputs.names[: -outputs.outcomes]
        of_classes = replace(outputs, count=outputs.count - outputs.outcomes, names=names, outcomes=0)
        found = find_label_space(data, of_classes, labels=labels, convention=convention)
        return replace(found, count=outputs.count, outcomes=outputs.outcomes)
    found = _space(data, outputs, labels)
    if convention is not None:
        check_convention(convention)
        fewer = outputs.count is not None and len(data.classes) < outputs.count
        if found.identity and convention == "restricted" and fewer:
            raise LabelError(
                f"convention 'restricted' requires a label space, but labels of {data.name} are indices of "
                f"outputs of {outputs.model}",
                _GROUP,
            )
        found = replace(found, convention=convention)
    if found.identity and outputs.count is not None and int(data.used.max(initial=0)) >= outputs.count:
        raise LabelError(
            f"labels of {data.name} must be below {outputs.count}, the number of outputs of {outputs.model}, "
            f"got {int(data.used.max())}"
        )
    return found


def _space(
    data: DatasetLabels, outputs: ModelOutputs, labels: str | Path | Grouping | LabelSpace | None
) -> LabelSpace:
    if isinstance(labels, LabelSpace):
        if labels.count not in (None, outputs.count):
            raise LabelError(
                f"the label space must have {outputs.count} outputs, as {outputs.model}, got {labels.count}"
            )
        if labels.outputs is not None and int(data.used.max(initial=0)) >= len(labels.outputs):
            raise LabelError(
                f"the label space must have all classes of {data.name}, got {len(labels.outputs)} for "
                f"labels up to {int(data.used.max())}"
            )
        return labels
    if labels == IDENTITY:
        return LabelSpace(outputs.count)
    if labels is not None:
        grouping = read_grouping(labels) if isinstance(labels, str | Path) else labels
        if not _is_grouping(grouping):
            raise LabelError(f"labels must be {_FORM}, got {labels!r:.80}")
        return _grouped(data, outputs, grouping)
    if outputs.count is None:
        return LabelSpace()
    return _by_names(data, outputs) if data.by_name else _by_numbers(data, outputs)


# Labels that are indices of sorted names


def _by_names(data: DatasetLabels, outputs: ModelOutputs) -> LabelSpace:
    assert outputs.count is not None
    used = data.used.tolist()
    if (numbers := data.numbers) is not None and not outputs.numbered:
        return _by_numbered_names(data, outputs, numbers)
    names = outputs.sure_names() or outputs.possible_names(data.classes[label] for label in used)
    if names is None:
        return _by_order(data, outputs)
    places = _matches(data, names)
    if any(label not in places for label in used):
        raise _unmatched(data, outputs.description, places)
    return _singles(outputs.count, len(data.classes), places)


def _by_order(data: DatasetLabels, outputs: ModelOutputs) -> LabelSpace:
    """Match by sorted order, unless most names are of a list with another order, or digits in words."""
    likely = outputs.likely_names(data.classes[label] for label in data.used.tolist())
    known, names = likely or ("", [])
    places = _matches(data, names)
    digits = [class_key(name) for name in data.classes]
    if all(map(str.isdecimal, digits)) and digits != sorted(digits):
        raise _unnamed(data, outputs)
    if len(data.classes) == outputs.count and all(label == place for label, place in places.items()):
        return LabelSpace(outputs.count)
    raise _unmatched(data, known, places) if places else _unnamed(data, outputs)


def _unmatched(data: DatasetLabels, known: str, places: Mapping[int, int]) -> LabelError:
    unmatched = [data.classes[label] for label in data.used.tolist() if label not in places]
    use = "WordNet ids or class names" if known == IMAGENET else "its names"
    return LabelError(
        f"{len(unmatched)} of {len(data.used)} classes of {data.name} match no class of {known!r}, or "
        f"several (first: {unmatched[0]!r})",
        *(f"use {use}", _NAME, _GROUP, _INSIST),
    )


def _by_numbered_names(data: DatasetLabels, outputs: ModelOutputs, numbers: tuple[int, ...]) -> LabelSpace:
    """Match names that are numbers with outputs, if both have the same order."""
    assert outputs.count is not None
    if max(numbers) < outputs.count and len(set(numbers)) == len(numbers):
        in_order = numbers == tuple(range(outputs.count))
        if in_order or len(numbers) < outputs.count:
            return _singles(outputs.count, len(numbers), dict(enumerate(numbers)))
    raise LabelError(
        f"class names of {data.name} are numbers ({', '.join(data.classes[:4])} …) that do not match the "
        f"{outputs.count} outputs of {outputs.model} in this order",
        *(_NAME, _GROUP, _INSIST),
    )


# Labels that are numbers


def _by_numbers(data: DatasetLabels, outputs: ModelOutputs) -> LabelSpace:
    """Match by index, unless the names of both sides contradict it."""
    assert outputs.count is not None
    identity = LabelSpace(outputs.count)
    used = data.used.tolist()
    named = [label for label in used if data.named(label)]
    if not named:
        return identity
    names = outputs.sure_names() or outputs.possible_names(data.classes[label] for label in named)
    places = {} if names is None else _matches(data, names)
    agree = [label for label in named if places.get(label) == label]
    differ = [label for label in named if places.get(label, label) != label]
    if not differ and (agree or len(data.classes) >= outputs.count):
        return identity
    if differ and all(label in places for label in used):
        return _singles(outputs.count, len(data.classes), places)
    if differ:
        label = differ[0]
        raise LabelError(
            f"class {label} of {data.name} is {data.classes[label]!r}, which is class {places[label]} of "
            f"{outputs.description!r}, and other names match no class",
            *("use the same class names", _GROUP, _INSIST),
        )
    if len(named) < len(data.classes):
        return identity  # a list with gaps is a part of a larger one
    raise _unnamed(data, outputs)


def _unnamed(data: DatasetLabels, outputs: ModelOutputs) -> LabelError:
    return LabelError(
        f"cannot match {counted(len(data.classes), 'class', 'classes')} of {data.name} (first: "
        f"{data.classes[0]!r}) with {outputs.count} outputs of {outputs.model}",
        *(_NAME, _GROUP, _INSIST),
    )


# Outputs by class


def _grouped(data: DatasetLabels, outputs: ModelOutputs, grouping: Grouping) -> LabelSpace:
    if outputs.count is None:
        raise LabelError(
            f"a label space requires the number of outputs of {outputs.model}; load it with classes="
        )
    wanted = [one for some in grouping.values() for one in some if isinstance(one, str)]
    places = _places(outputs.sure_names() or outputs.possible_names(wanted) or [])
    if unknown := [one for one in wanted if class_key(one) not in places]:
        raise LabelError(
            f"{len(unknown)} outputs of the label space are not in {outputs.description!r} (first: "
            f"{unknown[0]!r})",
            *("use numbers or names of outputs", _NAME),
        )
    first: dict[str, str] = {}
    for name in grouping:
        if (other := first.setdefault(class_key(name), name)) != name:
            raise LabelError(f"{other!r} and {name!r} in the label space are the same class")
    rows = {
        class_key(name): tuple(places[class_key(one)] if isinstance(one, str) else one for one in some)
        for name, some in grouping.items()
    }
    used = [data.classes[label] for label in data.used.tolist()]
    if missing := [name for name in used if class_key(name) not in rows]:
        raise LabelError(
            f"the label space lacks {counted(len(missing), 'class', 'classes')} of {data.name} (first: "
            f"{missing[0]!r})",
            "use an empty list for a class that the model cannot predict",
        )
    return LabelSpace(outputs.count, tuple(rows.get(class_key(name), ()) for name in data.classes))


def read_grouping(path: str | Path) -> Grouping:
    """Read outputs by class from a JSON file: `{"dog": ["n02085620", 152], "cat": [281, 282]}`."""
    try:
        found = read_json(Path(path), LabelError)
    except LabelError as error:
        raise LabelError(f"labels must be {_FORM}; {error}") from None
    if not _is_grouping(found) or not found:
        raise LabelError(f"labels must be {_FORM}; {path} contains other JSON")
    return {name: tuple(some) for name, some in found.items()}


def _is_grouping(found: object) -> bool:
    """Return whether an object has a list of numbers and names for each class."""
    return isinstance(found, Mapping) and all(
        isinstance(name, str)
        and isinstance(some, Collection)
        and not isinstance(some, str | bytes | Mapping)
        and all(isinstance(one, str | Integral) and not isinstance(one, bool) for one in some)
        for name, some in found.items()
    )


# Names


def _places(names: Sequence[set[str]]) -> dict[str, int]:
    """Return outputs by name, for the names that are unique."""
    found: dict[str, int] = {}
    shared: set[str] = set()
    for place, some in enumerate(names):
        for name in some:
            if found.setdefault(name, place) != place:
                shared.add(name)
    return {name: place for name, place in found.items() if name not in shared}


def _matches(data: DatasetLabels, names: Sequence[set[str]]) -> dict[int, int]:
    """Return the output of each label whose name is that of one output and no other label."""
    places = _places(names)
    found = {
        label: places[class_key(name)] for label, name in enumerate(data.classes) if class_key(name) in places
    }
    taken = Counter(found.values())
    return {label: place for label, place in found.items() if taken[place] == 1}


def _singles(count: int, classes: int, places: Mapping[int, int]) -> LabelSpace:
    return LabelSpace(count, tuple((places[label],) if label in places else () for label in range(classes)))

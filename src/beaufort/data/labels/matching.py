"""How the labels of a data set and the outputs of a model come together.

Numbers that someone chose are numbers of outputs. Numbers that are only places of names in a sorted list
(class folders) are not: there the names decide, if both sides have some. What cannot be decided is refused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from numbers import Integral
from pathlib import Path

from beaufort._core.files import read_json
from beaufort._core.text import counted
from beaufort.data.labels.known_classes import IMAGENET, class_key
from beaufort.data.labels.outputs import DatasetLabels, ModelOutputs
from beaufort.data.labels.space import LabelError, LabelSpace, check_convention

IDENTITY = "identity"
"""Name of the space in which label i means output i."""

Grouping = Mapping[str, Sequence[int | str]]
"""Outputs by class, each a number or a name."""

_FORM = f"{IDENTITY!r}, or a JSON file with a list of outputs for each class"
_NAME = "pass --classes FILE with a name for each output"
_GROUP = "pass --labels FILE.json with the outputs of each class"
_INSIST = f"pass --labels {IDENTITY} to insist that labels are numbers of outputs"


def find_label_space(
    data: DatasetLabels,
    outputs: ModelOutputs,
    *,
    labels: str | Path | Grouping | LabelSpace | None = None,
    convention: str | None = None,
) -> LabelSpace:
    """The space in which a model answers for a data set; a `LabelError` with a way out if there is none.

    Args:
        data: the data set's side.
        outputs: the model's side.
        labels: `identity`; outputs by class, or a JSON file of them; a space; or None, to be found by names.
        convention: `restricted` if None.
    """
    found = _space(data, outputs, labels)
    if convention is not None:
        check_convention(convention)
        fewer = outputs.count is not None and len(data.classes) < outputs.count
        if found.identity and convention == "restricted" and fewer:
            raise LabelError(
                f"convention 'restricted' needs to know which outputs of {outputs.model} are classes of "
                f"{data.name}, got labels that are numbers of outputs",
                _GROUP,
            )
        found = LabelSpace(found.count, found.outputs, convention)
    if found.identity and outputs.count is not None and int(data.used.max(initial=0)) >= outputs.count:
        raise LabelError(
            f"labels must be below {outputs.count}, the number of outputs of {outputs.model}, got labels up "
            f"to {int(data.used.max())} in {data.name}; use a model of these classes"
        )
    return found


def _space(
    data: DatasetLabels, outputs: ModelOutputs, labels: str | Path | Grouping | LabelSpace | None
) -> LabelSpace:
    if isinstance(labels, LabelSpace):
        if labels.count not in (None, outputs.count):
            raise LabelError(
                f"the label space must be of {outputs.count} outputs, those of {outputs.model}, got "
                f"{labels.count}"
            )
        if labels.outputs is not None and int(data.used.max(initial=0)) >= len(labels.outputs):
            raise LabelError(
                f"the label space must have every class of {data.name}, got {len(labels.outputs)} for labels "
                f"up to {int(data.used.max())}"
            )
        return labels
    if labels == IDENTITY:
        return LabelSpace(outputs.count)
    if labels is not None:
        grouping = read_grouping(labels) if isinstance(labels, str | Path) else labels
        if not _is_grouping(grouping):
            raise LabelError(f"labels must be {_FORM}, or such lists by class, got {labels!r:.80}")
        return _grouped(data, outputs, grouping)
    if outputs.count is None:
        return LabelSpace()
    return _by_names(data, outputs) if data.by_name else _by_numbers(data, outputs)


# Labels that are places of names


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
        raise _lost(data, outputs.known, places)
    return _singles(outputs.count, len(data.classes), places)


def _by_order(data: DatasetLabels, outputs: ModelOutputs) -> LabelSpace:
    """The sorted order of the names, unless most are of a list with another order, or are digits in words."""
    likely = outputs.likely_names(data.classes[label] for label in data.used.tolist())
    known, names = likely or ("", [])
    places = _matches(data, names)
    digits = [class_key(name) for name in data.classes]
    if all(map(str.isdecimal, digits)) and digits != sorted(digits):
        raise _unnamed(data, outputs)
    if len(data.classes) == outputs.count and all(label == place for label, place in places.items()):
        return LabelSpace(outputs.count)
    raise _lost(data, known, places) if places else _unnamed(data, outputs)


def _lost(data: DatasetLabels, known: str, places: Mapping[int, int]) -> LabelError:
    lost = [data.classes[label] for label in data.used.tolist() if label not in places]
    use = "WNIDs or class names" if known == IMAGENET else "its names"
    return LabelError(
        f"{len(lost)} of {len(data.used)} classes of {data.name} match no class of {known!r}, or several "
        f"(first: {lost[0]!r})",
        *(f"use {use}", _NAME, _GROUP, _INSIST),
    )


def _by_numbered_names(data: DatasetLabels, outputs: ModelOutputs, numbers: tuple[int, ...]) -> LabelSpace:
    """Folders called by numbers: those of outputs, unless that is not the order that sorted names have."""
    assert outputs.count is not None
    if max(numbers) < outputs.count and len(set(numbers)) == len(numbers):
        in_order = numbers == tuple(range(outputs.count))
        if in_order or len(numbers) < outputs.count:
            return _singles(outputs.count, len(numbers), dict(enumerate(numbers)))
    raise LabelError(
        f"classes of {data.name} are called by numbers ({', '.join(data.classes[:4])} …) that are not those "
        f"of the {outputs.count} outputs of {outputs.model} in the same order",
        *(_NAME, _GROUP, f"{_INSIST} in that sorted order"),
    )


# Labels that are numbers


def _by_numbers(data: DatasetLabels, outputs: ModelOutputs) -> LabelSpace:
    """Numbers of outputs, unless the names of both sides say otherwise."""
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
            f"{data.name} has {data.classes[label]!r} as class {label}, and in {outputs.known!r} that is "
            f"class {places[label]}, while other names match nothing",
            *("make them alike", _GROUP, _INSIST),
        )
    if len(named) < len(data.classes):
        return identity  # a list with gaps has the numbers of a larger one
    raise _unnamed(data, outputs)


def _unnamed(data: DatasetLabels, outputs: ModelOutputs) -> LabelError:
    return LabelError(
        f"{data.name} has {counted(len(data.classes), 'class', 'classes')} (first: {data.classes[0]!r}), "
        f"{outputs.model} has {outputs.count} outputs, and nothing says which of them belong together",
        *(_NAME, _GROUP, _INSIST),
    )


# Outputs by class


def _grouped(data: DatasetLabels, outputs: ModelOutputs, grouping: Grouping) -> LabelSpace:
    if outputs.count is None:
        raise LabelError(
            f"a label space needs the number of outputs of {outputs.model}; load it with classes="
        )
    wanted = [one for some in grouping.values() for one in some if isinstance(one, str)]
    places = _places(outputs.sure_names() or outputs.possible_names(wanted) or [])
    if lost := [one for one in wanted if class_key(one) not in places]:
        raise LabelError(
            f"outputs of the label space must be of {outputs.known!r}, got {len(lost)} that are not (first: "
            f"{lost[0]!r})",
            *("use numbers or names of outputs", _NAME),
        )
    meant: dict[str, str] = {}
    for name in grouping:
        if (other := meant.setdefault(class_key(name), name)) != name:
            raise LabelError(
                f"classes of the label space must be distinct, got {other!r} and {name!r}, which mean the "
                "same"
            )
    rows = {
        class_key(name): tuple(places[class_key(one)] if isinstance(one, str) else one for one in some)
        for name, some in grouping.items()
    }
    used = [data.classes[label] for label in data.used.tolist()]
    if missing := [name for name in used if class_key(name) not in rows]:
        raise LabelError(
            f"the label space must have every class of {data.name} by its name, got {len(missing)} too few "
            f"(first: {missing[0]!r})",
            "give an empty list to a class that the model cannot answer",
        )
    return LabelSpace(outputs.count, tuple(rows.get(class_key(name), ()) for name in data.classes))


def read_grouping(path: str | Path) -> Grouping:
    """Outputs by class from a JSON file: `{"dog": ["n02085620", 152], "cat": [281, 282]}`."""
    try:
        found = read_json(Path(path), LabelError)
    except LabelError as error:
        raise LabelError(f"labels must be {_FORM}; {error}") from None
    if not _is_grouping(found) or not found:
        raise LabelError(f"labels must be {_FORM}, got {path} with other contents")
    return {name: tuple(some) for name, some in found.items()}


def _is_grouping(found: object) -> bool:
    """Whether it has a list of numbers and names for each class."""
    return isinstance(found, Mapping) and all(
        isinstance(name, str)
        and isinstance(some, Collection)
        and not isinstance(some, str | bytes | Mapping)
        and all(isinstance(one, str | Integral) and not isinstance(one, bool) for one in some)
        for name, some in found.items()
    )


# Names


def _places(names: Sequence[set[str]]) -> dict[str, int]:
    """Outputs by name, for the names that only one of them has."""
    found: dict[str, int] = {}
    shared: set[str] = set()
    for place, some in enumerate(names):
        for name in some:
            if found.setdefault(name, place) != place:
                shared.add(name)
    return {name: place for name, place in found.items() if name not in shared}


def _matches(data: DatasetLabels, names: Sequence[set[str]]) -> dict[int, int]:
    """The output of each label whose name is that of an output, and of no other label's."""
    places = _places(names)
    found = {
        label: places[class_key(name)] for label, name in enumerate(data.classes) if class_key(name) in places
    }
    taken = Counter(found.values())
    return {label: place for label, place in found.items() if taken[place] == 1}


def _singles(count: int, classes: int, places: Mapping[int, int]) -> LabelSpace:
    return LabelSpace(count, tuple((places[label],) if label in places else () for label in range(classes)))

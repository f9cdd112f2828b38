"""Images of a table in two: those to train on, and those of which a model knows only the class."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from beaufort._core.errors import OptionError, UnknownNameError
from beaufort._core.registry import Registry, unknown_message
from beaufort.data.labels import superclasses


class ImageTable(Protocol):
    """Images by number, with what is known about each; a `Dataset` is one."""

    @property
    def name(self) -> str: ...

    @property
    def ids(self) -> Sequence[str]:
        """What each image is called: its path, where it has one."""

    @property
    def labels(self) -> NDArray[np.int64]: ...

    def column(self, name: str) -> list[str]:
        """For each image its value in a column; an `UnknownNameError` if there is no such column."""


@dataclass(frozen=True, eq=False)
class Split:
    """Numbers of the images to train on, and of those that are held out, each in the order of the table."""

    name: str
    """What is held out: `style=microsoft`."""
    train: NDArray[np.int64]
    test: NDArray[np.int64]
    answerable: NDArray[np.bool_]
    """For each image of `test` whether any image of `train` has its class."""

    @cached_property
    def unanswerable(self) -> int:
        """Held-out images whose class is not in training: no model can get them right."""
        return int((~self.answerable).sum())

    @property
    def cap(self) -> float:
        """The highest accuracy on `test` that a model trained on `train` can have."""
        return 1 - self.unanswerable / len(self.test)


def hold_out(table: ImageTable, column: str, values: str | Iterable[str]) -> Split:
    """Hold out the images that have one of some values in a column.

    Args:
        table: a `Dataset`, or anything with the members of a `ImageTable`.
        column: `class`, or any other that the table has.
        values: a value of the column, or several.
    """
    wanted = (values,) if isinstance(values, str) else tuple(values)
    cells = _cells(table, column)
    known = dict.fromkeys(sorted(set(cells)))
    for value in wanted:
        if value not in known:
            raise UnknownNameError(unknown_message(f"{column} of {table.name}", value, known))
    return split_by(table, f"{column}={','.join(wanted)}", np.isin(np.array(cells), wanted))


def leave_one_out(table: ImageTable, column: str) -> dict[str, Split]:
    """For each value of a column, in sorted order, the split that holds out its images."""
    return {value: hold_out(table, column, value) for value in sorted(set(_cells(table, column)))}


def split_by(table: ImageTable, name: str, held_out: NDArray[np.bool_]) -> Split:
    """The split in which some images, one bool for each of the table's, are held out."""
    for side, count in (("train on", int((~held_out).sum())), ("test on", int(held_out.sum()))):
        if not count:
            raise OptionError(f"{name} must leave images of {table.name} to {side}, got none")
    train, test = np.flatnonzero(~held_out), np.flatnonzero(held_out)
    answerable = np.isin(table.labels[test], table.labels[train])
    return Split(name, train.astype(np.int64), test.astype(np.int64), answerable)


def _cells(table: ImageTable, column: str) -> list[str]:
    """The values of a column that tells images apart."""
    cells = table.column(column)
    if empty := [place for place, cell in enumerate(cells) if not cell]:
        raise OptionError(
            f"column {column!r} of {table.name} must have a value for each image, got none for {len(empty)} "
            f"(first: {table.ids[empty[0]]}); where it is not known, write a word as unknown"
        )
    if len(set(cells)) < 2:
        got = f"one, {cells[0]!r}, for all {len(cells)} images" if cells else "no images"
        raise OptionError(f"column {column!r} of {table.name} must have two values or more, got {got}")
    return cells


Matching = Literal["equal", "named", "path"]


@dataclass(frozen=True)
class HoldOutProtocol:
    """A rule that says which images are held out.

    An image is held out if its value in a column is one of some values. What that means is the `matching`:

    * `equal`: the value is equal to one of them;
    * `named`: the same, but one that no image has stands for all values that it is a part of;
    * `path`: one of them is a part of the image's path, folders included, whatever the column.
    """

    name: str
    column: str
    values: tuple[str, ...]
    matching: Matching = "equal"
    about: str = ""

    def split(self, table: ImageTable, *, held_out: str | None = None) -> Split:
        """The images to train on and those that are held out.

        Args:
            table: a `Dataset` with the protocol's column.
            held_out: another value than the published ones, where the protocol has one: any style.
        """
        chosen = self.values if held_out is None else (held_out,)
        if held_out is not None and len(self.values) != 1:
            raise OptionError(
                f"held_out must not be given for {self.name}, which holds out {len(self.values)} names, got "
                f"{held_out!r}"
            )
        cells = np.array(table.column(self.column))
        held = _inside(np.array(table.ids), chosen) if self.matching == "path" else self._held(cells, chosen)
        if not held.any():
            known = dict.fromkeys(sorted(set(cells.tolist())))
            raise UnknownNameError(unknown_message(f"{self.column} of {table.name}", chosen[0], known))
        name = self.name if held_out is None else f"{self.column}={held_out}"
        return split_by(table, name, held)

    def _held(self, cells: NDArray[np.str_], chosen: tuple[str, ...]) -> NDArray[np.bool_]:
        held: NDArray[np.bool_] = np.isin(cells, chosen)
        if self.matching == "named":
            there = set(cells.tolist())
            held |= _inside(cells, tuple(value for value in chosen if value not in there))
        return held


def _inside(texts: NDArray[np.str_], parts: tuple[str, ...]) -> NDArray[np.bool_]:
    """Which texts have one of some parts in them."""
    held = np.zeros(len(texts), np.bool_)
    for part in parts:
        held |= np.char.find(texts, part) >= 0
    return held


_NAMES = """
small_airplane top_with_upwards_arrow_above soccer_ball duck hatching_chick crossed_swords passenger_ship
ledger books derelict_house_building convenience_store rabbit_face cartwheel_type_6 mantelpiece_clock watch
sun_behind_cloud_with_rain wine_glass face_throwing_a_kiss e_mail_symbol family_man_boy family_man_girl
family_man_boy_boy family_man_girl_boy family_man_girl_girl monorail leopard chequered_flag tulip
womans_sandal victory_hand womans_hat broken_heart unified_ideograph_5408 circled_ideograph_accept
closed_lock_with_key open_mailbox_with_lowered_flag shark military_medal banknote_with_dollar_sign monkey
crescent_moon mount_fuji mobile_phone_off no_smoking_symbol glowing_star evergreen_tree
umbrella_with_rain_drops racing_car factory_worker pencil
"""
_SUBTYPES = tuple(_NAMES.split())
"""The names that the paper holds out. Four are no subtype by themselves, but a part of 16 subtypes' names."""

protocols: Registry[HoldOutProtocol] = Registry("protocol")
"""Every published protocol by its name."""

for _protocol in (
    HoldOutProtocol(
        "icons-50-style", "style", ("microsoft",), about="one vendor's icons, Microsoft's as published"
    ),
    HoldOutProtocol("icons-50-subtype", "subtype", _SUBTYPES, "named", about="62 subtypes, by 50 names"),
    HoldOutProtocol(
        "icons-50-subtype-released",
        "subtype",
        _SUBTYPES,
        "path",
        about="the same names anywhere in the path, as the released program looks for them",
    ),
    HoldOutProtocol("icons-50-traditional", "version", ("2",), about="rendition 2 of an icon"),
    HoldOutProtocol(
        "icons-50-traditional-released",
        "version",
        ("_2",),
        "path",
        about="_2 anywhere in the path, as the released program looks for it",
    ),
    *(
        HoldOutProtocol(
            f"cifar-100-coarse-{count}",
            "subtype",
            tuple(name for one in superclasses("cifar-100-coarse") for name in one.members[:count]),
            about=f"{count} of the five classes in each broad class of CIFAR-100",
        )
        for count in range(1, 5)
    ),
    HoldOutProtocol("imagenet-25", "part", ("unseen",), about="synsets that ImageNet-1k does not have"),
):
    protocols.register(_protocol.name, _protocol)

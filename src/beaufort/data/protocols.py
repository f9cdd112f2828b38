"""Splits of a dataset into training images and held-out images, by a column or a published protocol."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from beaufort._core.errors import OptionError
from beaufort._core.registry import Registry
from beaufort._core.validation import validate_choice
from beaufort.data._checks import check_none_missing
from beaufort.data.labels import superclasses


class ImageTable(Protocol):
    """Images with labels and columns; a `Dataset` is one."""

    @property
    def name(self) -> str: ...

    @property
    def ids(self) -> Sequence[str]: ...

    @property
    def labels(self) -> NDArray[np.int64]: ...

    def column(self, name: str) -> list[str]:
        """Return the value of each image in a column; raise an `UnknownNameError` for unknown columns."""


@dataclass(frozen=True, eq=False)
class Split:
    """Indices of the training images and of the held-out images, in the order of the table."""

    name: str
    """Description of the held-out images, such as `style=microsoft`."""
    train: NDArray[np.int64]
    test: NDArray[np.int64]
    has_trained_class: NDArray[np.bool_]
    """Whether the class of each held-out image occurs among the training images."""

    @cached_property
    def untrained(self) -> int:
        """Number of held-out images whose class is not in training, so that no model can predict it."""
        return int((~self.has_trained_class).sum())

    @property
    def cap(self) -> float:
        """The highest possible accuracy on `test` of a model trained on `train`."""
        return 1 - self.untrained / len(self.test)


def hold_out(table: ImageTable, column: str, values: str | Iterable[str]) -> Split:
    """Hold out the images with one of some values in a column.

    Args:
        table: a `Dataset`, or another `ImageTable`.
        column: `class`, or a column of the table.
        values: one or several values of the column.
    """
    wanted = (values,) if isinstance(values, str) else tuple(values)
    cells = _cells(table, column)
    for value in wanted:
        validate_choice(f"{column} of {table.name}", value, sorted(set(cells)))
    return split_by(table, f"{column}={','.join(wanted)}", np.isin(np.array(cells), wanted))


def leave_one_out(table: ImageTable, column: str) -> dict[str, Split]:
    """Return the split that holds out the images of each value of a column, in sorted order."""
    return {value: hold_out(table, column, value) for value in sorted(set(_cells(table, column)))}


def split_by(table: ImageTable, name: str, held_out: NDArray[np.bool_]) -> Split:
    """Return the split that holds out the images selected by a mask."""
    train, test = np.flatnonzero(~held_out), np.flatnonzero(held_out)
    if not len(train) or not len(test):
        raise OptionError(
            f"{name} leaves no images of {table.name} to {'test' if len(train) else 'train'} on"
        )
    has_trained_class = np.isin(table.labels[test], table.labels[train])
    return Split(name, train.astype(np.int64), test.astype(np.int64), has_trained_class)


def _cells(table: ImageTable, column: str) -> list[str]:
    """Return the values of a column, of which there are at least two."""
    cells = table.column(column)
    empty = [id for id, cell in zip(table.ids, cells, strict=True) if not cell]
    check_none_missing(
        f"values in column {column!r} of {table.name}",
        empty,
        len(cells),
        hint="; write a word such as 'unknown'",
        error=OptionError,
    )
    if len(set(cells)) < 2:
        got = f"only {cells[0]!r}" if cells else "no images"
        raise OptionError(f"column {column!r} of {table.name} must have at least two values, got {got}")
    return cells


Matching = Literal["equal", "named", "path"]


@dataclass(frozen=True)
class HoldOutProtocol:
    """A rule for which images are held out: those whose value in a column matches one of some values.

    The `matching` is one of:

    * `equal`: the values are equal;
    * `named`: the same, but a value that no image has matches all values that contain it;
    * `path`: the path of the image contains a value, whatever the column.
    """

    name: str
    column: str
    values: tuple[str, ...]
    matching: Matching = "equal"
    about: str = ""

    def split(self, table: ImageTable, *, held_out: str | None = None) -> Split:
        """Return the split of a table.

        Args:
            table: a `Dataset` with the column of the protocol.
            held_out: replaces the published value, such as another style; only for protocols with one value.
        """
        chosen = self.values if held_out is None else (held_out,)
        if held_out is not None and len(self.values) != 1:
            raise OptionError(
                f"held_out cannot be used with {self.name}, which holds out {len(self.values)} names"
            )
        cells = np.array(table.column(self.column))
        held = _inside(np.array(table.ids), chosen) if self.matching == "path" else self._held(cells, chosen)
        if not held.any():
            validate_choice(f"{self.column} of {table.name}", chosen[0], sorted(set(cells.tolist())))
        name = self.name if held_out is None else f"{self.column}={held_out}"
        return split_by(table, name, held)

    def _held(self, cells: NDArray[np.str_], chosen: tuple[str, ...]) -> NDArray[np.bool_]:
        held: NDArray[np.bool_] = np.isin(cells, chosen)
        if self.matching == "named":
            there = set(cells.tolist())
            held |= _inside(cells, tuple(value for value in chosen if value not in there))
        return held


def _inside(texts: NDArray[np.str_], parts: tuple[str, ...]) -> NDArray[np.bool_]:
    """Return which texts contain one of some parts."""
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
"""The names that the paper holds out. Four are not subtypes themselves, but parts of 16 names of subtypes."""

protocols: Registry[HoldOutProtocol] = Registry("protocol")
"""Published protocols by name."""

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
        about="the same names anywhere in the path, as in the released program",
    ),
    HoldOutProtocol("icons-50-traditional", "version", ("2",), about="rendition 2 of an icon"),
    HoldOutProtocol(
        "icons-50-traditional-released",
        "version",
        ("_2",),
        "path",
        about="_2 anywhere in the path, as in the released program",
    ),
    *(
        HoldOutProtocol(
            f"cifar-100-coarse-{count}",
            "subtype",
            tuple(name for one in superclasses("cifar-100-coarse") for name in one.members[:count]),
            about=f"{count} of the five classes in each superclass of CIFAR-100",
        )
        for count in range(1, 5)
    ),
    HoldOutProtocol("imagenet-25", "part", ("unseen",), about="synsets that ImageNet-1k lacks"),
):
    protocols.register(_protocol.name, _protocol)

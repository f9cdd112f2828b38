"""Published protocols: what was held out, and by which rule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from beaufort._core.errors import OptionError, UnknownNameError
from beaufort._core.registry import Registry, unknown
from beaufort.data.labels import broad_classes
from beaufort.data.protocols.split import ImageTable, Split, split_by

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
            raise UnknownNameError(unknown(f"{self.column} of {table.name}", chosen[0], known))
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
            tuple(name for one in broad_classes("cifar-100-coarse") for name in one.members[:count]),
            about=f"{count} of the five classes in each broad class of CIFAR-100",
        )
        for count in range(1, 5)
    ),
    HoldOutProtocol("imagenet-25", "part", ("unseen",), about="synsets that ImageNet-1k does not have"),
):
    protocols.register(_protocol.name, _protocol)

"""What a gallery shows, apart from how it is drawn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from PIL import Image


@dataclass(frozen=True)
class ExhibitRow:
    """One corruption."""

    name: str
    group: str
    description: str
    random: bool
    pictures: Mapping[int, Image.Image]
    """By severity; a single one if the corruption has one strength only."""
    constants: Mapping[int, str]
    published: int | None
    """The severity that was published, where it was one."""
    scale: str
    """`relative` where the corruption has no constants for the size of the picture."""

    @property
    def marked(self) -> int | None:
        """The severity that is shown to be the published one; none where there is one strength only."""
        return self.published if len(self.pictures) > 1 else None

    @property
    def summary(self) -> str:
        """The first line of the description."""
        return self.description.partition("\n")[0]

    @property
    def details(self) -> str:
        """What the description says after its first line, in one paragraph."""
        return " ".join(self.description.partition("\n")[2].split())


@dataclass(frozen=True)
class Exhibit:
    """A picture and everything that was made of it."""

    clean: Image.Image
    rows: tuple[ExhibitRow, ...]
    origin: str
    """The picture's file name, or `painted`."""
    seed: int
    subset: str

    @property
    def scales(self) -> str:
        """Whose constants are used: `scale imagenet`, `scales imagenet and relative`."""
        names = sorted({row.scale for row in self.rows})
        return f"scale{'s' * (len(names) > 1)} {' and '.join(names)}"

    @property
    def pixelated(self) -> bool:
        """Whether the picture is so small that it is shown with its pixels enlarged."""
        return max(self.clean.size) < 100

    @property
    def groups(self) -> dict[str, list[ExhibitRow]]:
        """Rows by group, in the order in which the groups come up."""
        found: dict[str, list[ExhibitRow]] = {}
        for row in self.rows:
            found.setdefault(row.group, []).append(row)
        return found

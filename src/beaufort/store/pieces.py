"""Pieces: the files of a cell, by their names, and the rows that are read from each."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

_NAME = re.compile(r"([0-9a-f]{32})-(\d{1,18})-(\d{1,18})\.parquet", re.ASCII)

Range = tuple[int, int]


class Piece(NamedTuple):
    """One file: the images `start` to `stop` of a cell.

    A named tuple, which takes a third of the time of a dataclass to create and sort: stores have many pieces.
    """

    path: str
    """Path in the store."""
    fingerprint: str
    start: int
    stop: int

    @classmethod
    def parse(cls, path: str) -> Piece | None:
        """Return the piece at a path; None if it is the path of another file."""
        found = _NAME.fullmatch(path, path.rfind("/") + 1)
        if found is None:
            return None
        fingerprint, start, stop = found.groups()
        piece = cls(path, fingerprint, int(start), int(stop))
        return piece if piece.start < piece.stop else None


Listing = dict[str, list[Piece]]
"""Pieces by the fingerprint of their cell."""


class Slice(NamedTuple):
    """The rows of a piece that are read: those of the images from `start` on."""

    piece: Piece
    start: int

    @property
    def skip(self) -> int:
        """Number of rows at the start of the file to skip, because another piece has them."""
        return self.start - self.piece.start

    @property
    def stop(self) -> int:
        return self.piece.stop


def by_cell(pieces: Iterable[Piece]) -> Listing:
    """Group pieces by the fingerprint of their cell."""
    listing: Listing = {}
    for piece in pieces:
        listing.setdefault(piece.fingerprint, []).append(piece)
    return listing


def cover(pieces: Iterable[Piece]) -> list[Slice]:
    """Return slices that contain every row of the pieces of one cell once, in the order of the images.

    Every reader of a cell, in Python and in SQL, reads these slices. No row counts twice if files overlap.

    >>> a, b, c = (Piece("", "f" * 32, *span) for span in ((0, 500), (0, 2000), (1500, 2500)))
    >>> [(one.start, one.stop) for one in cover([a, b, c])]
    [(0, 2000), (2000, 2500)]
    """
    slices, at = [], 0
    for piece in sorted(pieces, key=lambda piece: (piece.start, -piece.stop, piece.path)):
        if piece.stop > at:
            slices.append(Slice(piece, max(at, piece.start)))
            at = piece.stop
    return slices


def spans(pieces: Iterable[Piece]) -> list[Range]:
    """Return the ranges of images that the pieces of one cell cover together.

    >>> spans(Piece("", "f" * 32, *span) for span in ((0, 5), (3, 8), (8, 9), (20, 30)))
    [(0, 9), (20, 30)]
    """
    found: list[Range] = []
    for one in cover(pieces):
        if found and found[-1][1] == one.start:
            found[-1] = found[-1][0], one.stop
        else:
            found.append((one.start, one.stop))
    return found


def gaps(pieces: Iterable[Piece], count: int) -> list[Range]:
    """Return the ranges of images below `count` that no piece covers."""
    found, at = [], 0
    for start, stop in spans(pieces):
        if start >= count:
            break
        if start > at:
            found.append((at, start))
        at = stop
    return [*found, (at, count)] if at < count else found

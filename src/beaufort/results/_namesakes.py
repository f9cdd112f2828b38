"""Models of one name in one store: what they are called, when each was made, and which is the newest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime

from beaufort.store import Cell, FileStore, Listing, flat_origins

_BEFORE_DIGEST = "#"


class Namesakes:
    """The models of a store that share their names with others, and the times of their last answers."""

    def __init__(self, store: FileStore, listing: Listing, rows: Mapping[str, Iterable[Cell]]) -> None:
        self._groups: dict[str, dict[str, str]] = {}
        for known, cells in rows.items():
            cells = list(cells)
            name = str(cells[0].model["name"])
            if known == name or not known.startswith(f"{name}{_BEFORE_DIGEST}"):
                continue
            pieces = [piece for cell in cells for piece in listing.get(cell.fingerprint, ())]
            times = (
                str(one.get("time", ""))
                for *_, origin in store.summaries(pieces)
                for one in flat_origins(origin)
            )
            self._groups.setdefault(name, {})[known] = max(times, default="")

    def newest(self, name: str) -> str | None:
        """What the newest model of a name is called; None if no two share it."""
        group = self._groups.get(name)
        return None if group is None else max(group, key=lambda known: (group[known], known))

    def notes(self, asked: Sequence[str] | None) -> Iterator[str]:
        """When each was made; for the names that were asked for, or for all, and which was taken."""
        for name, group in self._groups.items():
            if asked is not None and name not in asked:
                continue
            each = ", ".join(f"{known} ({_shown(time)})" for known, time in sorted(group.items()))
            taken = "" if asked is None else f"; taken is the newest, {self.newest(name)}"
            yield f"{len(group)} models of the store are called {name}: {each}{taken}"


def _shown(time: str) -> str:
    """A time of a file's provenance, for people."""
    try:
        return f"answers of {datetime.fromisoformat(time).astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
    except ValueError:
        return "of an unknown time"

"""Which worker does what: a queue of units that survives the loss of workers. It starts nothing itself.

Units of one model on one block of images form a lane. A worker stays in its lane, where its model is loaded
and its images are decoded; when the lane is empty it opens the next one, and when none is left it helps in
the longest.

When a worker is lost, what it had not stored is done again. The unit that it worked on is under suspicion:
its parts are tried alone, one at a time, and a part that ends its worker `TRIES` times is given up, so that
an image that crashes a model does not take the job along.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field, replace

from beaufort.evaluation.blocks import UnitPart
from beaufort.evaluation.planning import Range
from beaufort.evaluation.work import Failed, Unit

__all__ = ["TRIES", "Dispatch", "Ticket"]

TRIES = 3
"""How often a part may end the worker that does it, on its own, before it is given up."""

AHEAD = 2
"""Units that wait at a worker, at most, beside those that it has begun."""

Worker = Hashable


@dataclass(frozen=True)
class Ticket:
    """A unit for one model, and how often it has ended a worker."""

    number: int
    model: int
    unit: Unit
    losses: int = 0


@dataclass
class _Lane:
    model: int
    units: deque[Unit]


@dataclass
class _Desk:
    """What a worker has."""

    lane: _Lane | None = None
    tickets: deque[Ticket] = field(default_factory=deque)
    """What it has not stored completely, the oldest first."""
    open: set[tuple[int, Range]] = field(default_factory=set)
    """Works and spans of these tickets that are not stored yet."""
    waiting: int = 0
    """Tickets that it has not begun."""


class Dispatch:
    """Hands out units, each for one model, in the order in which they come."""

    def __init__(self, units: Iterable[Unit]) -> None:
        self._lanes = _lanes(units)
        self._open: list[_Lane] = []
        self._suspects: deque[Ticket] = deque()
        self._returned: deque[Ticket] = deque()
        self._desks: dict[Worker, _Desk] = {}
        self._numbers = itertools.count()
        self._more = True

    @property
    def finished(self) -> bool:
        """Whether everything that was handed in is stored or given up."""
        waiting = self._suspects or self._returned or any(desk.tickets for desk in self._desks.values())
        return not waiting and not self._more and not any(lane.units for lane in self._open)

    def take(self, worker: Worker) -> Ticket | None:
        """What a worker should do after what it has; None if it has enough, or nothing is left for it."""
        desk = self._desks.setdefault(worker, _Desk())
        if desk.waiting >= AHEAD or any(ticket.losses for ticket in desk.tickets):
            return None
        if self._suspects and not desk.tickets:
            return self._hand(desk, self._suspects.popleft())
        if self._returned:
            return self._hand(desk, self._returned.popleft())
        lane = self._lane_for(desk)
        if lane is None:
            return None
        unit = lane.units.popleft() if lane is desk.lane else lane.units.pop()
        return self._hand(desk, Ticket(next(self._numbers), lane.model, unit))

    def begun(self, worker: Worker, tickets: int) -> None:
        """A worker has begun so many more tickets."""
        self._desks[worker].waiting -= tickets

    def stored(self, worker: Worker, work: int, start: int, stop: int) -> None:
        """A worker has stored the answers of a work to a span."""
        desk = self._desks[worker]
        desk.open.discard((work, (start, stop)))
        while desk.tickets and not any(key in desk.open for key in _keys(desk.tickets[0].unit)):
            desk.tickets.popleft()

    def lost(self, worker: Worker, reason: str) -> list[Failed]:
        """A worker is gone; what it had is given to others, except parts that are given up."""
        desk = self._desks.pop(worker, _Desk())
        if desk.lane is not None and not desk.lane.units:
            self._drop(desk.lane)
        failed = []
        for place, ticket in enumerate(desk.tickets):
            parts = tuple(left for part in ticket.unit.parts if (left := _left(part, desk.open)) is not None)
            again = replace(ticket, unit=replace(ticket.unit, parts=parts))
            if place:
                self._returned.append(again)
                continue
            for part in parts:  # one at a time, so that the one that ends workers is found
                alone = replace(ticket.unit, parts=(part,))
                losses = ticket.losses + 1
                if ticket.losses and losses > TRIES:
                    failed.append(Failed(tuple(number for number, _ in part.works), part.span, reason))
                else:
                    self._suspects.append(Ticket(next(self._numbers), ticket.model, alone, losses))
        return failed

    def _hand(self, desk: _Desk, ticket: Ticket) -> Ticket:
        desk.tickets.append(ticket)
        desk.waiting += 1
        desk.open.update(_keys(ticket.unit))
        return ticket

    def _lane_for(self, desk: _Desk) -> _Lane | None:
        if desk.lane is not None and desk.lane.units:
            return desk.lane
        if desk.lane is not None:
            self._drop(desk.lane)
            desk.lane = None
        for lane in self._lanes:
            self._open.append(lane)
            desk.lane = lane
            return lane
        self._more = False
        return max(self._open, key=lambda lane: len(lane.units), default=None) if self._busy() else None

    def _busy(self) -> bool:
        self._open = [lane for lane in self._open if lane.units]
        return bool(self._open)

    def _drop(self, lane: _Lane) -> None:
        self._open = [one for one in self._open if one is not lane]


def _lanes(units: Iterable[Unit]) -> Iterator[_Lane]:
    for (model, _, _), some in itertools.groupby(units, _lane_of):
        yield _Lane(model, deque(some))


def _lane_of(unit: Unit) -> tuple[int, int, Range]:
    models = {model for part in unit.parts for _, model in part.works}
    assert len(models) == 1, "a unit is for one model"
    return models.pop(), unit.setup, unit.span


def _keys(unit: Unit) -> Iterator[tuple[int, Range]]:
    return ((number, part.span) for part in unit.parts for number, _ in part.works)


def _left(part: UnitPart, unstored: set[tuple[int, Range]]) -> UnitPart | None:
    works = tuple((number, model) for number, model in part.works if (number, part.span) in unstored)
    return part._replace(works=works) if works else None

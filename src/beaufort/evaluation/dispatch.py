"""Which worker does what: queues of units that survive the loss of workers. It starts nothing itself.

There is a queue for each model. Neighboring units of a queue on the same block of images form a lane. A
worker stays in its lane, where its model is loaded and its images are decoded. When the lane is empty it
opens the next one of the same model; when its model has none left, one of a model that nobody has begun; then
one of the model with the fewest workers; and when no lane is left it helps in the longest.

When a worker is lost, what it had not stored is done again. The unit that it worked on is under suspicion:
its parts are tried alone, one at a time, and a part that ends its worker `TRIES` times is given up, so that
an image that crashes a model does not take the job along. A model of which nothing was ever stored and
`HOPELESS` parts were given up is given up as a whole.
"""

from __future__ import annotations

import itertools
from collections import Counter, deque
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field, replace

from beaufort.evaluation.blocks import UnitPart
from beaufort.evaluation.planning import Range
from beaufort.evaluation.work import Failed, Unit

TRIES = 3
"""How often a part may end the worker that does it, on its own, before it is given up."""

HOPELESS = 3
"""Parts that are given up before their model is, if none of its answers was stored."""

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


class _Queue:
    """The units of a model, lane by lane; each is made when it is asked for."""

    def __init__(self, model: int, units: Iterable[Unit]) -> None:
        self.model = model
        self._lanes = itertools.groupby(units, lambda unit: (unit.setup, unit.span))
        self._next = self._ahead()

    def _ahead(self) -> _Lane | None:
        for _, some in self._lanes:
            return _Lane(self, deque(some))
        return None

    @property
    def empty(self) -> bool:
        return self._next is None

    def lane(self) -> _Lane:
        """The next lane; there must be one."""
        assert self._next is not None
        lane, self._next = self._next, self._ahead()
        return lane


@dataclass(eq=False)
class _Lane:
    queue: _Queue
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
    """Hands out units, which come in one queue for each model."""

    def __init__(self, queues: Iterable[Iterable[Unit]]) -> None:
        self._fresh = (_Queue(_model_of(first), rest) for first, rest in map(_peeked, queues) if first)
        self._queues: list[_Queue] = []
        """Those that were begun and have lanes left."""
        self._open: list[_Lane] = []
        """Lanes with units left."""
        self._suspects: deque[Ticket] = deque()
        self._returned: deque[Ticket] = deque()
        self._desks: dict[Worker, _Desk] = {}
        self._numbers = itertools.count()
        self._more = True
        self._fruitful: set[int] = set()
        """Models of which something is stored."""
        self._given_up: Counter[int] = Counter()
        """Parts of each model that were."""

    @property
    def finished(self) -> bool:
        """Whether everything that was handed in is stored or given up."""
        waiting = self._suspects or self._returned or any(desk.tickets for desk in self._desks.values())
        return not waiting and not self._more and not self._queues and not self._open

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
        if not lane.units:
            self._open.remove(lane)
        return self._hand(desk, Ticket(next(self._numbers), lane.queue.model, unit))

    def begun(self, worker: Worker, tickets: int) -> None:
        """A worker has begun so many more tickets."""
        self._desks[worker].waiting -= tickets

    def stored(self, worker: Worker, work: int, start: int, stop: int) -> None:
        """A worker has stored the answers of a work to a span."""
        desk = self._desks[worker]
        desk.open.discard((work, (start, stop)))
        if desk.tickets:
            self._fruitful.add(desk.tickets[0].model)
        while desk.tickets and not any(key in desk.open for key in _keys(desk.tickets[0].unit)):
            desk.tickets.popleft()

    def lost(self, worker: Worker, reason: str) -> list[Failed]:
        """A worker is gone; what it had is given to others, except parts that are given up."""
        desk = self._desks.pop(worker, _Desk())
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
                    failed.append(_failed(part, reason))
                    self._given_up[ticket.model] += 1
                else:
                    self._suspects.append(Ticket(next(self._numbers), ticket.model, alone, losses))
        for model in {ticket.model for ticket in desk.tickets}:
            if self._given_up[model] >= HOPELESS and model not in self._fruitful:
                failed += self._give_up(model, reason)
        return failed

    def _give_up(self, model: int, reason: str) -> Iterator[Failed]:
        """Everything of a model that no worker has."""
        tickets = [ticket for ticket in (*self._suspects, *self._returned) if ticket.model == model]
        self._suspects = deque(ticket for ticket in self._suspects if ticket.model != model)
        self._returned = deque(ticket for ticket in self._returned if ticket.model != model)
        lanes = [lane for lane in self._open if lane.queue.model == model]
        for queue in [queue for queue in self._queues if queue.model == model]:
            while not queue.empty:
                lanes.append(queue.lane())
            self._queues.remove(queue)
        self._open = [lane for lane in self._open if lane.queue.model != model]
        units = itertools.chain((t.unit for t in tickets), (unit for lane in lanes for unit in lane.units))
        yield from (_failed(part, reason) for unit in units for part in unit.parts)
        for lane in lanes:
            lane.units.clear()  # a worker may still have it

    def _hand(self, desk: _Desk, ticket: Ticket) -> Ticket:
        desk.tickets.append(ticket)
        desk.waiting += 1
        desk.open.update(_keys(ticket.unit))
        return ticket

    def _lane_for(self, desk: _Desk) -> _Lane | None:
        if desk.lane is not None and desk.lane.units:
            return desk.lane
        queue = self._queue_for(desk)
        if queue is None:
            desk.lane = None
            return max(self._open, key=lambda lane: len(lane.units), default=None)
        desk.lane = queue.lane()
        self._open.append(desk.lane)
        if queue.empty:
            self._queues.remove(queue)
        return desk.lane

    def _queue_for(self, desk: _Desk) -> _Queue | None:
        """The queue whose next lane a worker should open."""
        if desk.lane is not None and not desk.lane.queue.empty:
            return desk.lane.queue
        for queue in self._fresh:
            self._queues.append(queue)
            return queue
        self._more = False
        if not self._queues:
            return None
        busy = Counter(other.lane.queue.model for other in self._desks.values() if other.lane is not None)
        return min(self._queues, key=lambda queue: busy[queue.model])


def _peeked(units: Iterable[Unit]) -> tuple[Unit | None, Iterator[Unit]]:
    """The first unit, if there is one, and all of them."""
    rest = iter(units)
    first = next(rest, None)
    return first, rest if first is None else itertools.chain([first], rest)


def _model_of(unit: Unit) -> int:
    models = {model for part in unit.parts for _, model in part.works}
    assert len(models) == 1, "a unit is for one model"
    return models.pop()


def _keys(unit: Unit) -> Iterator[tuple[int, Range]]:
    return ((number, part.span) for part in unit.parts for number, _ in part.works)


def _left(part: UnitPart, unstored: set[tuple[int, Range]]) -> UnitPart | None:
    works = tuple((number, model) for number, model in part.works if (number, part.span) in unstored)
    return part._replace(works=works) if works else None


def _failed(part: UnitPart, reason: str) -> Failed:
    return Failed(tuple(number for number, _ in part.works), part.span, reason)

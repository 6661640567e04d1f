"""Derives what each step must wait for, from the spans that steps read and write.

Owns an index from units to the last steps that touched them, and what each stream is known to be
ordered after. The result is the transitive reduction: a wait that stream order or an earlier wait
implies is left out. ``check`` does not use this module; it proves the waits by other means.

Key terms: a *touch* is a read or a write; a *record* says, for a range of units that were always
touched together, which step of each stream wrote and read them last.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence

from rawcoll.schedule.ops import (
    COMPUTE,
    SCRATCH,
    WIRE,
    Action,
    Span,
    Step,
    reads_of,
    stream_of,
    writes_of,
)
from rawcoll.schedule.program import Hold

_NEVER = -1
_UNBOUNDED = Hold(0, 1 << 62)
"""What INPUT and OUTPUT hold: no write moves them."""

_Record = list[int]
"""One past the last unit, then the steps that wrote on WIRE, wrote on COMPUTE, read on WIRE and
read on COMPUTE last. Mutable, since a step changes one or two of them."""
_STOP = 0
_WRITE = 1
_READ = 3


def with_waits(actions: Iterable[Action], scratch: Sequence[Hold]) -> tuple[Step, ...]:
    """Steps of the actions, in their order, each on its stream and with its waits.

    Args:
        actions: what one rank does.
        scratch: initial hold of each slot.
    """
    hazards = Hazards(scratch)
    steps: list[Step] = []
    for index, action in enumerate(actions):
        stream = stream_of(action)
        waits = hazards.waits(index, stream, reads_of(action), writes_of(action))
        steps.append(Step(action, stream, waits))
    return tuple(steps)


class Hazards:
    """Waits of the steps of one program, asked for in index order.

    Args:
        scratch: initial hold of each slot.
    """

    def __init__(self, scratch: Sequence[Hold]) -> None:
        holds = [_UNBOUNDED] * SCRATCH + list(scratch)
        self._buffers = [_Touches(hold.start, hold.stop) for hold in holds]
        self._known = [_NEVER, _NEVER]
        """For each stream, the newest step of the other stream that it is ordered after."""

    def waits(
        self, index: int, stream: int, reads: Iterable[Span], writes: Iterable[Span]
    ) -> tuple[int, ...]:
        """The steps of the other stream that step ``index`` must wait for: none, or one."""
        other = COMPUTE if stream == WIRE else WIRE
        buffers, newest = self._buffers, _NEVER
        for span in reads:
            found = buffers[span.buffer].read(span.start, span.stop, index, stream, other)
            if found > newest:
                newest = found
        for span in writes:
            found = buffers[span.buffer].write(span.start, span.stop, index, stream, other)
            if found > newest:
                newest = found
        if newest <= self._known[stream]:
            return ()
        self._known[stream] = newest
        return (newest,)


class _Touches:
    """Touches of one buffer, as far as it holds units ``[start, stop)``."""

    __slots__ = ("_records", "_start", "_starts", "_stop")

    def __init__(self, start: int, stop: int) -> None:
        self._start, self._stop = start, stop
        self._starts = [start]
        self._records: dict[int, _Record] = {start: [stop, _NEVER, _NEVER, _NEVER, _NEVER]}
        """By first unit; together they cover what the buffer holds."""

    def read(self, start: int, stop: int, index: int, stream: int, other: int) -> int:
        """Note a read; returns the newest write of the other stream that it must follow."""
        newest = _NEVER
        for record in self._covering(start, stop):
            if record[_WRITE + other] > newest:
                newest = record[_WRITE + other]
            record[_READ + stream] = index
        return newest

    def write(self, start: int, stop: int, index: int, stream: int, other: int) -> int:
        """Note a write; returns the newest touch of the other stream that it must follow.

        Touches before it no longer matter, since what follows the write follows them too. A write
        that moves what the buffer holds conflicts with every touch there ever was.
        """
        if start >= stop:
            return _NEVER
        records = self._covering(start, stop) or list(self._records.values())
        newest = _NEVER
        for record in records:
            if record[_WRITE + other] > newest:
                newest = record[_WRITE + other]
            if record[_READ + other] > newest:
                newest = record[_READ + other]
        record = self._replaced(start, stop, records)
        record[_WRITE + stream] = index
        return newest

    def _covering(self, start: int, stop: int) -> Sequence[_Record]:
        """The records of a span, cut so that they cover it exactly."""
        record = self._records.get(start)
        if record is not None and record[_STOP] == stop:
            return (record,)
        if start < self._start or stop > self._stop:
            return ()  # A read of what is not there: the check refuses it.
        first = self._cut(start)
        return [self._records[at] for at in self._starts[first : self._cut(stop)]]

    def _cut(self, unit: int) -> int:
        """Let a record begin at a unit; returns how many begin before it."""
        starts = self._starts
        at = bisect_left(starts, unit)
        if unit < self._stop and (at == len(starts) or starts[at] != unit):
            left = self._records[starts[at - 1]]
            self._records[unit] = left.copy()
            left[_STOP] = unit
            starts.insert(at, unit)
        return at

    def _replaced(self, start: int, stop: int, records: Sequence[_Record]) -> _Record:
        """A fresh record of a span in place of those that it had."""
        record = [stop, _NEVER, _NEVER, _NEVER, _NEVER]
        if start < self._start or stop > self._stop:
            self._start, self._stop = start, stop
            self._starts, self._records = [start], {}
        elif len(records) > 1:
            first = bisect_left(self._starts, start)
            gone = slice(first + 1, first + len(records))
            for at in self._starts[gone]:
                del self._records[at]
            del self._starts[gone]
        self._records[start] = record
        return record

"""Derives what each step must wait for, from the spans that steps read and write.

Owns an index from units to the last steps that touched them, and one vector clock a stream. The
result is the transitive reduction: a wait that stream order or an earlier wait implies is left out.
``check`` does not use this module; it proves the waits by other means.
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

_NSTREAMS = 2
_NEVER = -1

_Touch = tuple[int, int, int, int]
"""Last step that wrote on WIRE and on COMPUTE, last step that read on WIRE and on COMPUTE."""
_UNTOUCHED: _Touch = (_NEVER, _NEVER, _NEVER, _NEVER)


def with_waits(actions: Iterable[Action], scratch: Sequence[Hold]) -> tuple[Step, ...]:
    """Steps of the actions, in their order, each on its stream and with its waits."""
    hazards = Hazards(scratch)
    return tuple(
        Step(action, stream := stream_of(action), hazards.waits(index, action, stream))
        for index, action in enumerate(actions)
    )


class Hazards:
    """Waits of the steps of one program, asked for in index order.

    Args:
        scratch: initial hold of each slot.
    """

    def __init__(self, scratch: Sequence[Hold]) -> None:
        self._buffers: dict[int, _Touches] = {}
        self._holds = list(scratch)
        self._known = [_NEVER] * _NSTREAMS
        """For each stream, the newest step of the other stream that it is ordered after."""

    def waits(self, index: int, action: Action, stream: int) -> tuple[int, ...]:
        """The steps of the other stream that step ``index`` must wait for, at most one."""
        other = COMPUTE if stream == WIRE else WIRE
        newest = _NEVER
        for span in reads_of(action):
            newest = max(newest, self._touches(span).read(span, index, stream)[other])
        for span in writes_of(action):
            touch = self._written(span, index, stream)
            newest = max(newest, touch[other], touch[other + _NSTREAMS])
        if newest <= self._known[stream]:
            return ()
        self._known[stream] = newest
        return (newest,)

    def _touches(self, span: Span) -> _Touches:
        touches = self._buffers.get(span.buffer)
        if touches is None:
            touches = self._buffers[span.buffer] = _Touches()
        return touches

    def _written(self, span: Span, index: int, stream: int) -> _Touch:
        """A write that moves a slot conflicts with whatever touched the slot before."""
        touches = self._touches(span)
        if span.buffer >= SCRATCH:
            slot = span.buffer - SCRATCH
            hold = self._holds[slot].after_write(span.start, span.stop)
            if hold is not self._holds[slot]:
                self._holds[slot] = hold
                touches.merge()
        return touches.write(span, index, stream)


class _Touches:
    """One buffer: ranges of units, and for each what touched it last.

    ``_starts[i]`` begins the range whose record is ``_records[i]``; it ends where the next begins.
    """

    def __init__(self) -> None:
        self._starts = [0]
        self._records = [_UNTOUCHED]

    def read(self, span: Span, index: int, stream: int) -> _Touch:
        """Note a read; returns what touched the span before."""
        first, stop = self._split(span)
        found = _newest(self._records[first:stop])
        for i in range(first, stop):
            record = list(self._records[i])
            record[_NSTREAMS + stream] = index
            self._records[i] = (record[0], record[1], record[2], record[3])
        return found

    def write(self, span: Span, index: int, stream: int) -> _Touch:
        """Note a write, after which older touches no longer matter; returns what came before."""
        first, stop = self._split(span)
        found = _newest(self._records[first:stop])
        record = [_NEVER] * (2 * _NSTREAMS)
        record[stream] = index
        self._starts[first:stop] = [span.start]
        self._records[first:stop] = [(record[0], record[1], record[2], record[3])]
        return found

    def merge(self) -> None:
        """Forget which unit was touched by what, not that it was."""
        self._records = [_newest(self._records)]
        self._starts = [0]

    def _split(self, span: Span) -> tuple[int, int]:
        """Cut at both ends of the span; returns the range of records that it covers."""
        return self._cut(span.start), self._cut(span.stop)

    def _cut(self, unit: int) -> int:
        starts = self._starts
        at = bisect_left(starts, unit)
        if at == len(starts) or starts[at] != unit:
            starts.insert(at, unit)
            self._records.insert(at, self._records[at - 1])
        return at


def _newest(records: Sequence[_Touch]) -> _Touch:
    if len(records) == 1:
        return records[0]
    if not records:
        return _UNTOUCHED
    a, b, c, d = zip(*records, strict=True)
    return max(a), max(b), max(c), max(d)

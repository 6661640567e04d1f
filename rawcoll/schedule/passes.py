"""Passes: programs in, programs out.

Owns the step from the form that builders write (in place: the input stands in OUTPUT) to the form
in which INPUT and OUTPUT are two arrays. Must not know arrays, sizes or transports.

Key terms: a unit of the input is *fresh* until the program first writes it. Fresh units are read
from INPUT, the others from OUTPUT; a span that has both is *mixed*. A mixed message is never split,
since the other end would not know: its fresh units are copied to OUTPUT first. Local actions are
split.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise

from rawcoll.errors import ScheduleError
from rawcoll.schedule.collectives import units_after, units_before
from rawcoll.schedule.hazards import with_waits
from rawcoll.schedule.ops import (
    INPUT,
    OUTPUT,
    SCRATCH,
    Action,
    Copy,
    Local,
    Native,
    Reduce,
    Send,
    Span,
    Transfer,
    reads_of,
    writes_of,
)
from rawcoll.schedule.program import Program

_FRESH = 0
_COPIED = 1
"""Fresh, and copied at the start: INPUT and OUTPUT hold the same."""
_WRITTEN = 2
_UNKNOWN = 3
"""Neither in the input nor written yet."""


def out_of_place(program: Program) -> Program:
    """The same program with its input in INPUT, which stays as it was, and its result in OUTPUT.

    Units of the result that the program takes unchanged from its own input are copied at the start.
    A program that is out of place already is returned as it is.

    Raises:
        ScheduleError: the program writes outside the units of its result, or reads undefined ones,
            or a message mixes written units with fresh ones that may not be copied to OUTPUT.
    """
    return _Rewrite(program).run() if program.in_place else program


class _Rewrite:
    """One program on its way from one form to the other."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._after = units_after(program.spec, program.nunits)
        start, stop = units_before(program.spec, program.nunits)
        self._state = bytearray([_UNKNOWN]) * program.nunits
        self._state[start:stop] = bytes([_FRESH]) * (stop - start)
        self._holds = list(program.scratch)
        self._copied: list[int] = []
        self._index = 0

    def run(self) -> Program:
        actions: list[Action] = []
        for index, step in enumerate(self._program.steps):
            self._index = index
            actions += self._rewritten(step.action)
            for span in writes_of(step.action):
                self._note_write(span)
        steps = with_waits([*self._copies(), *actions], self._program.scratch)
        return replace(self._program, steps=steps, in_place=False)

    def _rewritten(self, action: Action) -> Sequence[Action]:
        match action:
            case Transfer():
                sends = tuple(Send(send.peer, self._whole(send.span)) for send in action.sends)
                return (Transfer(sends, action.recvs, action.round),)
            case Native():
                src = None if action.src is None else self._whole(action.src)
                return (replace(action, src=src),)
            case Copy() | Reduce():
                return self._local(action)

    def _local(self, action: Local) -> Sequence[Local]:
        cuts = self._cuts(action)
        if not cuts:
            return (_with_spans(action, map(self._whole, reads_of(action)), action.dst),)
        edges = (action.dst.start, *cuts, action.dst.stop)
        return [
            _with_spans(
                action,
                [self._whole(Span(src.buffer, a, b)) for src in reads_of(action)],
                Span(action.dst.buffer, a, b),
            )
            for a, b in pairwise(edges)
        ]

    def _cuts(self, action: Local) -> list[int]:
        """Where fresh units of an operand meet written ones, if the action may be cut there."""
        mixed = [span for span in reads_of(action) if self._is_mixed(span)]
        if not mixed or not self._may_split(action.dst):
            return []
        start, stop = action.dst.start, action.dst.stop
        written = [state == _WRITTEN for state in self._state[start:stop]]
        return [start + i for i in range(1, stop - start) if written[i] != written[i - 1]]

    def _may_split(self, dst: Span) -> bool:
        """A write that moves a slot's hold stays whole, or its second part would lose the first."""
        if dst.buffer < SCRATCH:
            return True
        return self._holds[dst.buffer - SCRATCH].contains(dst.start, dst.stop)

    def _is_mixed(self, span: Span) -> bool:
        if span.buffer != OUTPUT:
            return False
        return 0 < self._state.count(_WRITTEN, span.start, span.stop) < span.nunits

    def _whole(self, span: Span) -> Span:
        """The span where it can be read as one: in INPUT while all fresh, else in OUTPUT."""
        if span.buffer != OUTPUT:
            return span
        self._check_defined(span)
        if self._state.count(_WRITTEN, span.start, span.stop) == 0:
            return Span(INPUT, span.start, span.stop)
        for unit in range(span.start, span.stop):
            if self._state[unit] == _FRESH:
                self._copy_first(unit)
        return span

    def _copy_first(self, unit: int) -> None:
        start, stop = self._after
        if not start <= unit < stop:
            raise self._error(
                f"reads unit {unit} of the input and written units as one span: found it outside "
                f"the result's units [{start}, {stop}), where it may not be copied to first"
            )
        self._state[unit] = _COPIED
        self._copied.append(unit)

    def _check_defined(self, span: Span) -> None:
        unit = self._state.find(_UNKNOWN, span.start, span.stop)
        if unit >= 0:
            raise self._error(f"reads unit {unit}: found it undefined, expected input or written")

    def _note_write(self, span: Span) -> None:
        if span.buffer >= SCRATCH:
            slot = span.buffer - SCRATCH
            self._holds[slot] = self._holds[slot].after_write(span.start, span.stop)
            return
        start, stop = self._after
        if not start <= span.start <= span.stop <= stop:
            raise self._error(
                f"writes outside the result: found units [{span.start}, {span.stop}), "
                f"expected them within [{start}, {stop})"
            )
        self._state[span.start : span.stop] = bytes([_WRITTEN]) * span.nunits

    def _copies(self) -> list[Copy]:
        """Copies of what mixed messages need, and of result units that nothing ever writes."""
        start, stop = self._after
        wanted = [unit for unit in range(start, stop) if self._state[unit] == _FRESH]
        wanted += self._copied
        return [Copy(Span(INPUT, a, b), Span(OUTPUT, a, b)) for a, b in _runs(sorted(wanted))]

    def _error(self, fact: str) -> ScheduleError:
        spec = self._program.spec
        return ScheduleError(
            f"rank {spec.rank} step {self._index}: {fact}",
            rank=spec.rank,
            collective=spec.collective,
        )


def _with_spans(action: Local, srcs: Iterable[Span], dst: Span) -> Local:
    if isinstance(action, Copy):
        (src,) = srcs
        return Copy(src, dst)
    return Reduce(tuple(srcs), dst, action.last)


def _runs(units: list[int]) -> list[tuple[int, int]]:
    """Sorted units as ranges ``[start, stop)``."""
    runs: list[tuple[int, int]] = []
    for unit in units:
        if runs and runs[-1][1] == unit:
            runs[-1] = (runs[-1][0], unit + 1)
        else:
            runs.append((unit, unit + 1))
    return runs

"""Proves that the waits of a program order everything that has to be in order.

Owns the happens-before relation of one rank: the order of each stream, and the waits. It derives
nothing from spans; two accesses of the same memory, one of them a write, on different streams must
be ordered by it. Independent of ``hazards``, which made the waits.

Key terms: the *clock* of a step says, for each stream, the newest step known to have ended before
it.
"""

from __future__ import annotations

from rawcoll.schedule.form import error_at
from rawcoll.schedule.ops import (
    COMPUTE,
    SCRATCH,
    WIRE,
    Span,
    Step,
    reads_of,
    writes_of,
)
from rawcoll.schedule.program import Hold, Program
from rawcoll.schedule.text import show_span

_STREAMS = (WIRE, COMPUTE)
_NEVER = -1


class _Accesses:
    """The newest read and write of each unit of one memory, by stream."""

    def __init__(self, start: int, stop: int) -> None:
        self.start = start
        self.reads = [[_NEVER] * (stop - start) for _ in _STREAMS]
        self.writes = [[_NEVER] * (stop - start) for _ in _STREAMS]


def check_races(program: Program, *, aliased: bool = False) -> None:
    """Raise ScheduleError if two conflicting accesses of one rank are not ordered by its waits."""
    _Races(program, aliased).run()


class _Races:
    def __init__(self, program: Program, aliased: bool) -> None:
        self._program = program
        self._holds = [Hold(), Hold(), *program.scratch]
        output = _Accesses(0, program.nunits)
        self._memory = [output if aliased else _Accesses(0, program.nunits), output]
        self._memory += [_Accesses(hold.start, hold.stop) for hold in program.scratch]
        self._any = [[_NEVER, _NEVER] for _ in self._memory]
        """For each buffer and stream, the newest step that touched it at all."""

    def run(self) -> None:
        clocks: list[tuple[int, int]] = []
        newest = [(_NEVER, _NEVER), (_NEVER, _NEVER)]
        for index, step in enumerate(self._program.steps):
            clock = newest[step.stream]
            for wait in step.waits:
                clock = max(clock[0], clocks[wait][0]), max(clock[1], clocks[wait][1])
                clock = _with(clock, self._program.steps[wait].stream, wait)
            clocks.append(clock)
            newest[step.stream] = _with(clock, step.stream, index)
            self._step(index, step, clock)

    def _step(self, index: int, step: Step, clock: tuple[int, int]) -> None:
        other = COMPUTE if step.stream == WIRE else WIRE
        known = clock[other]
        for span in reads_of(step.action):
            memory, a, b = self._cells(span)
            self._check(index, span, "reads", memory.writes[other][a:b], known)
            memory.reads[step.stream][a:b] = [index] * (b - a)
            self._any[span.buffer][step.stream] = index
        for span in writes_of(step.action):
            if span.buffer >= SCRATCH:
                self._move_hold(index, span, other, known)
            memory, a, b = self._cells(span)
            self._check(index, span, "writes", memory.writes[other][a:b], known)
            self._check(index, span, "writes", memory.reads[other][a:b], known)
            memory.writes[step.stream][a:b] = [index] * (b - a)
            self._any[span.buffer][step.stream] = index

    def _cells(self, span: Span) -> tuple[_Accesses, int, int]:
        memory = self._memory[span.buffer]
        return memory, span.start - memory.start, span.stop - memory.start

    def _move_hold(self, index: int, span: Span, other: int, known: int) -> None:
        """A write that moves a slot conflicts with everything that touched the slot before."""
        hold = self._holds[span.buffer].after_write(span.start, span.stop)
        if hold is not self._holds[span.buffer]:
            self._check(index, span, "moves", [self._any[span.buffer][other]], known)
            self._holds[span.buffer] = hold
            self._memory[span.buffer] = _Accesses(span.start, span.stop)

    def _check(self, index: int, span: Span, verb: str, touched: list[int], known: int) -> None:
        rival = max(touched)
        if rival > known:
            fact = f"race: {verb} {show_span(span)} while step {rival} may still be touching it"
            raise error_at(self._program, index, f"{fact}: expected a wait for step {rival}")


def _with(clock: tuple[int, int], stream: int, index: int) -> tuple[int, int]:
    return (max(clock[0], index), clock[1]) if stream == WIRE else (clock[0], max(clock[1], index))

"""Runs a schedule on symbols: what each unit of each rank holds, as an expression.

Owns the meaning of the actions. Local actions happen in index order between the wire steps of a
rank; that the waits make them happen so on two streams is what ``races`` proves.
"""

from __future__ import annotations

from rawcoll.schedule.collectives import collective_of, units_before
from rawcoll.schedule.form import error_at
from rawcoll.schedule.natives import native_result
from rawcoll.schedule.ops import INPUT, OUTPUT, SCRATCH, Copy, Native, Reduce, Span
from rawcoll.schedule.program import Program, Schedule
from rawcoll.schedule.simulate import Event, Join, Move
from rawcoll.schedule.symbols import UNDEFINED, Repeated, Symbols
from rawcoll.schedule.text import show_span


class _Memory:
    """The buffers of one rank; ``next`` is the first of its steps that has not run."""

    def __init__(self, program: Program, symbols: Symbols, aliased: bool) -> None:
        rank, nunits = program.spec.rank, program.nunits
        self.next = 0
        self._holds = list(program.scratch)
        self._cells = [[UNDEFINED] * nunits, [UNDEFINED] * nunits]
        self._cells += [[UNDEFINED] * (hold.stop - hold.start) for hold in program.scratch]
        start, stop = units_before(program.spec, nunits)
        given = self._cells[OUTPUT if program.in_place else INPUT]
        given[start:stop] = [symbols.leaf(rank, unit) for unit in range(start, stop)]
        if aliased:
            self._cells[INPUT] = self._cells[OUTPUT] = given

    def read(self, span: Span) -> list[int]:
        base = self._base(span.buffer)
        return self._cells[span.buffer][span.start - base : span.stop - base]

    def write(self, span: Span, numbers: list[int]) -> None:
        if span.buffer >= SCRATCH:
            slot = span.buffer - SCRATCH
            hold = self._holds[slot].after_write(span.start, span.stop)
            if hold is not self._holds[slot]:
                self._holds[slot] = hold
                self._cells[span.buffer] = [UNDEFINED] * span.nunits
        base = self._base(span.buffer)
        self._cells[span.buffer][span.start - base : span.stop - base] = numbers

    def _base(self, buffer: int) -> int:
        return 0 if buffer < SCRATCH else self._holds[buffer - SCRATCH].start


class Values:
    """All ranks' memories.

    Args:
        schedule: programs whose form is right.
        aliased: whether INPUT and OUTPUT are one array.
    """

    def __init__(self, schedule: Schedule, *, aliased: bool = False) -> None:
        self.symbols = Symbols()
        self._programs = schedule.programs
        self._all = (1 << schedule.nranks) - 1
        self._memories = [_Memory(p, self.symbols, aliased) for p in schedule.programs]

    def run(self, events: list[Event]) -> None:
        """Do everything that the schedule says, messages in the order of ``events``.

        Raises:
            ScheduleError: an undefined unit is read, a contribution counted twice, or ``last``
                wrong.
        """
        for event in events:
            if isinstance(event, Move):
                self._move(event)
            else:
                self._join(event)
        for rank, program in enumerate(self._programs):
            self._run_until(rank, len(program.steps))

    def result(self, rank: int, unit: int) -> int:
        """The expression that a rank's OUTPUT holds for a unit."""
        return self._memories[rank].read(Span(OUTPUT, unit, unit + 1))[0]

    def _move(self, move: Move) -> None:
        self._run_until(move.src, move.src_step)
        self._run_until(move.dst, move.dst_step)
        numbers = self._read(move.src, move.src_step, move.send.span)
        self._memories[move.dst].write(move.recv.span, numbers)

    def _run_until(self, rank: int, index: int) -> None:
        """Run the local actions of a rank before step ``index``."""
        memory, steps = self._memories[rank], self._programs[rank].steps
        for at in range(memory.next, index):
            action = steps[at].action
            if isinstance(action, Copy):
                memory.write(action.dst, self._read(rank, at, action.src))
            elif isinstance(action, Reduce):
                memory.write(action.dst, self._reduced(rank, at, action))
        memory.next = max(memory.next, index)

    def _read(self, rank: int, index: int, span: Span) -> list[int]:
        numbers = self._memories[rank].read(span)
        if UNDEFINED in numbers:
            unit = span.start + numbers.index(UNDEFINED)
            fact = f"reads {show_span(span)}: unit {unit} is undefined there"
            raise error_at(self._programs[rank], index, fact)
        return numbers

    def _reduced(self, rank: int, index: int, reduce: Reduce) -> list[int]:
        operands = zip(*(self._read(rank, index, src) for src in reduce.srcs), strict=True)
        try:
            numbers = [self.symbols.reduction("reduce", each) for each in operands]
        except Repeated as exc:
            raise error_at(self._programs[rank], index, f"reduce: {exc}") from exc
        self._check_last(rank, index, numbers, reduce.last)
        return numbers

    def _check_last(self, rank: int, index: int, numbers: list[int], last: bool) -> None:
        for number in numbers:
            complete = self.symbols.contributions(number) == self._all
            if complete != last:
                shown = self.symbols.show(number)
                fact = f"last: found {last}, expected {complete}, the result being {shown}"
                raise error_at(self._programs[rank], index, fact)

    def _join(self, join: Join) -> None:
        natives: list[Native] = []
        srcs: list[list[int]] = []
        for rank, index in zip(join.ranks, join.steps, strict=True):
            self._run_until(rank, index)
            native = self._programs[rank].steps[index].action
            assert isinstance(native, Native)
            natives.append(native)
            srcs.append([] if native.src is None else self._read(rank, index, native.src))
        for place in range(len(natives)):
            self._joined(join, natives, srcs, place)

    def _joined(self, join: Join, natives: list[Native], srcs: list[list[int]], place: int) -> None:
        rank, index, native = join.ranks[place], join.steps[place], natives[place]
        try:
            numbers = native_result(self.symbols, natives, srcs, place)
        except ValueError as exc:
            raise error_at(self._programs[rank], index, f"native: {exc}") from exc
        if native.dst is not None:
            self._memories[rank].write(native.dst, numbers)
            if collective_of(native.collective).reduces:
                self._check_last(rank, index, numbers, native.last)

"""The builder: an algorithm names messages and local actions by round, and gets a program.

Owns the order of steps (by round: the transfer, then what is done with it) and, through
``hazards``, the waits. Knows nothing of what a collective means.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from rawcoll.errors import ScheduleError
from rawcoll.schedule.hazards import with_waits
from rawcoll.schedule.ops import (
    OUTPUT,
    SCRATCH,
    Action,
    Copy,
    Local,
    Native,
    Recv,
    Reduce,
    Send,
    Span,
    Transfer,
)
from rawcoll.schedule.program import Hold, Program, Spec

Placed = tuple[int, int] | None
"""Where an OUTPUT unit of an included program is: (buffer, unit), or None for nowhere."""


class Builder:
    """Collects what one rank does, round by round, in any order of rounds.

    Args:
        spec: collective and rank.
        nunits: units of the whole array; ``units`` changes it.
        in_place: see Program.
    """

    def __init__(self, spec: Spec, nunits: int = 1, *, in_place: bool = True) -> None:
        self.spec = spec
        self.nunits = nunits
        self._in_place = in_place
        self._scratch: list[Hold] = []
        self._sends: defaultdict[int, list[Send]] = defaultdict(list)
        self._recvs: defaultdict[int, list[Recv]] = defaultdict(list)
        self._locals: defaultdict[int, list[Local]] = defaultdict(list)
        self._natives: dict[int, Native] = {}
        self._spans: dict[tuple[int, int, int], Span] = {}

    def units(self, nunits: int) -> None:
        """Cut the array into ``nunits`` units; all ranks say the same number."""
        self.nunits = nunits

    def scratch(self, start: int = 0, stop: int = 0) -> int:
        """A new scratch slot, and the units it holds at first (none: it holds what is written)."""
        self._scratch.append(Hold(start, stop))
        return SCRATCH + len(self._scratch) - 1

    def span(self, start: int, stop: int | None = None, buffer: int = OUTPUT) -> Span:
        """Units ``[start, stop)`` of a buffer; one unit when ``stop`` is left out."""
        key = (buffer, start, start + 1 if stop is None else stop)
        found = self._spans.get(key)
        if found is None:
            found = self._spans[key] = Span(*key)
        return found

    def send(self, round: int, peer: int, span: Span) -> None:
        """In ``round``, send ``span`` to ``peer``. A span of no units is no message."""
        if span.start < span.stop:
            self._sends[round].append(Send(peer, span))

    def recv(self, round: int, peer: int, span: Span) -> None:
        """In ``round``, receive ``span`` from ``peer``. A span of no units is no message."""
        if span.start < span.stop:
            self._recvs[round].append(Recv(peer, span))

    def copy(self, round: int, src: Span, dst: Span) -> None:
        """After the transfer of ``round``, copy. Round -1 comes before all transfers."""
        if src.start < src.stop:
            self._locals[round].append(Copy(src, dst))

    def reduce(self, round: int, srcs: Iterable[Span], dst: Span, *, last: bool = False) -> None:
        """After the transfer of ``round``, reduce ``srcs`` (in rank order) into ``dst``."""
        if dst.start < dst.stop:
            self._locals[round].append(Reduce(tuple(srcs), dst, last))

    def native(
        self,
        round: int,
        collective: str,
        ranks: tuple[int, ...],
        src: Span | None,
        dst: Span | None,
        *,
        root: int = 0,
        last: bool = False,
    ) -> None:
        """In ``round``, run a collective of the library below among ``ranks``.

        Raises:
            ScheduleError: the round has one already.
        """
        if round in self._natives:
            raise ScheduleError(f"native: rank {self.spec.rank} round {round}: found a second one")
        self._natives[round] = Native(collective, ranks, src, dst, root, last, round)

    def include(
        self,
        program: Program,
        *,
        ranks: tuple[int, ...] | None = None,
        place: Sequence[Placed] | None = None,
        round: int = 0,
        last: bool = True,
    ) -> None:
        """Take in another program of this rank.

        Args:
            program: what to take in; its own spec is of no interest here.
            ranks: the ranks of this program that the other one calls 0, 1, ...; None: the same.
            place: for each of its units, where that unit of its OUTPUT is here; None: the same
                place.
            round: what is added to its rounds.
            last: False where more contributions follow what the other program calls the last.
        """
        _Inclusion(self, program, ranks, place, round, last).run()

    def build(self) -> Program:
        """The program: rounds in order, each its transfer and then its local actions."""
        self._check_natives()
        steps = with_waits(self._actions(), self._scratch)
        return Program(self.spec, self.nunits, steps, tuple(self._scratch), self._in_place)

    def _actions(self) -> Iterator[Action]:
        messages = self._sends.keys() | self._recvs.keys()
        for round in sorted(messages | self._natives.keys() | self._locals.keys()):
            if round in messages:
                sends, recvs = self._sends.get(round, ()), self._recvs.get(round, ())
                yield Transfer(tuple(sends), tuple(recvs), round)
            if round in self._natives:
                yield self._natives[round]
            yield from self._locals.get(round, ())

    def _check_natives(self) -> None:
        for round in self._natives:
            if round in self._sends or round in self._recvs:
                raise ScheduleError(
                    f"rank {self.spec.rank} round {round}: found messages beside a native step"
                )


@dataclass(frozen=True, slots=True)
class _Run:
    """Units ``[start, stop)`` of an included program that are contiguous here too."""

    start: int
    stop: int
    buffer: int
    shift: int


class _Inclusion:
    """One program on its way into a builder: peers, units, slots and rounds renamed.

    A scratch slot becomes one slot for each run of units, so that what a slot holds stays
    contiguous.
    """

    def __init__(
        self,
        builder: Builder,
        program: Program,
        ranks: tuple[int, ...] | None,
        place: Sequence[Placed] | None,
        offset: int,
        last: bool,
    ) -> None:
        self._builder = builder
        self._program = program
        self._ranks = ranks
        self._offset = offset
        self._last = last
        self._runs = _runs_of(program, place)
        self._starts = [run.start for run in self._runs]
        self._slots: dict[tuple[int, int], int] = {}

    def run(self) -> None:
        after = -1
        for step in self._program.steps:
            action = step.action
            if isinstance(action, Transfer):
                after = action.round
                self._transfer(action)
            elif isinstance(action, Native):
                after = action.round
                self._native(action)
            else:
                self._local(action, after + self._offset)

    def _transfer(self, transfer: Transfer) -> None:
        round = transfer.round + self._offset
        for send in transfer.sends:
            for (span,) in self._pieces((send.span,)):
                self._builder.send(round, self._peer(send.peer), span)
        for recv in transfer.recvs:
            for (span,) in self._pieces((recv.span,)):
                self._builder.recv(round, self._peer(recv.peer), span)

    def _native(self, native: Native) -> None:
        self._builder.native(
            native.round + self._offset,
            native.collective,
            tuple(self._peer(rank) for rank in native.ranks),
            self._whole(native.src),
            self._whole(native.dst),
            root=self._peer(native.root),
            last=native.last and self._last,
        )

    def _local(self, action: Local, round: int) -> None:
        if isinstance(action, Copy):
            for src, dst in self._pieces((action.src, action.dst)):
                self._builder.copy(round, src, dst)
            return
        for *srcs, dst in self._pieces((*action.srcs, action.dst)):
            self._builder.reduce(round, srcs, dst, last=action.last and self._last)

    def _peer(self, rank: int) -> int:
        return rank if self._ranks is None else self._ranks[rank]

    def _whole(self, span: Span | None) -> Span | None:
        """A native step takes one contiguous span: anything else cannot be included."""
        if span is None:
            return None
        pieces = list(self._pieces((span,)))
        if len(pieces) != 1:
            raise ScheduleError(f"native: units are not contiguous here: found {pieces}")
        return pieces[0][0]

    def _pieces(self, spans: tuple[Span, ...]) -> Iterable[tuple[Span, ...]]:
        """Spans of the same units, renamed run by run."""
        first, end = spans[0].start, spans[0].stop
        number = max(0, bisect_right(self._starts, first) - 1)
        while number < len(self._runs) and self._runs[number].start < end:
            run = self._runs[number]
            start, stop = max(run.start, first), min(run.stop, end)
            if start < stop:
                yield tuple(
                    self._builder.span(
                        start + run.shift, stop + run.shift, self._buffer(span.buffer, number)
                    )
                    for span in spans
                )
            number += 1

    def _buffer(self, buffer: int, number: int) -> int:
        run = self._runs[number]
        if buffer < SCRATCH:
            return buffer if run.buffer == OUTPUT else run.buffer
        slot = self._slots.get((buffer, number))
        if slot is None:
            hold = self._program.scratch[buffer - SCRATCH]
            start, stop = max(hold.start, run.start), min(hold.stop, run.stop)
            if start < stop:
                slot = self._builder.scratch(start + run.shift, stop + run.shift)
            else:
                slot = self._builder.scratch()
            self._slots[buffer, number] = slot
        return slot


def _runs_of(program: Program, place: Sequence[Placed] | None) -> list[_Run]:
    if place is None:
        return [_Run(0, program.nunits, OUTPUT, 0)]
    runs: list[_Run] = []
    for unit, placed in enumerate(place):
        if placed is None:
            continue
        buffer, shift = placed[0], placed[1] - unit
        if runs and runs[-1] == _Run(runs[-1].start, unit, buffer, shift):
            runs[-1] = replace(runs[-1], stop=unit + 1)
        else:
            runs.append(_Run(unit, unit + 1, buffer, shift))
    return runs


def merge(programs: Iterable[Program]) -> Program:
    """Unite programs of one rank by round: one transfer a round, local actions after it.

    All ranks must name the programs in the same order, since messages between two ranks match
    first-in-first-out.

    Raises:
        ScheduleError: none given, or they differ in spec, units or form.
    """
    given = tuple(programs)
    kinds = {(program.spec, program.nunits, program.in_place) for program in given}
    if len(kinds) != 1:
        raise ScheduleError(f"merge: programs do not fit together: found {sorted(map(str, kinds))}")
    first = given[0]
    builder = Builder(first.spec, first.nunits, in_place=first.in_place)
    for program in given:
        builder.include(program)
    return builder.build()

"""Runs a schedule in one of the many orders that its streams and waits allow.

Deliberately simple-minded, and independent of ``check``: values are nested tuples, and each step
happens whenever a random choice among all that may happen picks it. A message moves only while both
ends are inside the transfers that hold it.
"""

from __future__ import annotations

from random import Random

from rawcoll.schedule.collectives import units_after, units_before
from rawcoll.schedule.ops import INPUT, OUTPUT, WIRE, Copy, Reduce, Span, Transfer
from rawcoll.schedule.program import Program, Schedule

Value = tuple


class Halted(Exception):
    """Nothing may happen, and not all has."""


class _Rank:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.done: set[int] = set()
        self.inside: int | None = None
        self.moved: set[tuple[str, int]] = set()
        self.memory: dict[tuple[int, int], Value] = {}
        buffer = OUTPUT if program.in_place else INPUT
        for unit in range(*units_before(program.spec, program.nunits)):
            self.memory[buffer, unit] = (program.spec.rank, unit)

    def ready(self) -> list[int]:
        """The next step of each stream whose waits are over."""
        found = []
        for stream in (0, 1):
            own = [i for i, step in enumerate(self.program.steps) if step.stream == stream]
            left = [i for i in own if i not in self.done]
            if not left or left[0] == self.inside:
                continue
            if self.done.issuperset(self.program.steps[left[0]].waits):
                found.append(left[0])
        return found

    def read(self, span: Span) -> list[Value]:
        return [self.memory.get((span.buffer, u), ("?",)) for u in range(span.start, span.stop)]

    def write(self, span: Span, values: list[Value]) -> None:
        for unit, value in zip(range(span.start, span.stop), values, strict=True):
            self.memory[span.buffer, unit] = value

    def pending(self, side: str, peer: int) -> int | None:
        """The first message to (``sends``) or from (``recvs``) a peer that has not moved."""
        if self.inside is None:
            return None
        messages = getattr(self.program.steps[self.inside].action, side)
        left = (i for i, m in enumerate(messages) if m.peer == peer and (side, i) not in self.moved)
        return next(left, None)

    def move(self, side: str, number: int) -> Span:
        action = self.program.steps[self.inside].action
        self.moved.add((side, number))
        span = getattr(action, side)[number].span
        if len(self.moved) == len(action.sends) + len(action.recvs):
            self.done.add(self.inside)
            self.inside, self.moved = None, set()
        return span


def interleave(schedule: Schedule, random: Random) -> list[list[Value]]:
    """What each rank's result units hold at the end; scratch units never forget, being a dict."""
    ranks = [_Rank(program) for program in schedule.programs]
    while True:
        choices: list[tuple[int, int, bool]] = []
        for number, rank in enumerate(ranks):
            choices += [(number, index, False) for index in rank.ready()]
            for peer, other in enumerate(ranks):
                ends = rank.pending("sends", peer), other.pending("recvs", number)
                if None not in ends:
                    choices.append((number, peer, True))
        if not choices:
            break
        number, which, is_move = random.choice(choices)
        if is_move:
            source, target = ranks[number], ranks[which]
            sent, received = source.pending("sends", which), target.pending("recvs", number)
            values = source.read(source.program.steps[source.inside].action.sends[sent].span)
            source.move("sends", sent)
            target.write(target.move("recvs", received), values)
        else:
            _start(ranks[number], which)
    if any(len(rank.done) < len(rank.program.steps) for rank in ranks):
        raise Halted
    return [
        rank.read(Span(OUTPUT, *units_after(rank.program.spec, rank.program.nunits)))
        for rank in ranks
    ]


def _start(rank: _Rank, index: int) -> None:
    action = rank.program.steps[index].action
    if rank.program.steps[index].stream == WIRE:
        assert isinstance(action, Transfer)
        rank.inside = index
        return
    if isinstance(action, Copy):
        rank.write(action.dst, rank.read(action.src))
    elif isinstance(action, Reduce):
        rank.write(action.dst, list(zip(*map(rank.read, action.srcs), strict=True)))
    rank.done.add(index)

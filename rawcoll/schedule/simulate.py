"""Moves all messages of a schedule, with the transfers of a rank strictly one after another.

Owns matching and deadlock freedom, under rendezvous: a message moves only while both its ends are
inside the transfers that hold it, and a transfer ends when all its messages have moved. Waits and
local actions play no part, nor do round numbers: those are compared afterwards.

Key terms: a *move* is one message, named by both its ends; a *join* is a native step of several
ranks.
"""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass
from typing import NoReturn

from rawcoll.errors import ScheduleError
from rawcoll.schedule.form import error_at
from rawcoll.schedule.ops import Native, Recv, Send, Transfer
from rawcoll.schedule.program import Program, Schedule


@dataclass(frozen=True, slots=True)
class Move:
    """A message: rank ``src`` sends it in its step ``src_step``, rank ``dst`` receives it."""

    src: int
    src_step: int
    send: Send
    dst: int
    dst_step: int
    recv: Recv


@dataclass(frozen=True, slots=True)
class Join:
    """A native step, run by ``ranks`` together, each in its own step of ``steps``."""

    ranks: tuple[int, ...]
    steps: tuple[int, ...]


Event = Move | Join


def simulate(schedule: Schedule) -> list[Event]:
    """All moves and joins in an order in which they can happen.

    Raises:
        ScheduleError: the ranks come to a halt before all of them have ended.
    """
    return _Simulation(schedule.programs).run()


_JoinKey = tuple[str, tuple[int, ...], int]


class _Simulation:
    def __init__(self, programs: tuple[Program, ...]) -> None:
        self._programs = programs
        self._wire = [_wire_steps(program) for program in programs]
        self._at = [-1] * len(programs)
        """For each rank, where it is in its list of wire steps."""
        self._left = [0] * len(programs)
        """For each rank, how many messages of its transfer have not moved."""
        self._sends: defaultdict[tuple[int, int], deque[Send]] = defaultdict(deque)
        self._recvs: defaultdict[tuple[int, int], deque[Recv]] = defaultdict(deque)
        """Messages of the transfers under way that have not moved, by (source, destination)."""
        self._joining: defaultdict[_JoinKey, list[int]] = defaultdict(list)
        self._events: list[Event] = []
        self._free = deque(range(len(programs)))
        """Ranks that may go to their next wire step."""

    def run(self) -> list[Event]:
        while self._free:
            self._advance(self._free.popleft())
        if any(not self._has_ended(rank) for rank in range(len(self._programs))):
            self._halted()
        return self._events

    def _advance(self, rank: int) -> None:
        self._at[rank] += 1
        if self._has_ended(rank):
            return
        action = self._programs[rank].steps[self._step(rank)].action
        if isinstance(action, Transfer):
            self._enter(rank, action)
        elif isinstance(action, Native):
            self._join(rank, action)

    def _enter(self, rank: int, transfer: Transfer) -> None:
        self._left[rank] = len(transfer.sends) + len(transfer.recvs)
        pairs: dict[tuple[int, int], None] = {}
        for send in transfer.sends:
            self._sends[rank, send.peer].append(send)
            pairs[rank, send.peer] = None
        for recv in transfer.recvs:
            self._recvs[recv.peer, rank].append(recv)
            pairs[recv.peer, rank] = None
        for pair in pairs:
            self._move(*pair)

    def _move(self, src: int, dst: int) -> None:
        """Move what both ends of a pair have under way, first in, first out."""
        sends, recvs = self._sends[src, dst], self._recvs[src, dst]
        while sends and recvs:
            send, recv = sends.popleft(), recvs.popleft()
            self._events.append(Move(src, self._step(src), send, dst, self._step(dst), recv))
            self._moved(src)
            self._moved(dst)

    def _moved(self, rank: int) -> None:
        self._left[rank] -= 1
        if not self._left[rank]:
            self._free.append(rank)

    def _join(self, rank: int, native: Native) -> None:
        key = (native.collective, native.ranks, native.root)
        self._joining[key].append(rank)
        if len(self._joining[key]) == len(native.ranks):
            del self._joining[key]
            steps = tuple(self._step(member) for member in native.ranks)
            self._events.append(Join(native.ranks, steps))
            self._free.extend(native.ranks)

    def _step(self, rank: int) -> int:
        return self._wire[rank][self._at[rank]]

    def _has_ended(self, rank: int) -> bool:
        return self._at[rank] == len(self._wire[rank])

    def _halted(self) -> NoReturn:
        """Say why nothing moves: an end that never comes, or ranks that wait in a circle."""
        blocked = [rank for rank in range(len(self._programs)) if not self._has_ended(rank)]
        waits_for = {rank: self._waiting(rank) for rank in blocked}
        for rank, (peer, doing) in waits_for.items():
            if self._has_ended(peer):
                fact = f"{doing} rank {peer}, which has ended: deadlock"
                raise error_at(self._programs[rank], self._step(rank), fact, peer)
        path = [blocked[0]]
        while (peer := waits_for[path[-1]][0]) not in path:
            path.append(peer)
        raise self._cycle([*path[path.index(peer) :], peer])

    def _waiting(self, rank: int) -> tuple[int, str]:
        """A rank that a blocked rank waits for, if possible one that has ended, and what for."""
        action = self._programs[rank].steps[self._step(rank)].action
        if isinstance(action, Native):
            here = self._joining[action.collective, action.ranks, action.root]
            found = [(member, "joins with") for member in action.ranks if member not in here]
        else:
            found = [(s, "receives from") for (s, d), q in self._recvs.items() if d == rank and q]
            found += [(d, "sends to") for (s, d), q in self._sends.items() if s == rank and q]
        return next((each for each in found if self._has_ended(each[0])), found[0])

    def _cycle(self, cycle: list[int]) -> ScheduleError:
        names = [f"rank {rank} round {self._round(rank)}" for rank in cycle]
        text = names[0] + " waits for " + ", which waits for ".join(names[1:])
        return ScheduleError(
            f"deadlock: {text}: cycle", rank=cycle[0], round=self._round(cycle[0]), peers=cycle[1:]
        )

    def _round(self, rank: int) -> int | None:
        action = self._programs[rank].steps[self._step(rank)].action
        return action.round if isinstance(action, Transfer | Native) else None


def _wire_steps(program: Program) -> list[int]:
    return [
        index
        for index, step in enumerate(program.steps)
        if isinstance(step.action, Transfer | Native)
    ]

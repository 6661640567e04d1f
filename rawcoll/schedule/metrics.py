"""What a schedule costs in rounds, messages and bytes, whatever it runs on.

Owns counting. Must not know times, links or topologies: the cost model puts those in.

Without a partition a unit counts as one element. With one, messages of no elements are not counted,
nor transfers that have no other messages: no transport sees them.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from rawcoll.schedule.ops import Native, Reduce, Span, Transfer
from rawcoll.schedule.program import Partition, Program, Schedule, slot_sizes


@dataclass(frozen=True, slots=True)
class RankMetrics:
    """Costs of one rank.

    Attributes:
        transfers: transfers and native steps.
        sends: messages that it sends.
        recvs: messages that it receives.
        sent_nbytes: bytes that it sends in messages.
        received_nbytes: bytes that it receives in messages.
        links: ``(peer, nbytes)`` that it sends to each peer, by peer.
        reduces: reductions.
        reduced_nbytes: bytes of the reductions' operands.
        copied_nbytes: bytes that copies move.
        scratch_nbytes: bytes of its scratch slots together, without padding.
        rounds: the rounds of its transfers and native steps.
    """

    transfers: int
    sends: int
    recvs: int
    sent_nbytes: int
    received_nbytes: int
    links: tuple[tuple[int, int], ...]
    reduces: int
    reduced_nbytes: int
    copied_nbytes: int
    scratch_nbytes: int
    rounds: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Metrics:
    """Costs of a schedule.

    Attributes:
        ranks: costs of each rank.
        rounds: different rounds in which anything moves.
        messages: messages of all ranks.
        links: ``(source, destination, nbytes)``, sorted.
    """

    ranks: tuple[RankMetrics, ...]
    rounds: int
    messages: int
    links: tuple[tuple[int, int, int], ...]

    @property
    def max_sent_nbytes(self) -> int:
        """Most bytes that one rank sends."""
        return max(rank.sent_nbytes for rank in self.ranks)

    @property
    def max_transfers(self) -> int:
        """Most transfers of one rank."""
        return max(rank.transfers for rank in self.ranks)


def metrics(schedule: Schedule, partition: Partition | None = None, itemsize: int = 1) -> Metrics:
    """Count what a schedule does.

    Args:
        schedule: the programs of all ranks.
        partition: units to elements; None: each unit is one element.
        itemsize: bytes of an element.
    """
    ranks = tuple(rank_metrics(program, partition, itemsize) for program in schedule.programs)
    return Metrics(
        ranks,
        rounds=len(set().union(*(rank.rounds for rank in ranks))),
        messages=sum(rank.sends for rank in ranks),
        links=tuple(
            (source, peer, nbytes)
            for source, rank in enumerate(ranks)
            for peer, nbytes in rank.links
        ),
    )


def rank_metrics(
    program: Program, partition: Partition | None = None, itemsize: int = 1
) -> RankMetrics:
    """Count what one rank does; arguments as for ``metrics``."""
    return _Count(program, partition, itemsize).run()


class _Count:
    def __init__(self, program: Program, partition: Partition | None, itemsize: int) -> None:
        self._program = program
        cuts = partition.boundaries if partition else tuple(range(program.nunits + 1))
        self._offsets = [cut * itemsize for cut in cuts]
        self._sent: Counter[int] = Counter()
        self._number: Counter[str] = Counter()
        self._rounds: list[int] = []

    def run(self) -> RankMetrics:
        for step in self._program.steps:
            match step.action:
                case Transfer():
                    self._transfer(step.action)
                case Native():
                    self._rounds.append(step.action.round)
                case Reduce():
                    self._reduce(step.action)
                case _:
                    self._number["copied"] += self._nbytes(step.action.dst)
        return self._result()

    def _result(self) -> RankMetrics:
        number = self._number
        return RankMetrics(
            transfers=len(self._rounds),
            sends=number["sends"],
            recvs=number["recvs"],
            sent_nbytes=self._sent.total(),
            received_nbytes=number["received"],
            links=tuple(sorted(self._sent.items())),
            reduces=number["reduces"],
            reduced_nbytes=number["reduced"],
            copied_nbytes=number["copied"],
            scratch_nbytes=sum(slot_sizes(self._program, self._offsets)),
            rounds=tuple(self._rounds),
        )

    def _nbytes(self, span: Span) -> int:
        return self._offsets[span.stop] - self._offsets[span.start]

    def _transfer(self, transfer: Transfer) -> None:
        sent = [(send.peer, self._nbytes(send.span)) for send in transfer.sends]
        received = [self._nbytes(recv.span) for recv in transfer.recvs]
        for peer, nbytes in sent:
            if nbytes:
                self._sent[peer] += nbytes
                self._number["sends"] += 1
        self._number["received"] += sum(received)
        self._number["recvs"] += sum(map(bool, received))
        if any(received) or any(nbytes for _, nbytes in sent):
            self._rounds.append(transfer.round)

    def _reduce(self, reduce: Reduce) -> None:
        nbytes = self._nbytes(reduce.dst)
        self._number["reduces"] += nbytes > 0
        self._number["reduced"] += nbytes * len(reduce.srcs)

"""The vocabulary of schedules: spans of units, and the actions on them.

Owns the value types that a program is made of. They know nothing of arrays, element types, sizes,
codecs, devices or transports; everything here is frozen and equal by value.

Key terms: a *unit* is the smallest piece that a schedule names; a *span* is a range of units in one
buffer; a *transfer* is the set of messages that progress together in one *round*.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from rawcoll.schedule.frozen import slot_init

INPUT: Final = 0
OUTPUT: Final = 1
SCRATCH: Final = 2
"""Number of the first scratch slot; slot k of a program is buffer ``SCRATCH + k``."""

WIRE: Final = 0
COMPUTE: Final = 1


@slot_init
@dataclass(frozen=True, slots=True)
class Span:
    """Units ``[start, stop)`` of a buffer, in the numbering of the whole array, also in scratch.

    Attributes:
        buffer: INPUT, OUTPUT, or ``SCRATCH + k`` for scratch slot k.
        start: first unit.
        stop: one past the last unit.
    """

    buffer: int
    start: int
    stop: int

    @property
    def nunits(self) -> int:
        """How many units the span names."""
        return self.stop - self.start


@slot_init
@dataclass(frozen=True, slots=True)
class Send:
    """The units of ``span`` go to rank ``peer``."""

    peer: int
    span: Span


@slot_init
@dataclass(frozen=True, slots=True)
class Recv:
    """Units from rank ``peer`` arrive in ``span``."""

    peer: int
    span: Span


@slot_init
@dataclass(frozen=True, slots=True)
class Transfer:
    """Messages that progress together: one NCCL group, one MPI ``Waitall``.

    ``round`` is the same at both ends of each message, and strictly increases along a rank.
    """

    sends: tuple[Send, ...]
    recvs: tuple[Recv, ...]
    round: int


@dataclass(frozen=True, slots=True)
class Copy:
    """``dst`` becomes ``src``; both name the same number of units."""

    src: Span
    dst: Span


@slot_init
@dataclass(frozen=True, slots=True)
class Reduce:
    """``dst`` becomes the reduction of ``srcs``, taken from left to right.

    ``srcs`` stand in rank order of what they contain, never "mine first". ``last`` says that the
    result holds every rank's contribution: an average divides there.
    """

    srcs: tuple[Span, ...]
    dst: Span
    last: bool


@dataclass(frozen=True, slots=True)
class Native:
    """A collective of the library below as one atomic step among ``ranks``.

    ``src`` and ``dst`` are what that collective reads and writes on this rank (None where it has no
    such part here); ``root`` is a rank of the communicator. It takes the place of the transfer of
    its round.
    """

    collective: str
    ranks: tuple[int, ...]
    src: Span | None
    dst: Span | None
    root: int
    last: bool
    round: int


Wire = Transfer | Native
Local = Copy | Reduce
Action = Transfer | Native | Copy | Reduce


@slot_init
@dataclass(frozen=True, slots=True)
class Step:
    """An action, the stream it is ordered on, and the earlier steps that it waits for."""

    action: Action
    stream: int
    waits: tuple[int, ...]


def stream_of(action: Action) -> int:
    """The stream of an action: communication on WIRE, everything else on COMPUTE."""
    return WIRE if isinstance(action, (Transfer, Native)) else COMPUTE


def reads_of(action: Action) -> Sequence[Span]:
    """The spans that an action reads."""
    match action:
        case Transfer():
            return [send.span for send in action.sends]
        case Copy():
            return (action.src,)
        case Reduce():
            return action.srcs
        case Native():
            return () if action.src is None else (action.src,)


def writes_of(action: Action) -> Sequence[Span]:
    """The spans that an action writes."""
    match action:
        case Transfer():
            return [recv.span for recv in action.recvs]
        case Native():
            return () if action.dst is None else (action.dst,)
        case Copy() | Reduce():
            return (action.dst,)

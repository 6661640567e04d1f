"""The seam between the executor and the libraries that carry messages.

A message is a row of the operation table: (slot, offset, nbytes, peer); its address is the slot's base
plus the offset. A transport moves bytes between addresses and knows no element type in ``post``; it
knows no schedule, no round and no algorithm.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from rawcoll.device.host import Memory
from rawcoll.types import DType, Op

Message = tuple[int, int, int, int]
"""Slot, offset in bytes, size in bytes (never zero), peer."""


class Pending(Protocol):
    """Messages under way. Either ``test`` until it is true, or ``wait``, not both."""

    def test(self) -> bool:
        """Whether all have arrived and may be reused. Makes progress; raises TransportError."""

    def arrived(self) -> bool:
        """Whether all that is received is here; sends may still be under way. Makes progress."""

    def wait(self) -> None:
        """Block until ``test`` would be true."""

    def missing(self) -> tuple[int, ...]:
        """The peers whose messages are not complete."""

    def release(self) -> None:
        """What was lent is no longer read: give it back, and put the bases as they were."""


class Prepared(Protocol):
    """Messages fixed to their addresses, started again and again."""

    def start(self) -> Pending:
        """Start them. Only when those started before have completed."""

    def free(self) -> None:
        """Give the requests back; not while they are under way."""


@dataclass(frozen=True, slots=True)
class NativeCall:
    """A collective of the library below, with addresses resolved.

    Attributes:
        collective: its name.
        ranks: who takes part, as ranks of the communicator.
        root: a rank of the communicator.
        src, dst: addresses, 0 where this rank has none; equal for in place.
        src_counts: elements of each part of the source, in the order of ``ranks``; one entry where
            it has no parts.
        dst_counts: the same of the destination.
        dtype: element type.
        op: the reduction; an average is a sum here.
        divisor: what the result is divided by, 1 for anything but an average.
    """

    collective: str
    ranks: tuple[int, ...]
    root: int
    src: int
    dst: int
    src_counts: tuple[int, ...]
    dst_counts: tuple[int, ...]
    dtype: DType
    op: Op
    divisor: int


class Transport(Protocol):
    """One rank's end of the connection to all others."""

    @property
    def rank(self) -> int:
        """This rank."""

    @property
    def nranks(self) -> int:
        """How many ranks there are."""

    def post(
        self,
        sends: Sequence[Message],
        recvs: Sequence[Message],
        bases: list[int],
        tag: int,
        lent: frozenset[int] = frozenset(),
        early: bool = False,
    ) -> Pending:
        """Start the messages of one transfer. Never blocks.

        Messages match first-in-first-out per (source, destination, tag). For a slot in ``lent`` the
        transport may put the address of the message in its own memory into ``bases`` instead of copying
        it, until ``release``. Only with ``early``, when the caller goes on as soon as all has
        ``arrived``, may a send last until its receiver has released the message.
        """

    def prepare(
        self,
        sends: Sequence[Message],
        recvs: Sequence[Message],
        bases: list[int],
        tag: int,
        lent: frozenset[int] = frozenset(),
        early: bool = False,
    ) -> Prepared:
        """Fix the messages of one transfer to addresses, for being started many times."""

    def allocate(self, nbytes: int) -> Memory:
        """Memory from which messages travel best. Collective, of one size on all ranks."""

    def prepare_native(self, ranks: tuple[int, ...]) -> None:
        """Make ready for native calls among ``ranks``. Collective over them; may block."""

    def native(self, call: NativeCall, *, blocking: bool) -> Pending:
        """Start a collective of the library below; with ``blocking`` it is complete on return.

        All of ``call.ranks`` must make their native calls in the same order.
        """

    def close(self) -> None:
        """Give everything back. Collective; nothing may be under way."""

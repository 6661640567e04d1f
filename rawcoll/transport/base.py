"""The seam between the executor and the libraries that carry messages.

A message is a row of the operation table: (slot, offset, nbytes, peer); its address is the slot's base
plus the offset. A transport moves bytes between addresses and knows no element type in ``post``; it
knows no schedule, no round and no algorithm.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from rawcoll.device.host import Memory
from rawcoll.types import DType, Op

if TYPE_CHECKING:
    from rawcoll.native import _native

Message = tuple[int, int, int, int]
"""Slot, offset in bytes, size in bytes (never zero), peer."""


class Pending(Protocol):
    """Messages under way."""

    def test(self) -> bool:
        """Whether all have arrived and may be reused. Makes progress; raises TransportError."""

    def missing(self) -> tuple[int, ...]:
        """The peers whose messages are not complete."""


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

    @property
    def wires(self) -> _native.Wires | None:
        """What native code sends messages through; None: only ``post`` can."""

    def post(
        self, sends: Sequence[Message], recvs: Sequence[Message], bases: Sequence[int], tag: int
    ) -> Pending:
        """Start the messages of one transfer. Never blocks.

        Messages match first-in-first-out per (source, destination, tag).
        """

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

"""The flat table of operations that a cursor walks.

Owns the step from a program and a layout to rows of plain numbers: (slot, offset, size, peer) for
messages, (slot, offset) and a count for kernels. Rows hold nothing that native code could not hold.

Two sequences, one for each stream, keep their order; ``need`` of a row says how many rows of the other
sequence must be finished before it may start. Rows of no elements are dropped, what others had to wait
for is not.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from rawcoll.executor.layout import Layout
from rawcoll.schedule.ops import (
    INPUT,
    OUTPUT,
    SCRATCH,
    WIRE,
    Copy,
    Native,
    Recv,
    Reduce,
    Send,
    Span,
    Transfer,
)
from rawcoll.schedule.program import Hold, Program
from rawcoll.transport.base import Message


class Kernel(IntEnum):
    """What a local row does."""

    COPY = 0
    REDUCE = 1
    REDUCE_LAST = 2


Place = tuple[int, int]
"""Slot and offset in bytes."""


@dataclass(frozen=True, slots=True)
class NativeRow:
    """A collective of the library below; parts are element counts in the order of ``ranks``."""

    collective: str
    ranks: tuple[int, ...]
    root: int
    src: Place | None
    dst: Place | None
    src_counts: tuple[int, ...]
    dst_counts: tuple[int, ...]
    last: bool


@dataclass(frozen=True, slots=True)
class WireRow:
    """One transfer, or one native step in its place.

    Attributes:
        need: local rows that must be finished before it may start.
        round, sends, recvs, native: what it is.
        lent: slots whose memory the transport may replace by its own, since the message is all that the
            slot holds and kernels only read it.
        release: how many local rows must be finished before that memory is no longer read.
        early: whether kernels may use what has arrived while its own sends are still under way: none of
            them writes what is being sent. Only then may a send wait for its receiver's kernels.
    """

    need: int
    round: int
    sends: tuple[Message, ...]
    recvs: tuple[Message, ...]
    native: NativeRow | None
    lent: frozenset[int] = frozenset()
    release: int = 0
    early: bool = False


@dataclass(frozen=True, slots=True)
class LocalRow:
    """One kernel call; ``count`` is in elements."""

    need: int
    kernel: Kernel
    dst: Place
    srcs: tuple[Place, ...]
    count: int


@dataclass(frozen=True, slots=True)
class Table:
    """All operations of one rank.

    Attributes:
        wire, local: the rows of each stream, in order.
        scratch_nbytes: size of each scratch slot.
        has_native: whether the library below has a part in it.
        order: for each row, as the program's steps stand, whether it is a wire row.
    """

    wire: tuple[WireRow, ...]
    local: tuple[LocalRow, ...]
    scratch_nbytes: tuple[int, ...] = ()
    has_native: bool = False
    order: tuple[bool, ...] = ()

    @property
    def sent_nbytes(self) -> int:
        """Bytes that this rank sends in messages of its own schedule."""
        return sum(message[2] for row in self.wire for message in row.sends)


def compile_table(program: Program, layout: Layout, itemsize: int) -> Table:
    """Resolve a program's spans for one layout and element size."""
    return _Compiler(program, layout, itemsize).run()


class _Compiler:
    def __init__(self, program: Program, layout: Layout, itemsize: int) -> None:
        self._program = program
        self._layout = layout
        self._itemsize = itemsize
        self._holds = list(program.scratch)
        self._scratch = [self._nbytes(OUTPUT, hold.start, hold.stop) for hold in self._holds]
        self._wire: list[WireRow] = []
        self._local: list[LocalRow] = []
        self._order: list[bool] = []

    def run(self) -> Table:
        kept: list[int] = []
        """For each step, the rows of its own stream up to and including it."""
        need = [0, 0]
        for step in self._program.steps:
            for wait in step.waits:
                need[step.stream] = max(need[step.stream], kept[wait])
            if step.stream == WIRE:
                self._add_wire(step.action, need[WIRE])
                kept.append(len(self._wire))
            else:
                self._add_local(step.action, need[1 - WIRE])
                kept.append(len(self._local))
        native = any(row.native is not None for row in self._wire)
        return Table(
            tuple(self._wire),
            tuple(self._local),
            tuple(self._scratch),
            native,
            tuple(self._order),
        )

    def _add_wire(self, action: object, need: int) -> None:
        if isinstance(action, Transfer):
            sends = self._messages(action.sends)
            for recv in action.recvs:
                self._written(recv.span)
            recvs = self._messages(action.recvs)
            if sends or recvs:
                self._append(WireRow(need, action.round, sends, recvs, None))
        elif isinstance(action, Native):
            row = self._native(action)
            self._append(WireRow(need, action.round, (), (), row))

    def _add_local(self, action: object, need: int) -> None:
        if not isinstance(action, Copy | Reduce):
            raise TypeError(f"action: unknown: found {action!r}")
        sources = (action.src,) if isinstance(action, Copy) else action.srcs
        srcs = tuple(self._place(span) for span in sources)
        self._written(action.dst)
        count = self._layout.partition(action.dst.buffer).elements(
            action.dst.start, action.dst.stop
        )
        if not count:
            return
        kernel = Kernel.COPY
        if isinstance(action, Reduce):
            kernel = Kernel.REDUCE_LAST if action.last else Kernel.REDUCE
        self._local.append(LocalRow(need, kernel, self._place(action.dst), srcs, count))
        self._order.append(False)

    def _append(self, row: WireRow) -> None:
        self._wire.append(row)
        self._order.append(True)

    def _messages(self, ends: tuple[Send, ...] | tuple[Recv, ...]) -> tuple[Message, ...]:
        messages = (
            (
                *self._place(end.span),
                self._nbytes(end.span.buffer, end.span.start, end.span.stop),
                end.peer,
            )
            for end in ends
        )
        return tuple(message for message in messages if message[2])

    def _native(self, action: Native) -> NativeRow:
        src = None if action.src is None else self._place(action.src)
        if action.dst is not None:
            self._written(action.dst)
        return NativeRow(
            action.collective,
            action.ranks,
            action.root,
            src,
            None if action.dst is None else self._place(action.dst),
            self._parts(action.src, len(action.ranks)),
            self._parts(action.dst, len(action.ranks)),
            action.last,
        )

    def _parts(self, span: Span | None, nparts: int) -> tuple[int, ...]:
        """Elements of a native span: each rank's share where it divides into shares, else all."""
        if span is None:
            return ()
        partition = self._layout.partition(span.buffer)
        width, rest = divmod(span.nunits, nparts)
        if rest or not width:
            return (partition.elements(span.start, span.stop),)
        cuts = range(span.start, span.stop, width)
        return tuple(partition.elements(cut, cut + width) for cut in cuts)

    def _written(self, span: Span) -> None:
        """Follow what a scratch slot holds; remember the most that it ever does."""
        if span.buffer < SCRATCH:
            return
        slot = span.buffer - SCRATCH
        hold = self._holds[slot].after_write(span.start, span.stop)
        self._holds[slot] = hold
        self._scratch[slot] = max(self._scratch[slot], self._nbytes(OUTPUT, hold.start, hold.stop))

    def _place(self, span: Span) -> Place:
        boundaries = self._layout.partition(span.buffer).boundaries
        if span.buffer >= SCRATCH:
            origin = boundaries[self._hold(span).start]
        else:
            origin = self._layout.origins[INPUT if span.buffer == INPUT else OUTPUT]
        return span.buffer, (boundaries[span.start] - origin) * self._itemsize

    def _hold(self, span: Span) -> Hold:
        return self._holds[span.buffer - SCRATCH]

    def _nbytes(self, buffer: int, start: int, stop: int) -> int:
        return self._layout.partition(buffer).elements(start, stop) * self._itemsize

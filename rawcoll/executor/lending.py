"""Which received messages a transport may leave where they are, and when kernels may use them.

A scratch slot that a message fills whole, and that kernels only read until it is written again, need not
be a copy: the kernel can read where the message arrived. The kernels must need no later transfer: a sender
may be waiting for them, and would wait for itself. Owns these decisions, made once for a table.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace

from rawcoll.executor.table import LocalRow, Table, WireRow
from rawcoll.schedule.ops import SCRATCH


@dataclass(slots=True)
class _Arrival:
    """What a slot has held since a message arrived in it."""

    row: int
    nbytes: int
    is_read_only: bool = True
    last_reader: int = 0


@dataclass(slots=True)
class _Lent:
    slots: set[int] = field(default_factory=set)
    release: int = 0


def with_lending(table: Table, itemsize: int) -> Table:
    """The table, with the slots of each transfer that may be lent; elements have ``itemsize`` bytes."""
    return _Finder(table, itemsize).run()


class _Finder:
    def __init__(self, table: Table, itemsize: int) -> None:
        self._table = table
        self._itemsize = itemsize
        self._held: dict[int, _Arrival] = {}
        self._found: dict[int, _Lent] = {}
        self._waiting: dict[int, list[LocalRow]] = defaultdict(list)
        """Local rows by the number of wire rows that they need."""
        for local in table.local:
            self._waiting[local.need].append(local)

    def run(self) -> Table:
        wires = locals_ = 0
        for is_wire in self._table.order:
            if is_wire:
                self._wire(wires, self._table.wire[wires])
                wires += 1
            else:
                self._local(locals_, self._table.local[locals_])
                locals_ += 1
        for slot in tuple(self._held):
            self._close(slot)
        wire = tuple(self._row(number, row) for number, row in enumerate(self._table.wire))
        return replace(self._table, wire=wire)

    def _row(self, number: int, row: WireRow) -> WireRow:
        found = self._found.get(number, _Lent())
        return replace(
            row,
            lent=frozenset(found.slots),
            release=found.release,
            early=self._is_early(number, row),
        )

    def _is_early(self, number: int, row: WireRow) -> bool:
        """Whether no kernel that waits for the row's messages writes what the row sends."""
        if row.native is not None:
            return False
        sent = [(slot, offset, offset + nbytes) for slot, offset, nbytes, _ in row.sends]
        for local in self._waiting.get(number + 1, ()):
            slot, first = local.dst
            stop = first + local.count * self._itemsize
            if any(slot == s and first < end and begin < stop for s, begin, end in sent):
                return False
        return True

    def _wire(self, number: int, row: WireRow) -> None:
        for slot, _, _, _ in row.sends:
            self._spoil(slot)
        if row.native is not None:
            for place in (row.native.src, row.native.dst):
                if place is not None:
                    self._spoil(place[0])
        slots = [message[0] for message in row.recvs]
        for slot, offset, nbytes, _ in row.recvs:
            if slot < SCRATCH:
                continue
            before = self._held.get(slot)
            if before is not None and (offset or nbytes < before.nbytes):
                before.is_read_only = False  # a part of what it brought may stay in use
            self._close(slot)
            self._held[slot] = _Arrival(number, nbytes)
            if offset or slots.count(slot) > 1:
                self._spoil(slot)

    def _local(self, number: int, row: LocalRow) -> None:
        for slot, offset in row.srcs:
            arrival = self._held.get(slot)
            if arrival is not None:
                arrival.last_reader = number + 1
                if row.need > arrival.row + 1:
                    arrival.is_read_only = False  # it would be held up by later messages
                if offset + row.count * self._itemsize > arrival.nbytes:
                    arrival.is_read_only = (
                        False  # more than the message is read: it was there before
                    )
        self._spoil(row.dst[0])

    def _spoil(self, slot: int) -> None:
        if slot in self._held:
            self._held[slot].is_read_only = False

    def _close(self, slot: int) -> None:
        """The slot is written anew, or the table is at its end."""
        arrival = self._held.pop(slot, None)
        if arrival is not None and arrival.is_read_only:
            found = self._found.setdefault(arrival.row, _Lent())
            found.slots.add(slot)
            found.release = max(found.release, arrival.last_reader)

"""RAWCOLL_CHECK: every call's signature, compared over the ranks before the call starts.

Owns the fields that must agree. The comparison runs on a transport of its own and may block at the call,
within the communicator's time limit.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from itertools import product
from typing import Any, Final

import numpy as np

from rawcoll.comm.calls import Call
from rawcoll.comm.handshake import refuse_differences
from rawcoll.errors import RankMismatch
from rawcoll.executor.cursor import Cursor
from rawcoll.executor.plan import Plan
from rawcoll.executor.table import Table, WireRow
from rawcoll.executor.walk import walk_of
from rawcoll.kernels.protocol import Kernels
from rawcoll.transport.base import Transport
from rawcoll.types import DTYPES, Op

_NBYTES: Final = 1024
_COUNT_NBYTES: Final = 24
_MOST_COUNTS: Final = 64
"""all_to_all's counts are compared up to this many ranks: every rank sends all of its own."""
_EXCHANGED: Final = ("sends", "receives")


def fields_of(call: Call, algorithm: str, sequence: int) -> dict[str, Any]:
    """What must agree; counts of all_to_all differ by rank and must agree in pairs."""
    fields: dict[str, Any] = {"collective": call.collective}
    sizes = call.sizes
    if not sizes.dst_parts:
        fields["count"] = sizes.count
        fields["counts"] = _short(", ".join(map(str, sizes.parts)))
    fields |= {
        "dtype": call.dtype.name,
        "op": call.op.name.lower(),
        "root": call.root,
        "algorithm": _short(algorithm),
        "call number": sequence,
    }
    if sizes.dst_parts and len(sizes.parts) <= _MOST_COUNTS:
        fields |= zip(_EXCHANGED, (sizes.parts, sizes.dst_parts), strict=True)
    return fields


def _short(text: str) -> str:
    """At most 400 characters, different for different texts."""
    return text if len(text) <= 400 else f"{text[:360]}... (digest {zlib.crc32(text.encode()):08x})"


class Exchange:
    """Gathers one signature a rank: one transfer, every rank to every other.

    Args:
        transport: used for nothing else.
        kernels: of the host.
    """

    def __init__(self, transport: Transport, kernels: Kernels) -> None:
        self._transport = transport
        self._kernels = kernels
        self._rank, self._nranks = transport.rank, transport.nranks
        self._nbytes = _NBYTES + 2 * _COUNT_NBYTES * min(self._nranks, _MOST_COUNTS)
        self._buffer = np.zeros((self._nranks, self._nbytes), np.uint8)

    def start(self, fields: dict[str, Any]) -> Cursor:
        """Begin; the cursor has finished when all signatures are here."""
        nbytes = self._nbytes
        data = json.dumps(fields).encode().ljust(nbytes)
        self._buffer[self._rank] = np.frombuffer(data, np.uint8)
        peers = [peer for peer in range(self._nranks) if peer != self._rank]
        sends = tuple((0, self._rank * nbytes, nbytes, peer) for peer in peers)
        recvs = tuple((0, peer * nbytes, nbytes, peer) for peer in peers)
        rows = (WireRow(0, 0, sends, recvs, None),) if peers else ()
        plan = Plan.of("signature", Table(rows, ()), DTYPES["uint8"], Op.SUM, self._nranks)
        address = int(self._buffer.ctypes.data)
        walk = walk_of(plan, self._transport, self._kernels)
        walk.place([address, address])
        return Cursor(walk, 0)

    def compare(self) -> None:
        """Refuse calls that differ.

        Raises:
            RankMismatch: on every rank, naming the field, the ranks and the values.
        """
        fields = [json.loads(row.tobytes()) for row in self._buffer]
        collective = fields[0]["collective"]
        same = all(entry["collective"] == collective for entry in fields)
        if not same:
            fields = [{"collective": entry["collective"]} for entry in fields]
        exchanged = [[entry.pop(name, ()) for name in _EXCHANGED] for entry in fields]
        refuse_differences(fields, collective if same else "call")
        _refuse_unmatched(collective, *zip(*exchanged, strict=True))


def _refuse_unmatched(
    collective: str, sends: Sequence[Sequence[int]], receives: Sequence[Sequence[int]]
) -> None:
    """Refuse an exchange in which a rank expects another count than its peer sends."""
    if not all(sends):
        return
    for source, destination in product(range(len(sends)), repeat=2):
        sent, expected = sends[source][destination], receives[destination][source]
        if sent != expected:
            raise RankMismatch(
                f"{collective}: counts differ: found {sent} sent by rank {source} to rank "
                f"{destination}, which expected {expected}",
                collective=collective,
                peers=(source, destination),
            )

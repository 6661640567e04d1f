"""RAWCOLL_CHECK: every call's signature, compared over the ranks before the call starts.

Owns the fields that must agree. The comparison runs on a transport of its own and may block at the call,
within the communicator's time limit.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from rawcoll.comm.calls import Call
from rawcoll.comm.handshake import refuse_differences
from rawcoll.executor.cursor import Cursor
from rawcoll.executor.plan import Plan
from rawcoll.executor.table import Table, WireRow
from rawcoll.kernels.protocol import Kernels
from rawcoll.transport.base import Transport
from rawcoll.types import DTYPES, Op

NBYTES = 1024
"""Size of one rank's signature on the wire: long enough for the fields, and fixed."""


def fields_of(call: Call, algorithm: str, sequence: int) -> dict[str, Any]:
    """What must agree. Counts of all_to_all differ by rank, so only their sum's parts are left out."""
    fields: dict[str, Any] = {"collective": call.collective}
    if not call.sizes.dst_parts:
        fields["count"] = call.sizes.count
        fields["counts"] = _short(call.sizes.parts)
    return fields | {
        "dtype": call.dtype.name,
        "op": call.op.name.lower(),
        "root": call.root,
        "algorithm": algorithm,
        "call number": sequence,
    }


def _short(parts: tuple[int, ...]) -> str:
    text = ", ".join(map(str, parts))
    return text if len(text) <= 400 else f"{text[:360]}... (digest {hash(parts) & 0xFFFFFFFF:08x})"


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
        self._buffer = np.zeros((self._nranks, NBYTES), np.uint8)

    def start(self, fields: dict[str, Any]) -> Cursor:
        """Begin; the cursor has finished when all signatures are here."""
        data = json.dumps(fields).encode()[:NBYTES].ljust(NBYTES)
        self._buffer[self._rank] = np.frombuffer(data, np.uint8)
        peers = [peer for peer in range(self._nranks) if peer != self._rank]
        sends = tuple((0, self._rank * NBYTES, NBYTES, peer) for peer in peers)
        recvs = tuple((0, peer * NBYTES, NBYTES, peer) for peer in peers)
        rows = (WireRow(0, 0, sends, recvs, None),) if peers else ()
        plan = Plan.of("signature", Table(rows, ()), DTYPES["uint8"], Op.SUM, self._nranks)
        address = int(self._buffer.ctypes.data)
        return Cursor(plan, [address, address], self._transport, self._kernels, 0)

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
        refuse_differences(fields, collective if same else "call")

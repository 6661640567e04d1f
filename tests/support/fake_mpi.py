"""MPI's four functions in one process: what native code calls where it would call the library.

Owns a stand-in with C's calling convention, made of ctypes callbacks. A rank's communicator is its number;
requests are numbers too. A message moves when both ends are posted.
"""

from __future__ import annotations

import ctypes
from collections import defaultdict, deque
from dataclasses import dataclass
from typing import Any

from rawcoll.native import _native

BYTE = 77
OTHER_ERROR = 15


@dataclass
class _Posted:
    address: int
    nbytes: int
    request: int


class FakeMpi:
    """The library of ``nranks`` ranks.

    Args:
        handle_nbytes: 4, integers as MPICH has them, or 8, pointers as Open MPI has them.
        max_nbytes: of one piece of a message.
    """

    def __init__(self, handle_nbytes: int = 4, max_nbytes: int = 1 << 30) -> None:
        handle: Any = ctypes.c_int if handle_nbytes == 4 else ctypes.c_void_p
        self._handle = handle
        self._max_nbytes = max_nbytes
        self._waiting: dict[tuple[str, int, int, int], deque[_Posted]] = defaultdict(deque)
        self._complete: set[int] = set()
        self.nrequests = 0
        self.sizes: list[int] = []
        """Of the pieces that were sent."""
        self.fails = ""
        """Which function reports an error: ``isend``, ``irecv`` or ``test``."""
        post = ctypes.CFUNCTYPE(
            ctypes.c_int, ctypes.c_void_p, ctypes.c_int, handle, ctypes.c_int, ctypes.c_int, handle,
            ctypes.POINTER(handle),
        )  # fmt: skip
        test = ctypes.CFUNCTYPE(
            ctypes.c_int,
            ctypes.POINTER(handle),
            ctypes.POINTER(ctypes.c_int),
            ctypes.c_void_p,
        )
        text = ctypes.CFUNCTYPE(
            ctypes.c_int, ctypes.c_int, ctypes.POINTER(ctypes.c_char), ctypes.POINTER(ctypes.c_int)
        )
        self._callbacks = (
            post(self._isend),
            post(self._irecv),
            test(self._test),
            text(self._error_string),
        )

    def of(self, rank: int) -> Any:
        """What native code takes for ``rank``."""
        addresses = tuple(ctypes.cast(one, ctypes.c_void_p).value for one in self._callbacks)
        nbytes = ctypes.sizeof(self._handle)
        return _native.Mpi(addresses, rank, BYTE, nbytes, self._max_nbytes)

    def _isend(
        self, at: int, nbytes: int, kind: int, peer: int, tag: int, comm: int | None, request: Any
    ) -> int:
        self.sizes.append(nbytes)
        return self._post("isend", (comm or 0, peer, tag), at, nbytes, kind, request)

    def _irecv(
        self, at: int, nbytes: int, kind: int, peer: int, tag: int, comm: int | None, request: Any
    ) -> int:
        return self._post("irecv", (peer, comm or 0, tag), at, nbytes, kind, request)

    def _post(
        self, name: str, pair: tuple[int, int, int], at: int, nbytes: int, kind: int, request: Any
    ) -> int:
        assert kind == BYTE
        if self.fails == name:
            return OTHER_ERROR
        self.nrequests += 1
        request[0] = self.nrequests
        posted = _Posted(at, nbytes, self.nrequests)
        other = self._waiting["irecv" if name == "isend" else "isend", *pair]
        if not other:
            self._waiting[name, *pair].append(posted)
            return 0
        ends = (posted, other.popleft())
        send, recv = ends if name == "isend" else ends[::-1]
        assert send.nbytes == recv.nbytes
        ctypes.memmove(recv.address, send.address, send.nbytes)
        self._complete |= {send.request, recv.request}
        return 0

    def _test(self, request: Any, is_complete: Any, _status: int) -> int:
        if self.fails == "test":
            return OTHER_ERROR
        number = request[0]
        is_complete[0] = number in self._complete
        if is_complete[0]:
            self._complete.remove(number)
            request[0] = 0
        return 0

    def _error_string(self, code: int, text: Any, length: Any) -> int:
        words = f"error {code}".encode()
        ctypes.memmove(text, words, len(words) + 1)
        length[0] = len(words)
        return 0

"""The C++ extension: host kernels, messages between ranks, and the walk over a table of operations.

Positional calls with numbers and addresses: see rawcoll/kernels/protocol.py for the kernels and the headers
in native/host for the rest.
"""

from collections.abc import Sequence

_Message = tuple[int, int, int, int]
_Place = tuple[int, int]

FAR: int
"""The number of a peer that does not share memory."""
name: str

def reduce(
    op: int, dtype: int, dst: int, srcs: tuple[int, ...], count: int, divisor: int, /
) -> None: ...
def copy(dst: int, src: int, nbytes: int, /) -> None: ...
def scale(dtype: int, dst: int, src: int, count: int, factor: float, /) -> None: ...
def cast(dst_dtype: int, dst: int, src_dtype: int, src: int, count: int, /) -> None: ...
def address(buffer: object, /) -> int: ...
def build_info() -> dict[str, str]: ...
def simd_levels() -> list[str]: ...
def set_simd_level(name: str, /) -> None: ...
def mailbox_nbytes(nranks: int, nentries: int, arena_nbytes: int) -> int:
    """Size of one rank's segment, which must be zeroes at first."""

class Mailbox:
    """One rank's end of the shared segments of its node."""

    def __init__(
        self, segments: Sequence[int], number: int, nentries: int, arena_nbytes: int
    ) -> None: ...

class Mpi:
    """MPI_Isend, MPI_Irecv, MPI_Test and MPI_Error_string on one communicator."""

    def __init__(
        self,
        functions: tuple[int, ...],
        comm: int,
        byte: int,
        handle_nbytes: int,
        max_nbytes: int,
    ) -> None: ...

class Wires:
    """One rank's connection to all others."""

    def __init__(self, numbers: Sequence[int], box: Mailbox | None, mpi: Mpi | None) -> None: ...
    def add_region(self, start: int, nbytes: int, addresses: Sequence[int]) -> None: ...

class Posted:
    """One transfer under way."""

    def __init__(
        self,
        wires: Wires,
        sends: Sequence[_Message],
        recvs: Sequence[_Message],
        bases: Sequence[int],
        tag: int,
    ) -> None: ...
    def test(self) -> bool: ...
    def missing(self) -> tuple[int, ...]: ...

class Table:
    """Made by ``table``."""

def table(
    wire: Sequence[
        tuple[int, int, Sequence[_Message], Sequence[_Message], Sequence[int], bool, int]
    ],
    local: Sequence[tuple[int, int, _Place, Sequence[_Place], int]],
    op: int,
    dtype: int,
    divisor: int,
) -> Table:
    """Rows of rawcoll.executor.table for native code.

    Args:
        wire: need, round, sends, recvs, lent slots, early, release.
        local: need, kernel, dst, srcs, count.
        op, dtype: codes.
        divisor: of the last reduction.
    """

class Walk:
    """See rawcoll.executor.walk.Walk."""

    def __init__(self, wires: Wires, table: Table) -> None: ...
    @property
    def is_empty(self) -> bool: ...
    @property
    def round(self) -> int | None: ...
    @property
    def missing(self) -> tuple[int, ...]: ...
    def place(self, bases: Sequence[int], /) -> None: ...
    def place_array(self, address: int, /) -> None: ...
    def restart(self, tag: int, /) -> None: ...
    def step(self, patience: int, /) -> int: ...

"""MPI's errors as rawcoll's: the one place where they are mapped."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from mpi4py import MPI

from rawcoll.errors import TransportError


def transport_error(what: str, error: MPI.Exception, rank: int, *peers: int) -> TransportError:
    """The error of an MPI call that was about ``what``."""
    text = f"{what}: MPI reported an error: found {error.Get_error_string()}, expected success"
    return TransportError(text, rank=rank, peers=peers)


@contextmanager
def mapped(what: str, rank: int) -> Iterator[None]:
    """Map MPI's errors in the block."""
    try:
        yield
    except MPI.Exception as error:
        raise transport_error(what, error, rank) from error

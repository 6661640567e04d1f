"""Every exception that rawcoll raises.

::

    RawcollError
    ├── InvalidArgument        a value that the caller passed; nothing was enqueued
    ├── BackendUnavailable     an MPI, device or library that is missing or does not fit
    ├── ScheduleError          an algorithm whose programs do not prove
    ├── RankMismatch           ranks that called with different values
    ├── TransportError         the library below failed
    │   └── PeerLost           ... because a rank is gone
    └── CollectiveTimeout      a call that made no progress within the time limit

Messages read ``argument: fact: found X, expected Y``. The fields that a program may want to act on
(rank, peers, sequence number, collective, round) are attributes; all exceptions pickle.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any


class RawcollError(Exception):
    """Base of all rawcoll errors.

    Attributes:
        message: the text.
        rank: rank in the communicator that raised, or None outside one.
        collective: name of the collective, or None.
        sequence: sequence number of the call on its communicator, or None.
        round: round of the schedule that was under way, or None.
        peers: ranks that the message is about.
    """

    def __init__(
        self,
        message: str,
        *,
        rank: int | None = None,
        collective: str | None = None,
        sequence: int | None = None,
        round: int | None = None,
        peers: Iterable[int] = (),
    ) -> None:
        super().__init__(message)
        self.message = message
        self.rank = rank
        self.collective = collective
        self.sequence = sequence
        self.round = round
        self.peers = tuple(peers)

    def __reduce__(self) -> tuple[Callable[..., RawcollError], tuple[Any, ...]]:
        fields = {name: value for name, value in vars(self).items() if name != "message"}
        return _rebuild, (type(self), self.message, fields)


def _rebuild(kind: type[RawcollError], message: str, fields: dict[str, Any]) -> RawcollError:
    error = kind(message)
    vars(error).update(fields)  # whatever was set later too, such as notes
    return error


class InvalidArgument(RawcollError, ValueError):
    """An argument that cannot be served; raised before anything is enqueued."""


class BackendUnavailable(RawcollError):
    """A device, MPI or library that is missing, too old, or not the one the launcher used."""


class ScheduleError(RawcollError):
    """An algorithm whose programs are wrong, or whose constraints the call does not meet."""


class RankMismatch(RawcollError):
    """Ranks disagree about a call or about their environment."""


class TransportError(RawcollError):
    """The library that carries messages reported an error."""


class PeerLost(TransportError):
    """A peer is gone."""


class CollectiveTimeout(RawcollError):
    """A call did not end within the communicator's time limit."""


def unknown_name(argument: str, found: object, known: Iterable[str]) -> InvalidArgument:
    """The error for a name that is none of ``known``; lists them."""
    return InvalidArgument(
        f"{argument}: unknown name: found {found!r}, expected one of {', '.join(sorted(known))}"
    )

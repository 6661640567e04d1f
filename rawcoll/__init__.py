"""rawcoll: collective communication by schedules that are proved, then run.

The public names; everything else is internal.
"""

from rawcoll.comm.communicator import Communicator
from rawcoll.comm.init import init
from rawcoll.device.host import Event, Stream
from rawcoll.errors import (
    BackendUnavailable,
    CollectiveTimeout,
    InvalidArgument,
    PeerLost,
    RankMismatch,
    RawcollError,
    ScheduleError,
    TransportError,
)

__all__ = [
    "BackendUnavailable",
    "CollectiveTimeout",
    "Communicator",
    "Event",
    "InvalidArgument",
    "PeerLost",
    "RankMismatch",
    "RawcollError",
    "ScheduleError",
    "Stream",
    "TransportError",
    "init",
]

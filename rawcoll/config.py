"""Settings from the environment: every ``RAWCOLL_*`` variable, its meaning and its value when unset.

Owns the parsing and the messages about bad values. Reads the mapping that it is given and nothing else;
on a communicator the values of rank 0 are used everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from rawcoll.errors import InvalidArgument, unknown_name

VARIABLES: Final = {
    "RAWCOLL_ALGO": "algorithm instead of 'auto': NAME, or COLLECTIVE:NAME;COLLECTIVE:NAME",
    "RAWCOLL_CHECK": "1: compare every call's signature over the ranks before it starts",
    "RAWCOLL_DEBUG": "WARN, INFO or DEBUG: what is logged to stderr",
    "RAWCOLL_NATIVE": "0: numpy kernels instead of the compiled ones",
    "RAWCOLL_SHM": "0: messages between ranks of one node go over MPI too",
    "RAWCOLL_TIMEOUT_S": "seconds after which a blocked call raises CollectiveTimeout",
}
LOCAL_VARIABLES: Final = frozenset({"RAWCOLL_DEBUG"})
"""Variables that may differ between ranks."""
DEFAULT_TIMEOUT_S: Final = 600.0
_LEVELS: Final = ("WARN", "INFO", "DEBUG")


@dataclass(frozen=True, slots=True)
class Settings:
    """Values of the variables.

    Attributes:
        algorithms: entries of RAWCOLL_ALGO: ``NAME`` or ``COLLECTIVE:NAME``.
        check: compare signatures before each call.
        shared_memory: let messages between ranks of one node go through shared memory.
        timeout_s: time limit of a call in seconds.
    """

    algorithms: tuple[str, ...] = ()
    check: bool = False
    shared_memory: bool = True
    timeout_s: float = DEFAULT_TIMEOUT_S


def settings_from(environ: Mapping[str, str]) -> Settings:
    """Parse the environment.

    Raises:
        InvalidArgument: a value that does not parse, or an unknown ``RAWCOLL_*`` variable.
    """
    for name in environ:
        if name.startswith("RAWCOLL_") and name not in VARIABLES:
            raise unknown_name("environment", name, VARIABLES)
    return Settings(
        algorithms=_algorithms(environ.get("RAWCOLL_ALGO", "")),
        check=_flag("RAWCOLL_CHECK", environ.get("RAWCOLL_CHECK", "0")),
        shared_memory=_flag("RAWCOLL_SHM", environ.get("RAWCOLL_SHM", "1")),
        timeout_s=timeout_from("RAWCOLL_TIMEOUT_S", environ.get("RAWCOLL_TIMEOUT_S", "")),
    )


def debug_level(environ: Mapping[str, str]) -> str | None:
    """The level of ``RAWCOLL_DEBUG``, or None when it is unset."""
    value = environ.get("RAWCOLL_DEBUG", "").upper()
    if value and value not in _LEVELS:
        raise unknown_name("RAWCOLL_DEBUG", value, _LEVELS)
    return value or None


def timeout_from(argument: str, value: str | float | None) -> float:
    """A time limit in seconds; the default when ``value`` is empty or None."""
    if value is None or value == "":
        return DEFAULT_TIMEOUT_S
    try:
        seconds = float(value)
    except (TypeError, ValueError):
        seconds = -1.0
    if not seconds > 0:
        raise InvalidArgument(f"{argument}: found {value!r}, expected a positive number of seconds")
    return seconds


def _flag(name: str, value: str) -> bool:
    if value not in ("", "0", "1"):
        raise InvalidArgument(f"{name}: found {value!r}, expected 0 or 1")
    return value == "1"


def _algorithms(value: str) -> tuple[str, ...]:
    """``ring``, or ``all_reduce:ring;broadcast:tree(segments=4)``."""
    return tuple(entry for part in value.split(";") if (entry := part.strip()))

"""What an algorithm is: a value that turns (collective, rank, number of ranks) into a program.

Owns the protocol that every algorithm meets, the constraints that it may declare, and the text that
names it with its parameters. Knows nothing of single algorithms, arrays or sizes beyond a byte
count.

Key terms: *in-place form*: before the program OUTPUT holds the rank's input, and the program writes
OUTPUT only inside the rank's result; *fitted*: with every parameter that was left open given a
value.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Protocol, runtime_checkable

from rawcoll.errors import InvalidArgument, ScheduleError
from rawcoll.schedule.builder import Builder
from rawcoll.schedule.program import Program, Spec


@dataclass(frozen=True, slots=True)
class Constraints:
    """What an algorithm asks of a call.

    Attributes:
        min_ranks: fewest ranks.
        max_ranks: most ranks; None: any number.
        multiple_of: the number of ranks is a multiple of it.
        even: the number of ranks is even.
        power_of_two: the number of ranks is a power of two.
        min_nbytes: smallest array.
        max_nbytes: largest array; None: any size.
    """

    min_ranks: int = 1
    max_ranks: int | None = None
    multiple_of: int = 1
    even: bool = False
    power_of_two: bool = False
    min_nbytes: int = 0
    max_nbytes: int | None = None

    def refusal(self, nranks: int, nbytes: int | None = None) -> str | None:
        """Why a call does not fit, as ``argument: fact: found X, expected Y``; None where it does.

        ``nbytes`` None leaves the size out of the question.
        """
        if nranks < self.min_ranks:
            return f"nranks: too few: found {nranks}, expected at least {self.min_ranks}"
        if self.max_ranks is not None and nranks > self.max_ranks:
            return f"nranks: too many: found {nranks}, expected at most {self.max_ranks}"
        if nranks % self.multiple_of:
            return (
                f"nranks: not divisible: found {nranks}, expected a multiple of {self.multiple_of}"
            )
        if self.even and nranks % 2:
            return f"nranks: odd: found {nranks}, expected an even number"
        if self.power_of_two and nranks & (nranks - 1):
            return f"nranks: not a power of two: found {nranks}, expected 1, 2, 4, ..."
        return None if nbytes is None else self._size_refusal(nbytes)

    def _size_refusal(self, nbytes: int) -> str | None:
        if nbytes < self.min_nbytes:
            return f"nbytes: too small: found {nbytes}, expected at least {self.min_nbytes}"
        if self.max_nbytes is not None and nbytes > self.max_nbytes:
            return f"nbytes: too large: found {nbytes}, expected at most {self.max_nbytes}"
        return None


@runtime_checkable
class Algorithm(Hashable, Protocol):
    """A way to carry out one or more collectives. A value: frozen, hashable, equal by value."""

    @property
    def name(self) -> str:
        """The name that it is chosen by."""

    @property
    def collectives(self) -> frozenset[str]:
        """The collectives that it offers."""

    @property
    def constraints(self) -> Constraints:
        """What it asks of a call."""

    def program(self, spec: Spec) -> Program:
        """The program of one rank, in the in-place form (all_to_all: out of place).

        Raises:
            InvalidArgument: the collective is not offered.
            ScheduleError: the number of ranks is not served.
        """

    def rounds(self, collective: str, nranks: int) -> int:
        """How many rounds there are, found without building the programs.

        An uneven hierarchy may leave some of them without messages.
        """

    def fitted(self, nbytes: int, nranks: int) -> Algorithm:
        """This algorithm with open parameters given values for an array of ``nbytes`` bytes."""


def check_fits(algorithm: Algorithm, spec: Spec, nbytes: int | None = None) -> None:
    """Refuse a call that the algorithm does not serve.

    Raises:
        InvalidArgument: the collective is not offered.
        ScheduleError: number of ranks or size are outside the algorithm's constraints.
    """
    if spec.collective not in algorithm.collectives:
        offered = ", ".join(sorted(algorithm.collectives))
        raise InvalidArgument(
            f"algorithm: {algorithm.name} does not offer the collective:"
            f" found {spec.collective!r}, expected one of {offered}",
            collective=spec.collective,
        )
    refusal = algorithm.constraints.refusal(spec.nranks, nbytes)
    if refusal is not None:
        raise ScheduleError(f"{text(algorithm)}: {refusal}", collective=spec.collective)


def start(algorithm: Algorithm, spec: Spec, nunits: int, *, in_place: bool = True) -> Builder:
    """A builder for a call that the algorithm serves; raises what ``check_fits`` raises."""
    check_fits(algorithm, spec)
    return Builder(spec, nunits, in_place=in_place)


def check_at_least_one(argument: str, value: int | None) -> None:
    """Refuse a parameter below 1; None means that it is left open."""
    if value is not None and value < 1:
        raise InvalidArgument(f"{argument}: out of range: found {value}, expected at least 1")


def check_permutation(argument: str, ranks: Sequence[int]) -> None:
    """Refuse anything but each of the ranks 0, 1, ... once."""
    if sorted(ranks) != list(range(len(ranks))):
        raise InvalidArgument(
            f"{argument}: not a permutation: found {tuple(ranks)},"
            f" expected each of 0 to {len(ranks) - 1} once"
        )


def text(algorithm: Algorithm) -> str:
    """Name and parameters, as ``algorithm_from`` reads them: ``ring(segments=4,order=0-2-1-3)``."""
    given = [f"{name}={_value_text(value)}" for name, value in parameters_of(algorithm)]
    return f"{algorithm.name}({','.join(given)})" if given else algorithm.name


def parameters_of(algorithm: Any) -> list[tuple[str, Any]]:
    """Names and values of the parameters that have a value.

    A parameter is a dataclass field that takes part in ``repr``.
    """
    if not is_dataclass(algorithm):
        return []
    values = ((f.name, getattr(algorithm, f.name)) for f in fields(algorithm) if f.repr)
    return [(name, value) for name, value in values if value is not None]


def _value_text(value: Any) -> str:
    if isinstance(value, tuple):
        return ranks_text(value)
    return text(value) if isinstance(value, Algorithm) else str(value)


def ranks_text(ranks: tuple[Any, ...]) -> str:
    """Ranks joined by ``-``; nested tuples by ``/``, deeper ones by ``//``, and so on.

    A ``.`` stands for nothing, after the separator of a level that has one member only.
    """
    height = _height(ranks)
    if height == 1:
        return "-".join(map(str, ranks))
    members = [ranks_text(member) for member in ranks]
    return ("/" * (height - 1)).join(members if len(members) > 1 else [*members, "."])


def _height(ranks: Any) -> int:
    return 1 + _height(ranks[0]) if isinstance(ranks, tuple) else 0

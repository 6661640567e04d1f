"""A function of the user's as an algorithm.

The function is called as ``f(rank, nranks, b)`` with the builder of one rank; what it may use is
``b.units``, ``b.span``, ``b.scratch``, ``b.send``, ``b.recv``, ``b.reduce``, ``b.copy`` and
``b.spec`` (collective and root). It must depend on nothing else. All ranks are asked in turn to
count rounds and to prove, one rank only to run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from rawcoll.algorithms.base import Algorithm, Constraints, start
from rawcoll.schedule.builder import Builder
from rawcoll.schedule.collectives import COLLECTIVES, collective_of
from rawcoll.schedule.ops import Native, Transfer
from rawcoll.schedule.program import Program, Spec

Writer = Callable[[int, int, Builder], None]


@dataclass(frozen=True, slots=True)
class FunctionAlgorithm:
    """An algorithm that is written by a function; equal where the function is the same object.

    Attributes:
        function: called as ``function(rank, nranks, builder)``.
        name: what it is shown as.
        collectives: what it offers; a function that was not declared is taken at its word for any.
        constraints: what it asks of a call.
    """

    function: Writer = field(repr=False)
    name: str = field(repr=False)
    collectives: frozenset[str] = field(default=frozenset(COLLECTIVES), repr=False)
    constraints: Constraints = field(default=Constraints(), repr=False)

    def program(self, spec: Spec) -> Program:
        """See Algorithm."""
        b = start(self, spec, 1, in_place=spec.collective != "all_to_all")
        self.function(spec.rank, spec.nranks, b)
        return b.build()

    def rounds(self, collective: str, nranks: int) -> int:
        """See Algorithm. Writes the programs of all ranks."""
        programs = (self.program(Spec(collective, rank, nranks)) for rank in range(nranks))
        return 1 + max(map(_last_round, programs), default=-1)

    def fitted(self, nbytes: int, nranks: int) -> Algorithm:
        """See Algorithm."""
        return self


def algorithm(
    collectives: Iterable[str] = ("all_reduce",), name: str | None = None, **constraints: Any
) -> Callable[[Writer], FunctionAlgorithm]:
    """Declare a function to be an algorithm.

    Args:
        collectives: what it offers.
        name: what it is shown as; None: the function's name.
        constraints: fields of Constraints.

    Raises:
        InvalidArgument: a collective is not known.
        TypeError: a constraint is not known.
    """
    offered = frozenset(collective_of(collective).name for collective in collectives)
    asked = Constraints(**constraints)

    def declare(function: Writer) -> FunctionAlgorithm:
        return FunctionAlgorithm(function, name or function_name(function), offered, asked)

    return declare


def function_name(function: Callable[..., Any]) -> str:
    """The name of a function, or of the type of another callable."""
    return str(getattr(function, "__name__", type(function).__name__))


def _last_round(program: Program) -> int:
    wire = [s.action.round for s in program.steps if isinstance(s.action, Transfer | Native)]
    return wire[-1] if wire else -1

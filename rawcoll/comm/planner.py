"""From a call to a plan: choose, build, prove, bind; each result kept for the next call.

Owns the bounded caches. They are keyed by values, never by addresses, and never by a program.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from rawcoll.algorithms.base import Algorithm, check_fits, text
from rawcoll.algorithms.catalog import algorithm_from, is_built_in
from rawcoll.algorithms.prove import prove
from rawcoll.comm.calls import Call
from rawcoll.errors import InvalidArgument
from rawcoll.executor.layout import layout_of
from rawcoll.executor.lending import with_lending
from rawcoll.executor.plan import Plan
from rawcoll.executor.table import compile_table
from rawcoll.schedule.collectives import COLLECTIVES
from rawcoll.schedule.passes import out_of_place
from rawcoll.schedule.program import Program, Spec
from rawcoll.tuning.selection import choose

AlgorithmLike = str | Algorithm | Callable[..., None]
"""A name, a name with parameters, a value, or a function that builds with a Builder."""

_MOST_PLANS: Final = 512
_MOST_PROGRAMS: Final = 128
_PROVED_RANKS: Final = 16
"""Up to here built-in algorithms too are proved before their first use; beyond, the project's tests
have proved them, and only algorithms from outside are (which costs time in ranks and messages)."""

_log = logging.getLogger("rawcoll")
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Chosen:
    """The algorithm that runs, and why."""

    algorithm: Algorithm
    reason: str

    @property
    def text(self) -> str:
        """Name and parameters."""
        return text(self.algorithm)


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan and what it came from."""

    plan: Plan = field(repr=False)
    program: Program = field(repr=False)
    chosen: Chosen


class _Cache:
    """The most recently used values, at most ``most`` of them."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._entries: OrderedDict[Hashable, Any] = OrderedDict()

    def get(self, key: Hashable, make: Callable[[], _T]) -> _T:
        entries = self._entries
        try:
            found: _T = entries[key]
        except KeyError:
            found = entries[key] = make()
            if len(entries) > self._most:
                entries.popitem(last=False)
        else:
            entries.move_to_end(key)
        return found


class Planner:
    """Plans of one rank of a communicator.

    Args:
        rank, nranks: of the communicator.
        overrides: ``NAME`` or ``COLLECTIVE:NAME``, which take the place of "auto".
    """

    def __init__(self, rank: int, nranks: int, overrides: tuple[str, ...] = ()) -> None:
        self.rank = rank
        self.nranks = nranks
        self._overrides = _overrides(overrides)
        self._plans = _Cache(_MOST_PLANS)
        self._programs = _Cache(_MOST_PROGRAMS)

    def planned(self, call: Call, algorithm: AlgorithmLike) -> Planned:
        """The plan for a call.

        Raises:
            InvalidArgument: the algorithm is unknown or does not offer the collective.
            ScheduleError: its constraints are not met, or it does not prove.
        """
        try:
            hash(algorithm)
        except TypeError:
            algorithm = algorithm_from(algorithm)  # refuses it: what it takes is hashable
        return self._plans.get((call, algorithm), lambda: self._make(call, algorithm))

    def chosen(self, call: Call, algorithm: AlgorithmLike) -> Chosen:
        """The algorithm for a call, with all its parameters."""
        nbytes = choice_nbytes(call)
        if algorithm != "auto":
            return self._fitted(call, algorithm_from(algorithm), "named by the call")
        override = self._overrides.get(call.collective)
        if override is not None:
            return self._fitted(call, override, "RAWCOLL_ALGO")
        choice = choose(call.collective, nbytes, self.nranks)
        return self._fitted(call, algorithm_from(choice.algorithm), choice.reason)

    def program(self, chosen: Chosen, call: Call) -> Program:
        """This rank's program, proved before it may run."""
        key = (chosen.algorithm, call.collective, call.root, call.in_place)
        return self._programs.get(key, lambda: self._build(chosen.algorithm, call))

    def _fitted(self, call: Call, algorithm: Algorithm, reason: str) -> Chosen:
        spec = Spec(call.collective, self.rank, self.nranks, call.root)
        check_fits(algorithm, spec, choice_nbytes(call))
        return Chosen(algorithm.fitted(choice_nbytes(call), self.nranks), reason)

    def _make(self, call: Call, algorithm: AlgorithmLike) -> Planned:
        chosen = self.chosen(call, algorithm)
        program = self.program(chosen, call)
        layout = layout_of(program, call.sizes, call.dtype.itemsize)
        table = compile_table(program, layout, call.dtype.itemsize)
        table = with_lending(table, call.dtype.itemsize)
        plan = Plan.of(call.collective, table, call.dtype, call.op, self.nranks)
        if self.rank == 0:
            _log.info(
                "%s: %d of %s: %s (%s)",
                call.collective, call.sizes.count, call.dtype.name, chosen.text, chosen.reason,
            )  # fmt: skip
        return Planned(plan, program, chosen)

    def _build(self, algorithm: Algorithm, call: Call) -> Program:
        if self.nranks <= _PROVED_RANKS or not is_built_in(algorithm):
            prove(algorithm, call.collective, self.nranks, call.root)
        program = algorithm.program(Spec(call.collective, self.rank, self.nranks, call.root))
        return program if call.in_place else out_of_place(program)


def choice_nbytes(call: Call) -> int:
    """The size that choices may depend on: one that all ranks know, which all_to_all's is not."""
    return 0 if call.sizes.dst_parts else call.sizes.count * call.dtype.itemsize


def _overrides(entries: tuple[str, ...]) -> dict[str, Algorithm]:
    """By collective; an entry that names none is for every collective that its algorithm offers."""
    general: dict[str, Algorithm] = {}
    particular: dict[str, Algorithm] = {}
    for entry in entries:
        head, _, tail = entry.partition(":")
        if head not in COLLECTIVES:
            algorithm = algorithm_from(entry)
            general.update(dict.fromkeys(algorithm.collectives, algorithm))
            continue
        algorithm = particular[head] = algorithm_from(tail)
        if head not in algorithm.collectives:
            raise InvalidArgument(
                f"RAWCOLL_ALGO: {algorithm.name} does not offer {head}: expected one of "
                f"{', '.join(sorted(algorithm.collectives))}"
            )
    return general | particular

"""Cases: functions that run on every rank of a job; ranks start once a file, not once a case.

A test module under ``tests/mpi`` holds cases and hands them to pytest in its last line::

    from support.cases import each, mpi_cases, skip

    @each(dtype=["float32", "int8"], op=["sum", "max"])
    def case_ring(comm, dtype, op):
        ...assert on every rank...

    def case_mpi4py_only(mpi):
        ...

    test_ring = mpi_cases(globals(), nranks=(1, 2, 3))

pytest shows ``test_ring[3-case_ring[int8-max]]`` and so on, each with its own outcome. ``comm`` is
``rawcoll.init()``, made once a job; ``mpi`` is mpi4py's ``COMM_WORLD``. The module is imported by
pytest too, so it must not import mpi4py at its top.

This file is what ranks import, hence no pytest here. Support for pytest's side is in
``support.jobs``.
"""

from __future__ import annotations

import inspect
import itertools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

IN_RANK = "MPI_CASES_RANK"


class SkipCase(Exception):
    """Raised by ``skip``: the case does not apply to this job. No error."""


def skip(reason: str) -> None:
    """Leave the case; pytest shows it as skipped. All ranks of the job must do it together."""
    raise SkipCase(reason)


@dataclass(frozen=True, slots=True)
class Case:
    """One call of one function: its name as pytest shows it, and its arguments."""

    name: str
    function: Callable[..., None]
    arguments: Mapping[str, Any]

    @property
    def fixtures(self) -> list[str]:
        """Names of the parameters that the runner provides: ``comm``, ``mpi``."""
        return [
            name
            for name in inspect.signature(self.function).parameters
            if name not in self.arguments
        ]


def each(**values: Sequence[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Run the case for the product of these values. May be stacked for a sum of products."""

    def mark(function: Callable[..., None]) -> Callable[..., None]:
        rows = [dict(zip(values, row, strict=True)) for row in itertools.product(*values.values())]
        function.__dict__.setdefault("rows", [])[:0] = rows
        return function

    return mark


def find_cases(namespace: Mapping[str, Any]) -> dict[str, Case]:
    """Return the cases of a module's namespace by name, in the order of their definition."""
    cases = {}
    for name, function in namespace.items():
        if name.startswith("case_") and callable(function):
            for case in _expand(name, function):
                if case.name in cases:
                    raise ValueError(f"case: two have the same name: found {case.name} twice")
                cases[case.name] = case
    return cases


def mpi_cases(
    namespace: Mapping[str, Any],
    nranks: Sequence[int] = (1, 2, 3, 4, 5),
    *,
    case_timeout_s: float = 60.0,
    env: Mapping[str, str] | None = None,
) -> Any:
    """Return a pytest test that shows every case of the namespace for every number of ranks.

    Args:
        namespace: the module's ``globals()``; the cases must be defined above the call.
        nranks: sizes of the jobs, one job each.
        case_timeout_s: a case that takes longer is failed with the stacks of all ranks.
        env: variables to add for the ranks.
    """
    if os.environ.get(IN_RANK):
        return None
    from support.jobs import make_test

    names = tuple(find_cases(namespace))
    return make_test(namespace["__file__"], names, tuple(nranks), case_timeout_s, dict(env or {}))


def _expand(name: str, function: Callable[..., None]) -> Iterator[Case]:
    rows = getattr(function, "rows", None)
    if rows is None:
        yield Case(name, function, {})
        return
    for row in rows:
        yield Case(f"{name}[{'-'.join(map(_label, row.values()))}]", function, row)


def _label(value: Any) -> str:
    return getattr(value, "__name__", None) or str(value).replace(" ", "")

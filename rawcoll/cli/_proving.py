"""What ``rawcoll check`` proves, and a row of its table.

Owns which algorithms, collectives and roots stand for which, and how a failure reads. Prints
nothing.

Key terms: a *family* gives an algorithm for each number of ranks, since levels fit one number only.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from rawcoll.algorithms.base import Algorithm, text
from rawcoll.algorithms.catalog import ALGORITHMS, algorithm_from
from rawcoll.algorithms.function import FunctionAlgorithm
from rawcoll.algorithms.hierarchical import Hierarchical
from rawcoll.algorithms.prove import prove
from rawcoll.errors import RawcollError
from rawcoll.schedule.check import Proof
from rawcoll.schedule.collectives import COLLECTIVES

RootsFor = Callable[[str, int], tuple[int, ...]]
"""The roots to prove, for a collective and a number of ranks."""


@dataclass(frozen=True, slots=True)
class Family:
    """An algorithm for each number of ranks."""

    name: str
    of: Callable[[int], Algorithm]


@dataclass(slots=True)
class Row:
    """What became of one family and collective.

    Attributes:
        name, collective: which.
        proved: numbers of ranks.
        refused: numbers of ranks that the algorithm's constraints exclude, by reason.
        failure: the first failure; empty where there was none.
        largest: the proof for the largest number of ranks.
        nproofs: numbers of ranks times roots.
        seconds: time taken.
    """

    name: str
    collective: str
    proved: list[int] = field(default_factory=list)
    refused: dict[str, list[int]] = field(default_factory=dict)
    failure: str = ""
    largest: Proof | None = None
    nproofs: int = 0
    seconds: float = 0.0


def families(names: Sequence[str]) -> list[Family]:
    """The families that the names mean; all built-in ones where there are none.

    Raises:
        InvalidArgument: a name is unknown.
    """
    return [family for name in names or ALGORITHMS for family in _families(name)]


def _families(name: str) -> list[Family]:
    if name == Hierarchical.name:
        return [
            Family("hierarchical (nodes of 3)", lambda n: Hierarchical(_split(range(n), 3))),
            Family("hierarchical (3 nodes of 2)", lambda n: Hierarchical(_split_twice(n))),
        ]
    algorithm = algorithm_from(name)
    return [Family(text(algorithm), lambda _: algorithm)]


def _split(items: Sequence[Any], size: int) -> tuple[Any, ...]:
    return tuple(tuple(items[at : at + size]) for at in range(0, len(items), size))


def _split_twice(nranks: int) -> tuple[Any, ...]:
    return _split(_split(range(nranks), 2), 3)


def collectives_of(family: Family, named: bool) -> list[str]:
    """The collectives that a family offers, in the order of the catalogue.

    A function that declares none is taken at its word for those that are ``named``; else for an
    all_reduce.
    """
    algorithm = family.of(1)
    offered = [name for name in COLLECTIVES if name in algorithm.collectives]
    undeclared = isinstance(algorithm, FunctionAlgorithm) and len(offered) == len(COLLECTIVES)
    return ["all_reduce"] if undeclared and not named else offered


def roots_of(collective: str, nranks: int) -> tuple[int, ...]:
    """The first, the middle and the last rank, where a collective has a root."""
    if not COLLECTIVES[collective].rooted:
        return (0,)
    return tuple(sorted({0, nranks // 2, nranks - 1}))


def prove_row(
    family: Family, collective: str, ranks: Sequence[int], roots_for: RootsFor = roots_of
) -> Row:
    """Prove one family and collective, up to the first failure."""
    row = Row(family.name, collective)
    start = time.perf_counter()
    for nranks in ranks:
        algorithm = family.of(nranks)
        refusal = _refusal(algorithm, collective, nranks)
        if refusal is not None:
            row.refused.setdefault(refusal, []).append(nranks)
            continue
        row.failure = _prove_roots(row, algorithm, nranks, roots_for(collective, nranks))
        if row.failure:
            break
        row.proved.append(nranks)
    row.seconds = time.perf_counter() - start
    return row


def _refusal(algorithm: Algorithm, collective: str, nranks: int) -> str | None:
    """Why constraints exclude a case, in words that are the same for all numbers of ranks."""
    if collective not in algorithm.collectives:
        return f"it offers {', '.join(sorted(algorithm.collectives))}"
    refusal = algorithm.constraints.refusal(nranks)
    return None if refusal is None else refusal.replace(f"found {nranks}, ", "")


def _prove_roots(row: Row, algorithm: Algorithm, nranks: int, roots: Sequence[int]) -> str:
    """Prove for each root; returns the failure."""
    for root in roots:
        rooted = f", root {root}" if COLLECTIVES[row.collective].rooted else ""
        try:
            row.largest = prove(algorithm, row.collective, nranks, root)
        except RawcollError as error:
            return f"{nranks} ranks{rooted}: {error.message}"
        except Exception as error:  # an own algorithm may raise anything: name the place
            return f"{nranks} ranks{rooted}: {_where(error)}"
        row.nproofs += 1
    return ""


def _where(error: Exception) -> str:
    last = traceback.extract_tb(error.__traceback__)[-1]
    what = traceback.format_exception_only(error)[-1].strip()
    return f"{what} ({last.filename}, line {last.lineno}, in {last.name})"

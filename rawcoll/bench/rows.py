"""Rows of results, and the bandwidths in them."""

from __future__ import annotations

from dataclasses import dataclass

from rawcoll.bench.case import Case
from rawcoll.bench.choose import Plan
from rawcoll.bench.stats import Interval
from rawcoll.bench.timing import Timing


def algbw_gbps(case: Case, seconds: float) -> float:
    """nccl-tests' algorithm bandwidth: size over time, 1e9 bytes a second."""
    return case.nbytes / seconds / 1e9 if seconds > 0 else 0.0


def busbw_gbps(case: Case, seconds: float) -> float:
    """nccl-tests' bus bandwidth."""
    return algbw_gbps(case, seconds) * case.collective.busbw_factor(case.nranks)


@dataclass(frozen=True, slots=True)
class Row:
    """One line of nccl-tests' table."""

    case: Case
    plan: Plan
    out_of_place: Timing
    in_place: Timing

    @property
    def timings(self) -> tuple[Timing, Timing]:
        """Both placements, in the order of the table."""
        return self.out_of_place, self.in_place


@dataclass(frozen=True, slots=True)
class Block:
    """One algorithm's table."""

    label: str
    rows: tuple[Row, ...]

    @property
    def errors(self) -> int:
        """nccl-tests' count of failures: ranks with wrong elements, over all checks."""
        return sum(timing.wrong_ranks for row in self.rows for timing in row.timings)

    @property
    def mean_busbw_gbps(self) -> float:
        """The mean over all printed bus bandwidths, of both placements."""
        values = [busbw_gbps(row.case, t.seconds) for row in self.rows for t in row.timings]
        return sum(values) / len(values) if values else 0.0


@dataclass(frozen=True, slots=True)
class Cell:
    """One algorithm at one size of a comparison.

    Attributes:
        plan: what ran.
        times_s: seconds of a call, one for each repeat.
        seconds: their median between quartiles.
        speedup: the baseline's time over this one's: median of the repeats' ratios with its
            interval; None where the baseline does not fit.
        wrong: wrong elements; None if not checked.
    """

    plan: Plan
    times_s: tuple[float, ...]
    seconds: Interval
    speedup: Interval | None
    wrong: int | None


@dataclass(frozen=True, slots=True)
class ComparedRow:
    """One size of a comparison: a cell for each algorithm, None where it does not fit."""

    case: Case
    cells: tuple[Cell | None, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """The table of ``--compare``."""

    labels: tuple[str, ...]
    baseline: str
    rows: tuple[ComparedRow, ...]

    @property
    def errors(self) -> int:
        """Cells with wrong elements."""
        return sum(bool(cell and cell.wrong) for row in self.rows for cell in row.cells)

"""Summaries of repeated times: nccl-tests' per-iteration columns, medians, intervals of ratios.

Owns the arithmetic and its definitions. Knows nothing of what was timed.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

_RESAMPLES: Final = 2000
# A fixed seed: the same times give the same interval.
_SEED: Final = 20090214


@dataclass(frozen=True, slots=True)
class IterationStats:
    """nccl-tests' summary of one time an iteration, in seconds."""

    min: float
    max: float
    mean: float
    p50: float
    p95: float
    p99: float
    stdev: float

    @property
    def cv_pct(self) -> float:
        """Standard deviation in per cent of the mean."""
        return 100.0 * self.stdev / self.mean if self.mean > 0 else 0.0


@dataclass(frozen=True, slots=True)
class Interval:
    """A point estimate with a lower and an upper bound."""

    value: float
    low: float
    high: float


def iteration_stats(times: Sequence[float]) -> IterationStats:
    """Summarise as nccl-tests' ``computeIterStats`` does: percentiles are order statistics."""
    ordered = sorted(times)
    mean = sum(ordered) / len(ordered)
    variance = sum((time - mean) ** 2 for time in ordered) / len(ordered)
    return IterationStats(
        min=ordered[0],
        max=ordered[-1],
        mean=mean,
        p50=ordered[len(ordered) // 2],
        p95=ordered[_percentile_index(len(ordered), 95)],
        p99=ordered[_percentile_index(len(ordered), 99)],
        stdev=math.sqrt(variance),
    )


def _percentile_index(count: int, percentile: int) -> int:
    return min(count - 1, (count * percentile + 99) // 100 - 1)


def median_with_quartiles(values: Sequence[float]) -> Interval:
    """The median between the lower and the upper quartile."""
    if len(values) == 1:
        return Interval(values[0], values[0], values[0])
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return Interval(middle, low, high)


def median_ratio(numerators: Sequence[float], denominators: Sequence[float]) -> Interval:
    """The median of the ratios of paired values, with its 95 % bootstrap interval.

    The pairs are resampled with replacement; the bounds are the 2.5th and 97.5th percentile of the
    resampled medians. Pairing cancels what both of a pair met (a busy machine, a changed clock).
    """
    return median_with_bootstrap(
        [above / below for above, below in zip(numerators, denominators, strict=True)]
    )


def median_difference(minuends: Sequence[float], subtrahends: Sequence[float]) -> Interval:
    """The median of paired differences, with its 95 % bootstrap interval."""
    return median_with_bootstrap(
        [first - second for first, second in zip(minuends, subtrahends, strict=True)]
    )


def median_with_bootstrap(values: Sequence[float]) -> Interval:
    """The median with its 95 % percentile-bootstrap interval."""
    data = np.asarray(values, dtype=np.float64)
    picks = np.random.default_rng(_SEED).integers(0, data.size, (_RESAMPLES, data.size))
    medians = np.median(data[picks], axis=1)
    low, high = np.percentile(medians, (2.5, 97.5))
    return Interval(float(np.median(data)), float(low), float(high))


def geometric_mean(values: Sequence[float]) -> float:
    """The geometric mean of positive values."""
    return math.exp(sum(math.log(value) for value in values) / len(values))

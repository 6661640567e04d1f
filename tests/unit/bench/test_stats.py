from __future__ import annotations

import pytest

from rawcoll.bench.stats import (
    geometric_mean,
    iteration_stats,
    median_difference,
    median_ratio,
    median_with_bootstrap,
    median_with_quartiles,
)


def test_percentiles_are_the_order_statistics_of_nccl_tests() -> None:
    stats = iteration_stats([float(value) for value in range(20, 0, -1)])
    assert (stats.min, stats.max, stats.mean) == (1.0, 20.0, 10.5)
    # The element at half the count, and the one that p per cent of all do not exceed.
    assert (stats.p50, stats.p95, stats.p99) == (11.0, 19.0, 20.0)
    assert stats.stdev == pytest.approx(33.25**0.5)
    assert stats.cv_pct == pytest.approx(100 * 33.25**0.5 / 10.5)


def test_one_time_has_no_spread() -> None:
    stats = iteration_stats([2.0])
    assert (stats.min, stats.p50, stats.p99, stats.stdev, stats.cv_pct) == (2.0, 2.0, 2.0, 0.0, 0.0)
    one = median_with_quartiles([3.0])
    assert (one.value, one.low, one.high) == (3.0, 3.0, 3.0)


def test_quartiles() -> None:
    found = median_with_quartiles([1.0, 2.0, 3.0, 4.0, 5.0])
    assert (found.low, found.value, found.high) == (2.0, 3.0, 4.0)


def test_ratios_are_paired_so_a_common_disturbance_cancels() -> None:
    disturbance = [1.0, 5.0, 2.0, 9.0, 1.0, 3.0]
    found = median_ratio([2 * d for d in disturbance], disturbance)
    assert (found.value, found.low, found.high) == (2.0, 2.0, 2.0)
    shift = median_difference([d + 1 for d in disturbance], disturbance)
    assert (shift.value, shift.low, shift.high) == (1.0, 1.0, 1.0)
    with pytest.raises(ValueError, match=r"shorter|longer"):
        median_ratio([1.0], [1.0, 2.0])


def test_the_interval_holds_the_median_and_is_reproducible() -> None:
    values = [1.0 + 0.01 * (7 * i % 20) for i in range(20)]
    found = median_with_bootstrap(values)
    assert found.low < found.value < found.high
    assert found == median_with_bootstrap(values)
    assert found.low >= min(values)
    assert found.high <= max(values)


def test_geometric_mean() -> None:
    assert geometric_mean([1.0, 4.0]) == pytest.approx(2.0)

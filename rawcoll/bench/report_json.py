"""nccl-tests' JSON (``-J``), and what rawcoll adds to it.

Owns the keys. nccl-tests' keys keep their types, odd ones too (booleans and roots are strings
there); rawcoll's additions are ``rawcoll`` at the top and ``algorithm``, ``schedule``,
``wire_bytes`` in each result.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from rawcoll.bench.case import Case
from rawcoll.bench.choose import Plan
from rawcoll.bench.environment import Device
from rawcoll.bench.options import Options
from rawcoll.bench.rows import (
    Block,
    Cell,
    ComparedRow,
    Comparison,
    Row,
    algbw_gbps,
    busbw_gbps,
)
from rawcoll.bench.stats import iteration_stats
from rawcoll.bench.timing import Timing
from rawcoll.errors import InvalidArgument

FILE_VERSION: Final = 3
TIME_FORMAT: Final = "%Y-%m-%d %H:%M:%S"


def reserve(path: str) -> Path:
    """Create the file, like nccl-tests under the first of PATH, PATH.0, PATH.1, ... that is new.

    Raises:
        InvalidArgument: it cannot be created.
    """
    attempt, number = Path(path), 0
    while True:
        try:
            attempt.touch(exist_ok=False)
        except FileExistsError:
            attempt = Path(f"{path}.{number}")
            number += 1
        except OSError as error:
            raise InvalidArgument(f"json: cannot be written: {error}") from error
        else:
            return attempt


def write(path: Path, document: dict[str, Any]) -> None:
    """Write the whole document, or nothing."""
    temporary = path.with_name(path.name + ".part")
    temporary.write_text(json.dumps(document, indent=1) + "\n")
    temporary.replace(path)


def config(options: Options, devices: Sequence[Device]) -> dict[str, Any]:
    """nccl-tests' ``config``; its devices are in it."""
    by_factor = options.step_factor > 1
    return {
        "nthreads": 1,
        "ngpus": 1,
        "minimum_bytes": options.min_nbytes,
        "maximum_bytes": options.max_nbytes,
        **(
            {"step_factor": options.step_factor}
            if by_factor
            else {"step_bytes": options.step_nbytes}
        ),
        "warmup_iters": options.warmup,
        "iterations": options.iters,
        "aggregated_iterations": options.agg,
        "validation": options.check,
        "graph": 0,
        "blocking_collectives": _boolean(options.blocking != 0),
        "per_iter_timing": _boolean(options.per_iteration),
        "parallel_init": _boolean(False),
        "devices": [
            {
                "rank": d.rank,
                "group": 0,
                "pid": d.pid,
                "hostname": d.hostname,
                "device": d.device,
                "device_hex": d.device_hex,
                "device_info": d.name,
            }
            for d in devices
        ],
    }


def blocks_part(blocks: Sequence[Block], options: Options, least: float | None) -> dict[str, Any]:
    """Results and summary of nccl-tests' tables; the summary is over all blocks."""
    means = [block.mean_busbw_gbps for block in blocks]
    mean = sum(means) / len(means) if means else 0.0
    okay = "unchecked" if least is None else _boolean(min(means, default=0.0) >= 0.9 * least)
    return {
        "results": [_result(row, block.label, options) for block in blocks for row in block.rows],
        **_summary(sum(block.errors for block in blocks), mean, okay),
    }


def comparison_part(table: Comparison, options: Options) -> dict[str, Any]:
    """The same keys from a comparison; each result has one placement."""
    cells = [
        (label, row, cell)
        for row in table.rows
        for label, cell in zip(table.labels, row.cells, strict=True)
        if cell is not None
    ]
    rates = [busbw_gbps(row.case, cell.seconds.value) for _, row, cell in cells]
    mean = sum(rates) / len(rates) if rates else 0.0
    return {
        "results": [_compared(label, row, cell, options) for label, row, cell in cells],
        **_summary(table.errors, mean, "unchecked"),
        "baseline": table.baseline,
    }


def _summary(errors: int, mean_gbps: float, okay: str) -> dict[str, Any]:
    return {
        "out_of_bounds": {"count": errors, "okay": _boolean(errors == 0)},
        "average_bus_bandwidth": {"bandwidth": mean_gbps, "okay": okay},
        "errors": [],
    }


def _result(row: Row, label: str, options: Options) -> dict[str, Any]:
    result = _case_part(row.case)
    for key, timing in (("out_of_place", row.out_of_place), ("in_place", row.in_place)):
        result[key] = _rates(row.case, timing.seconds, timing.wrong)
        if timing.per_iteration:
            result[f"{key}_per_iter"] = _iterations(timing)
    return result | _tail(row.case, row.plan, label, options)


def _compared(label: str, row: ComparedRow, cell: Cell, options: Options) -> dict[str, Any]:
    key, other = "in_place", "out_of_place"
    if options.out_of_place or not row.case.collective.in_place:
        key, other = other, key
    ratio = cell.speedup
    return {
        **_case_part(row.case),
        other: None,
        key: _rates(row.case, cell.seconds.value, cell.wrong),
        **_tail(row.case, cell.plan, label, options),
        "time_quartiles_us": [cell.seconds.low * 1e6, cell.seconds.high * 1e6],
        "ratio": ratio and {"median": ratio.value, "low": ratio.low, "high": ratio.high},
        "times_us": [time * 1e6 for time in cell.times_s],
    }


def _case_part(case: Case) -> dict[str, Any]:
    return {
        "size": case.nbytes,
        "count": case.counts.count,
        "type": case.dtype,
        "redop": case.shown_op,
        "root": f"{case.shown_root:6d}",
    }


def _tail(case: Case, plan: Plan, label: str, options: Options) -> dict[str, Any]:
    return {
        "actual_iterations": options.iters,
        "experiment_name": case.collective.program,
        "label": label,
        "algorithm": plan.algorithm,
        "schedule": plan.digest,
        "wire_bytes": list(plan.sent_nbytes),
    }


def _rates(case: Case, seconds: float, wrong: int | None) -> dict[str, Any]:
    return {
        "time": seconds * 1e6,
        "alg_bw": algbw_gbps(case, seconds),
        "bus_bw": busbw_gbps(case, seconds),
        "nwrong": None if wrong is None else float(wrong),
    }


def _iterations(timing: Timing) -> dict[str, Any]:
    times = [max(ranks) for ranks in zip(*timing.per_iteration, strict=True)]
    stats = iteration_stats(times)
    return {
        "min_us": stats.min * 1e6,
        "max_us": stats.max * 1e6,
        "avg_us": stats.mean * 1e6,
        "p50_us": stats.p50 * 1e6,
        "p95_us": stats.p95 * 1e6,
        "p99_us": stats.p99 * 1e6,
        "stdev_us": stats.stdev * 1e6,
        "cv_pct": stats.cv_pct,
        "times_us": [time * 1e6 for time in times],
        "per_process_max_times_us": [
            [time * 1e6 for time in ranks] for ranks in timing.per_iteration
        ],
    }


def _boolean(value: bool) -> str:
    return "true" if value else "false"

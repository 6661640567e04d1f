"""nccl-tests' text, character by character.

Owns the widths and words of nccl-tests 2.19 (``src/util.cu`` there). What rawcoll adds stands in
lines that begin with ``#``, which existing parsers skip. Makes lines, prints none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rawcoll.bench.environment import Device
from rawcoll.bench.options import Options
from rawcoll.bench.rows import Block, Row, algbw_gbps, busbw_gbps
from rawcoll.bench.stats import iteration_stats
from rawcoll.bench.timing import Timing

# The release whose output this is.
NCCL_TESTS_VERSION: Final = "2.19.6"

_PREFIX: Final = "# {:>10}  {:>12}  {:>8}  {:>6}  {:>6}"
_BODY: Final = "  {:>7}  {:>6}  {:>6}  {:>6}"
_ITERATIONS: Final = "  {:>7}  {:>7}  {:>7}  {:>7}"


def note(text: str) -> str:
    """A line of rawcoll's own."""
    return f"# rawcoll: {text}"


def header(
    options: Options, program: str, devices: Sequence[Device], notes: Sequence[str]
) -> list[str]:
    """All lines before the first row; ``notes`` follow the list of devices."""
    by_factor = options.step_factor > 1
    lines = [
        f"# nccl-tests version {NCCL_TESTS_VERSION} nccl-headers=0 nccl-library=0",
        f"# Collective test starting: {program}",
        (
            f"# nThread 1 nGpus 1 minBytes {options.min_nbytes} maxBytes {options.max_nbytes} "
            f"step: {options.step_factor if by_factor else options.step_nbytes}"
            f"({'factor' if by_factor else 'bytes'}) "
            f"warmup iters: {options.warmup} iters: {options.iters} agg iters: {options.agg} "
            f"validation: {options.check} graph: 0 unalign: 0"
        ),
    ]
    if options.blocking == 1:
        lines.append("# Blocking Enabled: wait for completion and barrier after each collective ")
    if options.blocking > 1:
        lines.append("# Blocking Enabled: wait for completion after each collective (no barrier) ")
    if options.per_iteration:
        lines.append("# Per-Iteration Report: host clock timing; i_* uses max over process rows ")
    lines += ["#", "# Using devices"]
    lines += [
        f"#  Rank {d.rank:2d} Group  0 Pid {d.pid:6d} on {d.hostname:>10} "
        f"device {d.device:2d} [{d.device_hex}] {d.name}"
        for d in devices
    ]
    return [*lines, *map(note, notes), "#", *_columns(options.per_iteration)]


def _columns(per_iteration: bool) -> list[str]:
    empty = _PREFIX.format(*[""] * 5)
    names = _PREFIX.format("size", "count", "type", "redop", "root")
    units = _PREFIX.format("(B)", "(elements)", "", "", "")
    name = _BODY.format("time", "algbw", "busbw", "#wrong")
    unit = _BODY.format("(us)", "(GB/s)", "(GB/s)", "")
    if per_iteration:
        name += _ITERATIONS.format("i_min", "i_max", "i_p99", "i_cv%")
        unit += _ITERATIONS.format("(us)", "(us)", "(us)", "(%)")
        title = f"{'':14}out-of-place (+ per-iteration){'':32}in-place (+ per-iteration)"
    else:
        title = f"{'':11}out-of-place{'':23}in-place{'':10}"
    # nccl-tests ends these two lines with a space, where its timestamps would be.
    return [empty + title, names + 2 * name + " ", units + 2 * unit + " "]


def row_line(row: Row) -> str:
    """One row."""
    case = row.case
    line = (
        f"{case.nbytes:12d}  {case.counts.count:12d}  {case.dtype:>8}  "
        f"{case.shown_op:>6}  {case.shown_root:6d}"
    )
    return line + "".join(_body(row, timing) for timing in row.timings)


def _body(row: Row, timing: Timing) -> str:
    case, seconds = row.case, timing.seconds
    body = _BODY.format(
        float_text(seconds * 1e6, 7),
        float_text(algbw_gbps(case, seconds), 6),
        float_text(busbw_gbps(case, seconds), 6),
        "N/A" if timing.wrong is None else f"{timing.wrong:g}",
    )
    return body + (_iterations(timing) if timing.per_iteration else "")


def _iterations(timing: Timing) -> str:
    stats = iteration_stats([max(ranks) for ranks in zip(*timing.per_iteration, strict=True)])
    values = (stats.min * 1e6, stats.max * 1e6, stats.p99 * 1e6, stats.cv_pct)
    return _ITERATIONS.format(*(float_text(value, 7) for value in values))


def float_text(value: float, width: int) -> str:
    """A number with as many decimals, two at most, as ``width`` leaves (``getFloatStr``)."""
    power, bound = 0, 1
    while value >= bound:
        power, bound = power + 1, bound * 10
    if power < width - 2:
        return f"{value:{width}.2f}"
    if power < width - 1:
        return f"{value:{width}.1f}"
    if power < width + 1:
        return f"{value:{width}.0f}"
    return f"{value:{width}.1e}" if width >= 7 else f"{value:{width}.0e}"


def plan_lines(rows: Sequence[Row]) -> list[str]:
    """What ran at each size, a line for each change."""
    lines: list[str] = []
    said = None
    for row in rows:
        plan, case = row.plan, row.case
        now = (case.dtype, case.shown_op, case.shown_root, plan)
        if now != said:
            lines.append(note(f"from {case.nbytes} B of {case.dtype}: {plan_text(row)}"))
        said = now
    return lines


def plan_text(row: Row) -> str:
    """Algorithm, schedule and bytes in one line."""
    plan = row.plan
    text = plan.algorithm + (f", schedule {plan.digest}" if plan.digest else "")
    if not plan.sent_nbytes:
        return text
    sent = set(plan.sent_nbytes)
    amount = str(sent.pop()) if len(sent) == 1 else "/".join(map(str, plan.sent_nbytes))
    return f"{text}, wire bytes sent per rank {amount}"


def footer(block: Block, program: str, least_mean_gbps: float | None) -> list[str]:
    """All lines after the last row; ``least_mean_gbps`` is NCCL_TESTS_MIN_BW."""
    mean = block.mean_busbw_gbps
    verdict = ""
    if least_mean_gbps is not None:
        verdict = "OK" if mean_suffices(mean, least_mean_gbps) else "FAILED"
    return [
        f"# {'Out of bounds values':<20} : {block.errors} {'FAILED' if block.errors else 'OK'}",
        f"# {'Avg bus bandwidth':<20} : {mean:g} {verdict}",
        "#",
        f"# Collective test concluded: {program}",
        "#",
        "",
    ]


def mean_suffices(mean_gbps: float, least_gbps: float | None) -> bool:
    """nccl-tests fails a mean bus bandwidth below nine tenths of the one asked for."""
    return least_gbps is None or mean_gbps >= 0.9 * least_gbps

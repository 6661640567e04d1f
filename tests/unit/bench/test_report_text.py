"""The text against lines written down by hand from nccl-tests' own source and output."""

from __future__ import annotations

import pytest

from rawcoll.bench.case import Case
from rawcoll.bench.choose import Plan
from rawcoll.bench.collectives import collective_of
from rawcoll.bench.environment import Device
from rawcoll.bench.options import Options
from rawcoll.bench.report_text import float_text, footer, header, plan_lines, row_line
from rawcoll.bench.rows import Block, Row
from rawcoll.bench.timing import Timing

DEVICES = [
    Device(0, 1234, "node1", 0, "0000:00:00", "Some CPU"),
    Device(1, 123456, "a-long-hostname", 0, "0000:00:00", "Some CPU"),
]
PLAN = Plan("ring(segments=4)", "0123abcd", (512, 512))


def make_case(
    name: str = "all_reduce", nbytes: int = 1 << 20, nranks: int = 2, root: int = 0
) -> Case:
    collective = collective_of(name)
    counts = collective.counts(nbytes, 4, nranks)
    return Case(collective, "float", "sum", root, 0, nranks, counts)


def make_row(seconds: float = 100e-6, wrong: int | None = 0, **case: object) -> Row:
    timing = Timing(seconds, wrong, int(bool(wrong)))
    return Row(make_case(**case), PLAN, timing, timing)  # type: ignore[arg-type]


def test_header() -> None:
    options = Options(min_nbytes=8, max_nbytes=1024, step_factor=2)
    assert header(options, "all_reduce_perf", DEVICES, ["a note"]) == [
        "# nccl-tests version 2.19.6 nccl-headers=0 nccl-library=0",
        "# Collective test starting: all_reduce_perf",
        (
            "# nThread 1 nGpus 1 minBytes 8 maxBytes 1024 step: 2(factor) warmup iters: 1 "
            "iters: 20 agg iters: 1 validation: 1 graph: 0 unalign: 0"
        ),
        "#",
        "# Using devices",
        "#  Rank  0 Group  0 Pid   1234 on      node1 device  0 [0000:00:00] Some CPU",
        "#  Rank  1 Group  0 Pid 123456 on a-long-hostname device  0 [0000:00:00] Some CPU",
        "# rawcoll: a note",
        "#",
        "#" + 51 * " " + "           out-of-place                       in-place          ",
        (
            "#       size         count      type   redop    root"
            "     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong "
        ),
        (
            "#        (B)    (elements)                               "
            "(us)  (GB/s)  (GB/s)             (us)  (GB/s)  (GB/s)         "
        ),
    ]


def test_header_with_a_step_in_bytes_and_blocking_calls() -> None:
    lines = header(Options(blocking=1), "broadcast_perf", DEVICES, [])
    assert "step: 1048576(bytes)" in lines[2]
    assert lines[3] == (
        "# Blocking Enabled: wait for completion and barrier after each collective "
    )
    assert header(Options(blocking=2), "broadcast_perf", DEVICES, [])[3] == (
        "# Blocking Enabled: wait for completion after each collective (no barrier) "
    )


def test_rows() -> None:
    # 1 MiB in 100 us is 10.49 GB/s; bus bandwidth of an all-reduce over 2 ranks is the same.
    assert row_line(make_row()) == (
        "     1048576        262144     float     sum      -1"
        "   100.00   10.49   10.49       0   100.00   10.49   10.49       0"
    )
    assert row_line(make_row(wrong=None)).endswith("   100.00   10.49   10.49     N/A")
    assert row_line(make_row(wrong=12345678)).endswith("  10.49  1.23457e+07")
    assert row_line(make_row(name="broadcast", root=1)).startswith(
        "     1048576        262144     float    none       1   "
    )


def test_counts_of_collectives_over_parts_are_those_of_one_part() -> None:
    row = row_line(make_row(name="all_gather", nbytes=1000, nranks=3))
    # 250 elements over 3 ranks: 83, cut to a multiple of 16 bytes: 80; 3 * 80 * 4 bytes.
    assert row.startswith("         960            80     float    none      -1")


@pytest.mark.parametrize(
    ("name", "factor"),
    [
        ("all_reduce", 1.5),
        ("all_gather", 0.75),
        ("reduce_scatter", 0.75),
        ("alltoall", 0.75),
        ("gather", 0.75),
        ("scatter", 0.75),
        ("broadcast", 1),
        ("reduce", 1),
        ("sendrecv", 1),
    ],
)
def test_bus_bandwidth_factors(name: str, factor: float) -> None:
    assert collective_of(name).busbw_factor(4) == factor


@pytest.mark.parametrize(
    ("value", "width", "text"),
    [
        (0.0, 7, "   0.00"),
        (4.567, 7, "   4.57"),
        (9999.4, 7, "9999.40"),
        (12345.67, 7, "12345.7"),
        (123456.7, 7, " 123457"),
        (1234567.8, 7, "1234568"),
        (12345678.9, 7, "1.2e+07"),
        (0.004, 6, "  0.00"),
        (999.99, 6, "999.99"),
        (1234.5, 6, "1234.5"),
        (12345.6, 6, " 12346"),
        (1234567.0, 6, " 1e+06"),
    ],
)
def test_decimals_fit_the_width(value: float, width: int, text: str) -> None:
    assert float_text(value, width) == text


def test_per_iteration_columns() -> None:
    options = Options(per_iteration=True)
    lines = header(options, "all_reduce_perf", DEVICES, [])
    assert lines[3] == "# Per-Iteration Report: host clock timing; i_* uses max over process rows "
    assert lines[-3] == (
        "#"
        + 51 * " "
        + 14 * " "
        + "out-of-place (+ per-iteration)"
        + 32 * " "
        + "in-place (+ per-iteration)"
    )
    once = "     time   algbw   busbw  #wrong    i_min    i_max    i_p99    i_cv%"
    assert lines[-2] == "#       size         count      type   redop    root" + 2 * once + " "
    # Each iteration counts as long as the slowest rank took.
    timing = Timing(100e-6, 0, 0, ((90e-6, 110e-6), (100e-6, 80e-6)))
    line = row_line(Row(make_case(), PLAN, timing, timing))
    assert line.endswith("       0   100.00   110.00   110.00     4.76")


def test_footer() -> None:
    good = Block("ring", (make_row(),))
    assert footer(good, "all_reduce_perf", None) == [
        "# Out of bounds values : 0 OK",
        "# Avg bus bandwidth    : 10.4858 ",
        "#",
        "# Collective test concluded: all_reduce_perf",
        "#",
        "",
    ]
    bad = Block("ring", (make_row(wrong=7),))
    assert footer(bad, "all_reduce_perf", 20.0)[:2] == [
        "# Out of bounds values : 2 FAILED",
        "# Avg bus bandwidth    : 10.4858 FAILED",
    ]
    # Nine tenths of what is asked for are enough.
    assert footer(good, "all_reduce_perf", 11.6)[1].endswith(" OK")


def test_what_ran_is_said_once_until_it_changes() -> None:
    other = Row(make_case(nbytes=4 << 20), Plan("tree", "ff", (1, 2)), *2 * (Timing(1, 0, 0),))
    rows = [make_row(), make_row(nbytes=2 << 20), other]
    assert plan_lines(rows) == [
        (
            "# rawcoll: from 1048576 B of float: ring(segments=4), schedule 0123abcd, "
            "wire bytes sent per rank 512"
        ),
        "# rawcoll: from 4194304 B of float: tree, schedule ff, wire bytes sent per rank 1/2",
    ]

"""Whole runs over ranks that are threads, with their text read back by a parser for nccl-tests."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rawcoll.bench import choose as choose_module
from rawcoll.bench import environment
from rawcoll.bench.case import Pool
from rawcoll.bench.choose import Choice, choose
from rawcoll.bench.collectives import COLLECTIVES
from rawcoll.bench.options import ALL_ROOTS, Floor, Options
from rawcoll.bench.run import execute, prepare
from rawcoll.bench.session import Output
from rawcoll.bench.timing import measure
from rawcoll.errors import InvalidArgument

RunRanks = Callable[..., list[Any]]
SMALL = Options(min_nbytes=64, max_nbytes=4096, step_factor=8, iters=2)


@pytest.fixture(autouse=True)
def fake_surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    """No MPI, and any name is an algorithm."""
    monkeypatch.setattr(choose_module, "_check_known", lambda text: None)
    captured = {"mpi": "No MPI 1.0", "python": "3.11", "packages": {"numpy": "2.0"}}
    monkeypatch.setattr(environment, "capture", lambda: captured)
    monkeypatch.delenv("NCCL_TESTS_MIN_BW", raising=False)


def run(run_ranks: RunRanks, options: Options, nranks: int = 3) -> tuple[int, list[str]]:
    """Exit status (the same on all ranks) and rank 0's lines."""
    lines: list[list[str]] = [[] for _ in range(nranks)]

    def body(comm: Any) -> int:
        output = Output(lines[comm.rank].append, lambda _: None)
        return execute(prepare(comm, options, ["rawcoll", "bench"], output))

    statuses = run_ranks(nranks, body)
    assert len(set(statuses)) == 1
    assert not any(lines[1:]), "only rank 0 prints"
    return statuses[0], lines[0]


def parse(lines: list[str]) -> list[dict[str, Any]]:
    """Blocks as scripts for nccl-tests read them: comments skipped, columns by position."""
    blocks: list[dict[str, Any]] = []
    for line in lines:
        if line.startswith("# Collective test starting: "):
            blocks.append({"program": line.split(": ")[1], "rows": []})
        elif match := re.match(r"# Out of bounds values\s*: (\d+) (OK|FAILED)", line):
            blocks[-1]["errors"] = (int(match[1]), match[2])
        elif match := re.match(r"# Avg bus bandwidth\s*: (\S+)", line):
            blocks[-1]["mean"] = float(match[1])
        elif line and not line.startswith("#"):
            size, count, dtype, op, root, *values = line.split()
            assert len(values) == 8
            busbw = (float(values[2]), float(values[6]))
            head = (int(size), int(count), dtype, op, int(root))
            blocks[-1]["rows"].append((*head, busbw, (values[3], values[7])))
    return blocks


@pytest.mark.parametrize("nranks", [1, 3])
@pytest.mark.parametrize("name", list(COLLECTIVES))
def test_every_collective_is_right_in_every_type(
    run_ranks: RunRanks, name: str, nranks: int
) -> None:
    options = Options(
        collective=name,
        min_nbytes=8,
        max_nbytes=1 << 10,
        step_factor=128,
        iters=1,
        dtypes=("float", "half", "int8", "uint64", "bfloat16"),
        ops=("sum", "prod", "max", "avg"),
        root=ALL_ROOTS,
        check=2,
    )
    # The fake adds 16-bit floats by numpy, which rounds like the kernels as every sum is exact.
    status, lines = run(run_ranks, options, nranks)
    (block,) = parse(lines)
    collective = COLLECTIVES[name]
    assert status == 0
    assert block["errors"] == (0, "OK")
    roots = nranks if collective.rooted else 1
    assert len(block["rows"]) == 2 * 5 * roots * (4 if collective.reduces else 1)
    for _, _, _, op, root, _, wrong in block["rows"]:
        assert wrong == ("0", "0" if collective.in_place else "N/A")
        assert (root >= 0) == collective.rooted
        assert (op == "none") == (not collective.reduces and name != "sendrecv")


def test_one_block_an_algorithm_in_order(run_ranks: RunRanks) -> None:
    options = Options(min_nbytes=64, max_nbytes=64, iters=2, algorithms=("ring", "tree"))
    status, lines = run(run_ranks, options)
    assert status == 0
    assert [block["program"] for block in parse(lines)] == ["all_reduce_perf"] * 2
    said = [line for line in lines if ", algorithm " in line]
    assert [line.rpartition(" ")[2] for line in said] == ["ring", "tree"]
    assert lines.count("# rawcoll: No MPI 1.0; Python 3.11, numpy 2.0") == 2
    assert any("ring!, schedule d1, wire bytes sent per rank 16" in line for line in lines)


def test_a_wrong_result_is_counted_and_fails_the_run(run_ranks: RunRanks) -> None:
    options = Options(min_nbytes=64, max_nbytes=64, iters=2, algorithms=("ring", "broken"))
    status, lines = run(run_ranks, options)
    good, bad = parse(lines)
    assert status == 1
    assert good["errors"] == (0, "OK")
    assert bad["rows"][0][-1] == ("1", "1")
    # One rank of three was wrong, in each of two placements.
    assert bad["errors"] == (2, "FAILED")


def test_unchecked_results_are_not_available(run_ranks: RunRanks) -> None:
    options = Options(min_nbytes=64, max_nbytes=64, iters=2, check=0, algorithms=("broken",))
    status, lines = run(run_ranks, options)
    assert status == 0
    assert parse(lines)[0]["rows"][0][-1] == ("N/A", "N/A")


def test_cycles_repeat_the_table(run_ranks: RunRanks) -> None:
    status, lines = run(run_ranks, Options(min_nbytes=8, max_nbytes=16, step_factor=2, cycles=3))
    assert status == 0
    assert [row[0] for row in parse(lines)[0]["rows"]] == [8, 16] * 3


@pytest.mark.parametrize(
    ("agg", "blocking", "per_iteration"), [(3, 0, False), (1, 1, True), (2, 3, True)]
)
def test_calls_in_flight_barriers_and_laps(
    run_ranks: RunRanks, agg: int, blocking: int, per_iteration: bool
) -> None:
    options = Options(iters=4, agg=agg, blocking=blocking, per_iteration=per_iteration, check=1)

    def body(comm: Any) -> tuple[int, Any]:
        run_ = prepare(comm, Options(min_nbytes=64, max_nbytes=64), [], Output(print, print))
        case = run_.series[0][0]
        timing = measure(comm, case, Pool(4 * case.nbytes), "ring", options, in_place=True)
        return comm.calls, timing

    results = run_ranks(2, body)
    for calls, timing in results:
        assert calls == 1 + 4 * agg
        assert timing == results[0][1]
        assert len(timing.per_iteration) == (2 if per_iteration else 0)
        assert all(len(laps) == 4 for laps in timing.per_iteration)


def test_a_comparison_has_a_row_a_size_and_a_cell_an_algorithm(run_ranks: RunRanks) -> None:
    options = Options(
        min_nbytes=64,
        max_nbytes=4096,
        step_factor=8,
        iters=5,
        compare=True,
        algorithms=("builtin", "ring"),
    )
    status, lines = run(run_ranks, options)
    assert status == 0
    rows = [line for line in lines if not line.startswith("#")]
    number, rate = r"\d+\.\d\d", r"[\d.e+-]+"
    cell = rf" +{rate} +{number} \[{number}, {number}\]"
    assert [line.split()[0] for line in rows] == ["64", "512", "4096"]
    for line in rows:
        assert re.fullmatch(rf" *\d+ +\d+ +{rate}{cell}", line)
    names = next(line for line in lines if line.startswith("#       size"))
    assert names.split()[-2:] == ["builtin", "ring"]
    assert any("over the algorithm's (above 1: faster than builtin)" in line for line in lines)
    assert any("geometric mean of the ratios: ring " in line for line in lines)


def test_a_comparison_shows_and_fails_for_wrong_results(run_ranks: RunRanks) -> None:
    options = Options(
        min_nbytes=64, max_nbytes=64, iters=2, compare=True, algorithms=("ring", "broken")
    )
    status, lines = run(run_ranks, options)
    assert status == 1
    assert any(line.endswith("WRONG 1") for line in lines)
    assert "# Out of bounds values : 1 FAILED" in lines


def test_algorithms_that_do_not_fit(run_ranks: RunRanks, monkeypatch: pytest.MonkeyPatch) -> None:
    options = Options(min_nbytes=64, max_nbytes=64, iters=2, algorithms=("ring", "picky"))
    with pytest.raises(InvalidArgument, match="algorithms: picky: picky: found 3 ranks"):
        run(run_ranks, options)

    def all_of_them(collective: str, texts: Any) -> dict[str, None]:
        return dict.fromkeys(("ring", "picky"))

    monkeypatch.setattr(choose_module, "_names", all_of_them)
    status, lines = run(run_ranks, Options(min_nbytes=64, max_nbytes=64, algorithms=("all",)))
    assert status == 0
    assert "# rawcoll: left out: picky: picky: found 3 ranks, expected none" in lines


def test_sendrecv_has_no_algorithms(run_ranks: RunRanks) -> None:
    options = Options(collective="sendrecv", algorithms=("ring",))
    with pytest.raises(
        InvalidArgument, match="sendrecv has no choice: found 'ring', expected auto"
    ):
        run(run_ranks, options)


def test_what_cannot_be_is_refused_before_anything_runs(run_ranks: RunRanks) -> None:
    with pytest.raises(InvalidArgument, match="root: no such rank: found 3, expected below 3"):
        run(run_ranks, Options(collective="broadcast", root=3))
    with pytest.raises(InvalidArgument, match="compare: one table"):
        run(run_ranks, Options(compare=True, dtypes=("float", "half")))
    with pytest.raises(InvalidArgument, match="baseline: not measured: found 'mpi'"):
        run(
            run_ranks,
            Options(
                compare=True, algorithms=("ring",), baseline="mpi", min_nbytes=64, max_nbytes=64
            ),
        )


@pytest.mark.parametrize("compare", [False, True])
def test_a_floor_that_is_not_reached_fails_the_run(run_ranks: RunRanks, compare: bool) -> None:
    options = Options(
        min_nbytes=64,
        max_nbytes=64,
        iters=2,
        compare=compare,
        algorithms=("ring",),
        floors=(Floor(1e6, 64),),
    )
    status, lines = run(run_ranks, options)
    assert status == 1
    assert re.search(
        r"FAILED min-busbw: .* at 64 B: found \S+ GB/s, expected at least 1e\+06", lines[-1]
    )
    low = Options(
        min_nbytes=64,
        max_nbytes=64,
        iters=2,
        compare=compare,
        algorithms=("ring",),
        floors=(Floor(0.0, 64),),
    )
    assert run(run_ranks, low)[0] == 0


def test_nccl_tests_own_floor(run_ranks: RunRanks, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NCCL_TESTS_MIN_BW", "1000000")
    status, lines = run(run_ranks, Options(min_nbytes=64, max_nbytes=64, iters=2))
    assert status == 1
    assert any(re.fullmatch(r"# Avg bus bandwidth    : \S+ FAILED", line) for line in lines)


def test_json_has_all_keys_of_nccl_tests(run_ranks: RunRanks, tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    path.write_text("mine")
    options = Options(
        min_nbytes=64,
        max_nbytes=128,
        step_factor=2,
        iters=3,
        per_iteration=True,
        json_path=str(path),
        algorithms=("ring", "broken"),
    )
    status, lines = run(run_ranks, options)
    assert status == 1
    assert path.read_text() == "mine", "nothing is overwritten"
    assert lines[0] == f"# Writing JSON output to {path}.0"
    found = json.loads(Path(f"{path}.0").read_text())
    assert found.keys() >= {
        "version",
        "start_time",
        "args",
        "env",
        "nccl_version",
        "config",
        "results",
        "out_of_bounds",
        "average_bus_bandwidth",
        "errors",
        "end_time",
    }
    assert found["config"].keys() >= {
        "nthreads",
        "ngpus",
        "minimum_bytes",
        "maximum_bytes",
        "step_factor",
        "warmup_iters",
        "iterations",
        "aggregated_iterations",
        "validation",
        "graph",
        "blocking_collectives",
        "per_iter_timing",
        "parallel_init",
        "devices",
    }
    assert found["config"]["devices"][1].keys() == {
        "rank",
        "group",
        "pid",
        "hostname",
        "device",
        "device_hex",
        "device_info",
    }
    assert len(found["results"]) == 4
    row = found["results"][0]
    assert row.keys() >= {
        "size",
        "count",
        "type",
        "redop",
        "root",
        "out_of_place",
        "in_place",
        "out_of_place_per_iter",
        "in_place_per_iter",
        "actual_iterations",
        "experiment_name",
    }
    assert row["in_place"].keys() == {"time", "alg_bw", "bus_bw", "nwrong"}
    assert row["in_place_per_iter"].keys() >= {
        "min_us",
        "max_us",
        "avg_us",
        "p50_us",
        "p95_us",
        "p99_us",
        "stdev_us",
        "cv_pct",
        "times_us",
    }
    assert (row["root"], row["label"], row["algorithm"]) == ("    -1", "ring", "ring!")
    assert (row["schedule"], row["wire_bytes"]) == ("d1", [16, 16])
    assert found["out_of_bounds"] == {"count": 4, "okay": "false"}
    assert found["average_bus_bandwidth"]["okay"] == "unchecked"


def test_json_of_a_comparison(run_ranks: RunRanks, tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    options = Options(
        min_nbytes=64,
        max_nbytes=64,
        iters=4,
        compare=True,
        json_path=str(path),
        algorithms=("builtin", "ring"),
    )
    assert run(run_ranks, options)[0] == 0
    found = json.loads(path.read_text())
    base, ring = found["results"]
    assert found["baseline"] == base["label"] == "builtin"
    assert base["ratio"]["median"] == 1.0
    assert ring["out_of_place"] is None
    assert ring["in_place"]["nwrong"] == 0
    assert len(ring["times_us"]) == 4
    assert ring["ratio"]["low"] <= ring["ratio"]["median"] <= ring["ratio"]["high"]


def test_json_that_cannot_be_written_ends_all_ranks(run_ranks: RunRanks, tmp_path: Path) -> None:
    options = Options(min_nbytes=64, max_nbytes=64, json_path=str(tmp_path / "no" / "file"))
    with pytest.raises(InvalidArgument, match="json: cannot be written"):
        run(run_ranks, options)


def test_ranks_that_choose_differently_are_refused(run_ranks: RunRanks) -> None:
    def body(comm: Any) -> tuple[Choice, ...]:
        if comm.rank == 1:
            comm.explain = lambda *a, **k: (_ for _ in ()).throw(InvalidArgument("only here"))
        series = prepare_cases(comm)
        return choose(comm, ("ring",), series)

    def prepare_cases(comm: Any) -> list[Any]:
        from rawcoll.bench.collectives import collective_of
        from rawcoll.bench.sweep import series_of

        (series,) = series_of(SMALL, collective_of("all_reduce"), comm.rank, comm.nranks)
        return list(series)

    with pytest.raises(Exception, match="do not agree"):
        run_ranks(2, body)

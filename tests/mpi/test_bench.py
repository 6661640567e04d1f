"""``rawcoll bench`` as a user starts it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Bench = Callable[..., tuple[int, str, str]]


@pytest.fixture
def bench(mpirun: Callable[..., Any]) -> Bench:
    """``bench(nranks, *arguments)``: exit status, standard output, standard error."""

    def run(nranks: int, *arguments: str) -> tuple[int, str, str]:
        done = mpirun(nranks, ["python", "-m", "rawcoll", "bench", *arguments])
        return done.returncode, done.stdout, done.stderr

    return run


def rows(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines() if line and not line.startswith("#")]


COLLECTIVES = (
    *("all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce"),
    *("alltoall", "gather", "scatter", "sendrecv"),
)
ONE_AFTER_THE_OTHER = """
import sys
from rawcoll.cli.main import main

for collective in sys.argv[2:]:
    if main(["bench", collective, *sys.argv[1].split()]) != 0:
        sys.exit(f"{collective}: failed")
"""


@pytest.fixture(scope="module")
def reports(mpirun: Callable[..., Any]) -> dict[str, str]:
    """The report on each collective by every algorithm, all from the ranks of one job."""
    arguments = "-b8 -e8K -f1024 -n2 -d float --algorithms all"
    done = mpirun(3, ["python", "-c", ONE_AFTER_THE_OTHER, arguments, *COLLECTIVES], check=True)
    assert done.stderr == "", "nothing but the report where nobody watches"
    found = dict.fromkeys(COLLECTIVES, "")
    for block in done.stdout.split("# Collective test starting: ")[1:]:
        found[block.split("_perf", 1)[0]] += "# " + block
    return found


@pytest.mark.parametrize("collective", COLLECTIVES)
def test_every_collective_by_every_algorithm(reports: dict[str, str], collective: str) -> None:
    out = reports[collective]
    blocks = out.count(f"# Collective test concluded: {collective}_perf\n")
    assert blocks >= (1 if collective == "sendrecv" else 2)
    assert out.count("# Out of bounds values : 0 OK") == blocks
    assert len(rows(out)) == 2 * blocks
    assert all(len(row) == 13 for row in rows(out))


def test_all_types_and_reductions(bench: Bench) -> None:
    status, out, err = bench(2, "all_reduce", "-b64", "-e64", "-n1", "-dall", "-oall")
    assert status == 0, out + err
    assert len(rows(out)) == 12 * 5
    assert {row[8] for row in rows(out)} == {row[12] for row in rows(out)} == {"0"}


def test_comparison_with_json(bench: Bench, tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    status, out, err = bench(
        2,
        "all_reduce",
        "--compare",
        "-b8",
        "-e1M",
        "-f131072",
        "-n3",
        "-J",
        str(path),
        "--algorithms",
        "mpi,builtin,ring",
        "--mmap-threshold",
        "1G",
    )
    assert status == 0, out + err
    assert "allocator: mmap threshold raised to 1073741824 B" in out
    found = json.loads(path.read_text())
    assert found["rawcoll"]["environment"]["mpi"]
    assert found["baseline"] == "mpi"
    assert [row["label"] for row in found["results"]] == ["mpi", "builtin", "ring"] * 2
    assert all(row["in_place"]["nwrong"] == 0 for row in found["results"])


def test_an_own_algorithm_from_a_file(bench: Bench, tmp_path: Path) -> None:
    mine = tmp_path / "mine.py"
    mine.write_text("from rawcoll.algorithms.ring import Ring\n\nswing = Ring(segments=2)\n")
    status, out, err = bench(
        2, "all_reduce", "-b1K", "-e1K", "-n1", "--algorithms", f"ring(segments=1),{mine}:swing"
    )
    assert status == 0, out + err
    assert "# Collective test concluded" in out
    assert len(rows(out)) == 2


def test_wrong_usage_is_said_once(bench: Bench) -> None:
    status, out, err = bench(2, "all_reduce", "-g", "2")
    assert status != 0
    assert out == ""
    assert err.count("rawcoll bench: error: argument -g/--ngpus: only 1") == 1


def test_an_unknown_algorithm_is_said_once(bench: Bench) -> None:
    status, _, err = bench(2, "all_reduce", "--algorithms", "rong")
    assert status != 0
    assert err.count("unknown name: found 'rong', expected one of") == 1


def test_a_floor_that_is_not_reached(bench: Bench) -> None:
    status, out, _ = bench(2, "all_reduce", "-b8", "-e8", "-n1", "--min-busbw", "1000@8")
    assert status != 0
    assert "FAILED min-busbw: auto at 8 B" in out

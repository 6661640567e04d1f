"""`rawcoll check`: what it proves, what it refuses, how failures read."""

from __future__ import annotations

from argparse import ArgumentTypeError
from pathlib import Path

import pytest

from rawcoll.algorithms.catalog import ALGORITHMS, names_for
from rawcoll.cli._proving import collectives_of, families
from rawcoll.cli.check import _parse_ranks, _show_ranks
from rawcoll.cli.main import main
from rawcoll.schedule.collectives import COLLECTIVES

OWN = """
from rawcoll.algorithms import algorithm

@algorithm(power_of_two=True)
def swing(rank, nranks, b):
    whole, theirs = b.span(0, 1), b.span(0, 1, b.scratch(0, 1))
    for r in range(nranks.bit_length() - 1):
        peer = rank ^ (1 << r)
        b.send(r, peer, whole)
        b.recv(r, peer, theirs)
        operands = (whole, theirs) if rank < peer else (theirs, whole)
        b.reduce(r, operands, whole, last=2 << r == nranks)

def deaf(rank, nranks, b):
    b.send(0, (rank + 1) % nranks, b.span(0, 1))

def broken(rank, nranks, b):
    raise KeyError("no such thing")
"""


@pytest.fixture
def own(tmp_path: Path) -> str:
    file = tmp_path / "own.py"
    file.write_text(OWN)
    return str(file)


def test_everything_built_in_is_a_row(capsys) -> None:
    assert main(["check", "-n", "1-3"]) == 0
    shown = capsys.readouterr().out
    rows = [line for line in shown.splitlines() if " s" in line[-3:] and "1-3" in line]
    offered = [(name, c) for c in COLLECTIVES for name in names_for(c)]
    assert len(rows) == len(offered) + 4  # hierarchical has two families of 4 collectives
    assert all(any(row.startswith(name) for row in rows) for name in ALGORITHMS)
    assert "; 0 rows failed" in shown


def test_it_says_what_was_proved(capsys) -> None:
    assert main(["check", "tree", "builtin", "--collective", "reduce", "-n", "2-5"]) == 0
    shown = capsys.readouterr().out
    for words in (
        "every rank's contribution\n    exactly once",
        "the same expression on all ranks",
        "the same round and the same units",
        "no deadlock",
        "no data race",
        "in place, out of place",
        "as root the first, the middle and the last",
        "not what the library does",
        "22 proofs",
    ):
        assert words in shown


def test_all_roots(capsys) -> None:
    assert main(["check", "tree", "--collective", "reduce", "-n", "5", "--all-roots"]) == 0
    shown = capsys.readouterr().out
    assert "as root every one" in shown
    assert "5 proofs" in shown


def test_ranks_that_are_not_served_are_listed(capsys, own: str) -> None:
    assert main(["check", f"{own}:swing", "-n", "1-8"]) == 0
    shown = capsys.readouterr().out
    assert "  1-2,4,8  " in shown
    assert "not served for 3,5-7: nranks: not a power of two: expected 1, 2, 4, ..." in shown


def test_nothing_proved_is_a_failure(capsys, own: str) -> None:
    assert main(["check", f"{own}:swing", "-n", "3"]) == 1
    assert "none" in capsys.readouterr().out


def test_a_collective_that_is_not_offered_is_listed(capsys) -> None:
    assert main(["check", "ring", "tree", "--collective", "reduce", "-n", "2"]) == 0
    assert "not served for 2: it offers all_gather, all_reduce" in capsys.readouterr().out


def test_a_schedule_error_fails_and_the_others_go_on(capsys, own: str) -> None:
    assert main(["check", f"{own}:deaf", "ring", "--collective", "all_reduce", "-n", "2-3"]) == 1
    shown = capsys.readouterr().out
    failure = next(line for line in shown.splitlines() if "FAILED" in line)
    assert failure.startswith("  FAILED: 2 ranks: ")
    assert "waits for rank" in failure
    assert shown.index("FAILED") < shown.index("ring ")
    assert "1 rows failed" in shown


def test_any_exception_of_an_own_algorithm_names_the_line(capsys, own: str) -> None:
    assert main(["check", f"{own}:broken", "-n", "2"]) == 1
    shown = capsys.readouterr().out
    assert f"FAILED: 2 ranks: KeyError: 'no such thing' ({own}, line 18, in broken)" in shown


def test_an_undeclared_function_is_taken_for_an_all_reduce(own: str) -> None:
    (family,) = families([f"{own}:deaf"])
    assert collectives_of(family, named=False) == ["all_reduce"]
    assert len(collectives_of(family, named=True)) == len(COLLECTIVES)


def test_ranges() -> None:
    assert _parse_ranks("1-3,8,7") == (1, 2, 3, 7, 8)
    assert _show_ranks([1, 2, 3, 7, 8, 11]) == "1-3,7-8,11"
    assert _show_ranks([]) == "none"


@pytest.mark.parametrize("text", ["0-3", "5-2", "x", "", "1-9999"])
def test_ranges_that_are_none(text: str) -> None:
    with pytest.raises(ArgumentTypeError, match="found"):
        _parse_ranks(text)

"""Programs of few ranks, as text: a refactor may not change them.

``--update-golden`` writes the files anew.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from rawcoll.algorithms import programs
from rawcoll.algorithms.catalog import algorithm_from
from rawcoll.schedule.text import dump_schedule, parse_schedule

GOLDEN = Path(__file__).parents[2] / "golden"
CASES = (
    ("ring", "all_reduce", 3, 0),
    ("ring(segments=2)", "reduce_scatter", 3, 0),
    ("ring(order=0-2-1)", "all_gather", 3, 0),
    ("ring", "broadcast", 3, 1),
    ("tree(segments=2)", "all_reduce", 4, 0),
    ("tree", "reduce", 5, 2),
    ("tree(segments=2)", "broadcast", 4, 1),
    ("halving", "all_reduce", 5, 0),
    ("halving", "reduce_scatter", 3, 0),
    ("halving", "all_gather", 3, 0),
    ("doubling", "all_reduce", 3, 0),
    ("doubling", "all_gather", 5, 0),
    ("direct", "all_reduce", 3, 0),
    ("direct(window=1)", "reduce_scatter", 3, 0),
    ("direct", "all_to_all", 3, 0),
    ("two_shot(segments=3)", "all_reduce", 3, 0),
    ("gather_reduce", "all_reduce", 3, 0),
    ("binomial", "reduce", 5, 1),
    ("binomial", "scatter", 5, 3),
    ("binomial", "gather", 4, 2),
    ("builtin", "all_gather", 2, 0),
    ("hierarchical(levels=0/1-2,across=ring)", "all_reduce", 3, 0),
    ("hierarchical(levels=0-2/1-3,across=ring)", "reduce_scatter", 4, 0),
    ("hierarchical(levels=0-1/2,across=ring)", "all_gather", 3, 0),
    ("hierarchical(levels=0-1/2-3,across=tree)", "broadcast", 4, 3),
)


def _path(name: str, collective: str, nranks: int, root: int) -> Path:
    plain = "".join(letter if letter.isalnum() else "_" for letter in name).strip("_")
    rooted = f"_root{root}" if root else ""
    return GOLDEN / f"{collective}_{plain}_of_{nranks}{rooted}.txt"


@pytest.mark.parametrize(("name", "collective", "nranks", "root"), CASES)
def test_programs_are_as_they_were(
    name: str, collective: str, nranks: int, root: int, request: pytest.FixtureRequest
) -> None:
    schedule = programs(algorithm_from(name), collective, nranks, root)
    dumped = dump_schedule(schedule)
    path = _path(name, collective, nranks, root)
    if request.config.getoption("--update-golden"):
        path.write_text(dumped)
    assert path.read_text() == dumped
    assert parse_schedule(dumped) == schedule


def test_every_file_has_its_case() -> None:
    assert {_path(*case) for case in CASES} == set(GOLDEN.glob("*.txt"))

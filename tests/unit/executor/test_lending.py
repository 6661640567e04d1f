"""What may be lent: results stay right when a transport leaves messages in its own memory."""

import random

import numpy as np
import pytest
from support.lending import LendingWorld

from rawcoll.algorithms.catalog import names_for
from rawcoll.comm.world import World

COLLECTIVES = (
    "all_reduce",
    "reduce",
    "reduce_scatter",
    "all_gather",
    "broadcast",
    "gather",
    "scatter",
)
LEVELS = {4: "0-1/2-3", 5: "0-1-2/3-4", 7: "0-1/2-3-4/5-6"}


def algorithms(collective: str, nranks: int) -> list[str]:
    names = [name for name in names_for(collective) if name not in ("builtin", "hierarchical")]
    if collective in ("all_reduce", "reduce_scatter") and nranks in LEVELS:
        names.append(f"hierarchical(levels={LEVELS[nranks]})")
    segmented = [f"{name}(segments=3)" for name in names if name in ("ring", "tree", "two_shot")]
    if collective == "all_reduce":
        segmented.append("gather_reduce(gather=doubling)")
    return names + segmented


@pytest.mark.parametrize("collective", COLLECTIVES)
@pytest.mark.parametrize("nranks", [2, 3, 4, 5, 7])
def test_the_bits_are_those_of_copies(collective: str, nranks: int) -> None:
    rng = np.random.default_rng(nranks)
    given = [rng.standard_normal(nranks * 37).astype(np.float32) for _ in range(nranks)]
    for algorithm in algorithms(collective, nranks):
        arguments = [{"x": x.copy()} for x in given]
        expected = World(nranks).run(collective, arguments, algorithm)
        for seed in range(3):
            arguments = [{"x": x.copy()} for x in given]
            order = None if seed == 0 else random.Random(seed).choice
            results = LendingWorld(nranks).run(collective, arguments, algorithm, order)
            for found, wanted in zip(results, expected, strict=True):
                assert (found is None) == (wanted is None), algorithm
                if found is not None:
                    assert np.array_equal(found.view(np.uint8), wanted.view(np.uint8)), algorithm


@pytest.mark.parametrize("algorithm", ["two_shot", "two_shot(segments=4)", "direct", "ring"])
def test_what_is_only_reduced_is_lent(algorithm: str) -> None:
    world = LendingWorld(4)
    world.run("all_reduce", [{"x": np.ones(4096, np.float32)} for _ in range(4)], algorithm)
    assert world.nlent >= 4 * 2


def test_what_is_sent_on_is_not_lent() -> None:
    """The ring's reduce_scatter adds up in the slot that a message arrived in."""
    world = LendingWorld(4)
    world.run("reduce_scatter", [{"x": np.ones(4096, np.float32)} for _ in range(4)], "ring")
    assert world.nlent == 4  # the last arrival only, which goes to OUTPUT


def test_a_gathered_result_is_not_lent() -> None:
    world = LendingWorld(4)
    world.run("all_gather", [{"x": np.ones(64, np.float32)} for _ in range(4)], "direct")
    assert world.nlent == 0

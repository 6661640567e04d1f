"""Every collective by every algorithm, all ranks in this process, bit for bit against numpy."""

from __future__ import annotations

import itertools

import pytest
from support.expected import COLLECTIVES, DTYPES, OPS, REDUCING, UNEVEN, calls

from rawcoll.algorithms import names_for
from rawcoll.comm.world import World

ALGORITHMS = [
    (collective, name)
    for collective in COLLECTIVES
    for name in names_for(collective)
    if name not in ("builtin", "hierarchical")
]
SPECIAL = [
    *(
        ("all_reduce", text)
        for text in ("ring(segments=2)", "ring(segments=5)", "tree(segments=3)")
    ),
    *(("all_reduce", text) for text in ("two_shot(segments=2)", "two_shot(segments=7)")),
    *(("all_reduce", text) for text in ("direct(window=1)", "gather_reduce(gather=doubling)")),
    ("reduce_scatter", "ring(segments=3)"),
    ("all_gather", "ring(segments=3)"),
    ("broadcast", "ring(segments=4)"),
    ("broadcast", "tree(segments=4)"),
    ("reduce", "tree(segments=4)"),
    *((collective, "direct(window=2)") for collective in COLLECTIVES),
]
LEVELS = [
    "0/1",
    "0-1/2",
    "0-1/2-3",
    "2-0/1-3",
    "0-1-2/3-4",
    "0-1//2-3//4",
    "0/1-2-3/4-5",
    "0-1/2-3//4-5/6-7",
]


def counts_for(nranks: int) -> list[int]:
    return [0, 1, nranks - 1, nranks, nranks + 1, 37, 1000]


def check(
    world: World, collective: str, algorithm: str, count: int, *args: str, **kw: object
) -> None:
    given = calls(collective, world.nranks, count, *args, **kw)
    results = world.run(collective, [rank.arguments for rank in given], algorithm)
    for rank, result in zip(given, results, strict=True):
        rank.check(result)


def check_everything(world: World, collective: str, algorithm: str) -> None:
    """All counts; the element types, operations, roots and aliases take turns."""
    turns = itertools.cycle(itertools.product(DTYPES, OPS if collective in REDUCING else ("sum",)))
    for turn, count in enumerate(counts_for(world.nranks) * 2):
        for _ in range(7):  # coprime to the 60 pairs: over the ranks and counts all come up
            dtype, op = next(turns)
        root = (turn * 5 + 1) % world.nranks
        uneven = collective in UNEVEN and turn % 3 != 0
        check(
            world, collective, algorithm, count, dtype, op,
            root=root, uneven=uneven, in_place=turn % 2 == 0,
        )  # fmt: skip


@pytest.mark.parametrize("nranks", range(1, 10))
@pytest.mark.parametrize(("collective", "algorithm"), ALGORITHMS)
def test_algorithm(collective: str, algorithm: str, nranks: int) -> None:
    check_everything(World(nranks), collective, algorithm)


@pytest.mark.parametrize("nranks", [1, 2, 5, 8])
@pytest.mark.parametrize(("collective", "algorithm"), SPECIAL)
def test_parameters(collective: str, algorithm: str, nranks: int) -> None:
    check_everything(World(nranks), collective, algorithm)


@pytest.mark.parametrize("order", ["0-2-1-3", "3-1-0-2", "1-2-3-0"])
@pytest.mark.parametrize("collective", ["all_reduce", "reduce_scatter", "all_gather", "broadcast"])
def test_ring_order(collective: str, order: str) -> None:
    check_everything(World(4), collective, f"ring(segments=2,order={order})")


@pytest.mark.parametrize("levels", LEVELS)
@pytest.mark.parametrize("across", ["ring", "halving", "ring(segments=2)"])
@pytest.mark.parametrize("collective", ["all_reduce", "reduce_scatter", "all_gather", "broadcast"])
def test_hierarchical(collective: str, across: str, levels: str) -> None:
    if across == "halving" and collective == "broadcast":
        across = "tree"
    nranks = 1 + max(map(int, levels.replace("/", "-").replace("--", "-").split("-")))
    check_everything(World(nranks), collective, f"hierarchical(levels={levels},across={across})")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("in_place", [True, False])
def test_every_dtype_and_op(dtype: str, op: str, in_place: bool) -> None:
    world = World(3)
    for collective, algorithm in (
        ("all_reduce", "two_shot"),
        ("all_reduce", "doubling"),
        ("reduce", "tree"),
        ("reduce_scatter", "ring"),
    ):
        check(world, collective, algorithm, 37, dtype, op, root=1, in_place=in_place)


@pytest.mark.parametrize("nranks", [1, 2, 3, 9, 17])
@pytest.mark.parametrize("collective", COLLECTIVES)
def test_automatic_choice(collective: str, nranks: int) -> None:
    world = World(nranks)
    for count in (0, 5, 40_000):
        check(world, collective, "auto", count, "int32", uneven=False)


@pytest.mark.parametrize("nranks", [1, 2, 5])
@pytest.mark.parametrize("collective", UNEVEN)
def test_nothing_but_one_rank_has_anything(collective: str, nranks: int) -> None:
    import numpy as np

    counts = [0] * (nranks - 1) + [6]
    world, whole = World(nranks), np.arange(6, dtype=np.int64)
    last = nranks - 1
    if collective == "all_gather":
        arguments = [
            {"x": whole if r == last else whole[:0], "counts": counts} for r in range(nranks)
        ]
    elif collective == "reduce_scatter":
        arguments = [{"x": whole.copy(), "counts": counts} for _ in range(nranks)]
    else:
        arguments = [
            {"x": whole.copy(), "send_counts": counts, "recv_counts": [6 * (r == last)] * nranks}
            for r in range(nranks)
        ]
    results = world.run(collective, arguments)
    expected = {
        "all_gather": [whole] * nranks,
        "reduce_scatter": [whole[:0]] * last + [whole * nranks],
        "all_to_all": [whole[:0]] * last + [np.tile(whole, nranks)],
    }[collective]
    for result, wanted in zip(results, expected, strict=True):
        assert result.tolist() == wanted.tolist()

"""The native walk does what the one in Python does: bit for bit, in any order, by any way of a message."""

from __future__ import annotations

import random

import numpy as np
import pytest

pytest.importorskip("rawcoll.native._native")

from support.fake_mpi import FakeMpi
from support.wired import Node, WiredWorld

from rawcoll.algorithms.catalog import names_for
from rawcoll.comm.calls import BINDERS, Place
from rawcoll.comm.planner import Planner
from rawcoll.comm.world import World
from rawcoll.executor.walk import PythonWalk, walk_of
from rawcoll.kernels.fallback import NumpyKernels
from rawcoll.kernels.host import host_kernels

COLLECTIVES = (
    "all_reduce",
    "reduce",
    "reduce_scatter",
    "all_gather",
    "broadcast",
    "gather",
    "scatter",
    "all_to_all",
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


def check_same_bits(node: Node, collective: str, count: int, orders: int, share: bool) -> None:
    nranks = len(node.wires)
    rng = np.random.default_rng(nranks)
    given = [rng.standard_normal(count).astype(np.float32) for _ in range(nranks)]
    for algorithm in algorithms(collective, nranks):
        arguments = [{"x": x.copy()} for x in given]
        expected = World(nranks).run(collective, arguments, algorithm)
        world = WiredWorld(node)
        for seed in range(orders):
            arguments = [{"x": x.copy()} for x in given]
            if share:
                node.share([argument["x"] for argument in arguments])
            order = None if seed == 0 else random.Random(seed).choice
            results = world.run(collective, arguments, algorithm, order)
            for found, wanted in zip(results, expected, strict=True):
                assert (found is None) == (wanted is None), algorithm
                if found is not None:
                    assert np.array_equal(found.view(np.uint8), wanted.view(np.uint8)), algorithm


@pytest.mark.parametrize("collective", COLLECTIVES)
@pytest.mark.parametrize("nranks", [2, 3, 4, 5, 7])
def test_staged_in_so_little_memory_that_it_is_used_again_and_again(
    collective: str, nranks: int
) -> None:
    check_same_bits(Node(nranks), collective, nranks * 37, orders=3, share=False)


@pytest.mark.parametrize("collective", COLLECTIVES)
@pytest.mark.parametrize("nranks", [2, 3, 5])
def test_read_where_it_stands(collective: str, nranks: int) -> None:
    node = Node(nranks, arena_nbytes=1 << 20)
    check_same_bits(node, collective, nranks * 24_000, orders=2, share=True)


@pytest.mark.parametrize("nnear", [1, 2, 4])
@pytest.mark.parametrize("handle_nbytes", [4, 8])
def test_over_mpi_to_other_nodes_in_pieces(nnear: int, handle_nbytes: int) -> None:
    mpi = FakeMpi(handle_nbytes, max_nbytes=100)
    check_same_bits(Node(5, nnear=nnear, mpi=mpi), "all_reduce", 5 * 37, orders=2, share=False)
    assert max(mpi.sizes) == 100


def test_more_than_may_be_staged_goes_over_mpi() -> None:
    node = Node(2, arena_nbytes=4 << 20)
    x = [np.ones(500_000, np.float32) for _ in range(2)]
    WiredWorld(node).run("all_reduce", [{"x": one} for one in x], "two_shot(segments=1)")
    assert not node.mpi.sizes
    WiredWorld(node).run("all_reduce", [{"x": one} for one in x], "doubling")
    assert node.mpi.sizes == [2_000_000] * 2
    assert (x[0] == 4).all()


@pytest.mark.parametrize(
    ("algorithm", "nlent"), [("two_shot", 3), ("two_shot(segments=4)", 12), ("direct", 3)]
)
def test_what_is_only_reduced_is_lent(algorithm: str, nlent: int) -> None:
    assert lent("all_reduce", algorithm) == nlent


def test_what_is_sent_on_is_not_lent() -> None:
    """The ring's reduce_scatter adds up in the slot that a message arrived in."""
    assert lent("reduce_scatter", "ring") == 1  # the last arrival only, which goes to OUTPUT
    assert lent("all_gather", "direct") == 0


def lent(collective: str, algorithm: str) -> int:
    bound = BINDERS[collective](Place(1, 4), x=np.ones(4096, np.float32))
    table = Planner(1, 4).planned(bound.call, algorithm).plan.table
    return sum(len(row.lent) for row in table.wire)


@pytest.mark.parametrize(("fails", "message"), [("isend", "post: MPI"), ("test", "message: MPI")])
def test_an_error_of_mpi_says_whose_message_it_was(fails: str, message: str) -> None:
    from rawcoll.errors import TransportError

    node = Node(2, nnear=1)
    node.mpi.fails = fails
    arguments = [{"x": np.ones(8, np.float32)} for _ in range(2)]
    with pytest.raises(
        TransportError, match=f"{message} reported an error: found error 15"
    ) as found:
        WiredWorld(node).run("all_reduce", arguments, "direct")
    assert found.value.peers == (1,)


def test_native_only_with_wires_and_the_extensions_kernels() -> None:
    world = WiredWorld(Node(2))
    bound = BINDERS["all_reduce"](Place(0, 2), x=np.ones(8, np.float32))
    plan = Planner(0, 2).planned(bound.call, "ring").plan
    wired, plain = world._transports[0], World(2)._transports[0]
    assert not isinstance(walk_of(plan, wired, host_kernels()), PythonWalk)
    assert isinstance(walk_of(plan, wired, NumpyKernels()), PythonWalk)
    assert isinstance(walk_of(plan, plain, host_kernels()), PythonWalk)


def test_round_and_missing_are_those_of_the_transfer_under_way() -> None:
    world = WiredWorld(Node(3))
    begun = world.begin("all_reduce", [{"x": np.ones(48, np.float32)} for _ in range(3)], "ring")
    one = begun.cursors[0]
    assert (one.round, one.missing) == (0, ())
    one.step()
    assert (one.round, one.missing) == (0, (2,))
    begun.cursors[2].step()
    one.step()
    assert (one.round, one.missing) == (1, (2,))

"""Names, texts and imports of algorithms; what is refused, and how."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from rawcoll.algorithms import (
    Algorithm,
    Constraints,
    Direct,
    FunctionAlgorithm,
    GatherReduce,
    Halving,
    Hierarchical,
    Ring,
    Tree,
    TwoShot,
    algorithm,
    algorithm_from,
    check_fits,
    names_for,
    text,
)
from rawcoll.algorithms.catalog import ALGORITHMS, is_built_in
from rawcoll.algorithms.fitting import MAX_SEGMENTS, SEGMENT_NBYTES, WINDOW
from rawcoll.errors import InvalidArgument, ScheduleError
from rawcoll.schedule.builder import Builder
from rawcoll.schedule.program import Spec

MINE = str(Path(__file__).parents[3] / "examples" / "my_algorithm.py")


def swing(rank: int, nranks: int, b: Builder) -> None:
    """Two ranks swap, and reduce."""
    slot = b.scratch()
    for step in range(nranks - 1):
        received = b.span(0, 1, slot)
        b.send(step, 1 - rank, b.span(0))
        b.recv(step, 1 - rank, received)
        srcs = (b.span(0), received) if rank == 0 else (received, b.span(0))
        b.reduce(step, srcs, b.span(0), last=True)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("ring", Ring()),
        ("ring()", Ring()),
        ("ring(segments=4,order=0-2-1-3)", Ring(4, (0, 2, 1, 3))),
        ("direct(window=3)", Direct(3)),
        ("gather_reduce(gather=ring(segments=2))", GatherReduce(Ring(2))),
        ("hierarchical(levels=0-1/2,across=tree)", Hierarchical(((0, 1), (2,)), Tree())),
    ],
)
def test_texts_are_read_and_written(written: str, expected: Algorithm) -> None:
    assert algorithm_from(written) == expected
    assert algorithm_from(text(expected)) == expected


def test_text_leaves_out_what_is_open() -> None:
    assert text(Ring()) == "ring"
    assert text(Ring(segments=4, order=(0, 2, 1, 3))) == "ring(segments=4,order=0-2-1-3)"


def test_classes_values_and_functions_are_algorithms() -> None:
    assert algorithm_from(Halving) == Halving()
    assert algorithm_from(Ring(2)) == Ring(2)
    assert algorithm_from(swing) == FunctionAlgorithm(swing, "swing")
    assert hash(algorithm_from(swing)) == hash(algorithm_from(swing))


@pytest.mark.parametrize("collective", ["all_reduce", "gather", "all_to_all"])
def test_names_for_a_collective(collective: str) -> None:
    assert {"direct", "builtin"} <= set(names_for(collective))
    assert ("ring" in names_for(collective)) == (collective == "all_reduce")


@pytest.mark.parametrize("name", sorted(set(ALGORITHMS) - {"hierarchical"}))
def test_every_name_is_its_class(name: str) -> None:
    built = algorithm_from(name)
    assert built.name == name
    assert isinstance(built, Algorithm)
    assert pickle.loads(pickle.dumps(built)) == built


@pytest.mark.parametrize(
    ("written", "message"),
    [
        (
            "rign",
            "algorithm: unknown name: found 'rign', expected one of binomial, builtin, direct",
        ),
        ("ring(segment=2)", "ring: parameter: unknown name: found 'segment'"),
        ("ring(window=2)", "ring: parameter: unknown name"),
        ("ring(segments=two)", "ring: segments: not readable: found 'two'"),
        ("ring(segments=0)", "segments: out of range: found 0, expected at least 1"),
        ("ring(order=0-2)", "order: not a permutation"),
        ("ring(segments=2", "bracket not closed"),
        ("hierarchical", "hierarchical: levels: found none"),
        ("gather_reduce(gather=rign)", "unknown name: found 'rign'"),
        ("./nowhere.py:swing", "no such file"),
        ("no_such_package.module:swing", "cannot import"),
        (f"{MINE}:nothing", "no such function: found 'nothing'"),
    ],
)
def test_bad_texts_are_refused(written: str, message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        algorithm_from(written)


def test_other_types_are_refused() -> None:
    with pytest.raises(InvalidArgument, match="algorithm: wrong type: found int"):
        algorithm_from(3)  # type: ignore[arg-type]


def test_a_file_is_imported_once() -> None:
    first, second = (algorithm_from(f"{MINE}:two_way_ring") for _ in range(2))
    assert first == second
    assert text(first) == "two_way_ring"


def test_modules_are_imported() -> None:
    assert algorithm_from("rawcoll.algorithms.ring:Ring") == Ring()


def test_built_in_means_all_through() -> None:
    mine = FunctionAlgorithm(swing, "swing")
    assert is_built_in(Hierarchical(((0,), (1,)), Tree()))
    assert not is_built_in(mine)
    assert not is_built_in(GatherReduce(mine))


@pytest.mark.parametrize(
    ("constraints", "nranks", "nbytes", "message"),
    [
        (Constraints(min_ranks=2), 1, None, "nranks: too few: found 1, expected at least 2"),
        (Constraints(max_ranks=4), 5, None, "nranks: too many: found 5, expected at most 4"),
        (
            Constraints(multiple_of=4),
            6,
            0,
            "nranks: not divisible: found 6, expected a multiple of 4",
        ),
        (Constraints(even=True), 3, None, "nranks: odd: found 3, expected an even number"),
        (Constraints(power_of_two=True), 6, None, "nranks: not a power of two: found 6"),
        (Constraints(min_nbytes=8), 2, 7, "nbytes: too small: found 7, expected at least 8"),
        (Constraints(max_nbytes=8), 2, 9, "nbytes: too large: found 9, expected at most 8"),
    ],
)
def test_constraints_say_why(
    constraints: Constraints, nranks: int, nbytes: int | None, message: str
) -> None:
    refusal = constraints.refusal(nranks, nbytes)
    assert refusal is not None
    assert refusal.startswith(message)


def test_constraints_let_pass() -> None:
    asked = Constraints(2, 8, 2, True, True, 8, 64)
    assert asked.refusal(4, 64) is None
    assert asked.refusal(4) is None


def test_a_collective_that_is_not_offered_is_refused() -> None:
    expected = "ring does not offer the collective: found 'gather', expected one of all_gather"
    with pytest.raises(InvalidArgument, match=expected):
        check_fits(Ring(), Spec("gather", 0, 4))


def test_an_order_is_for_its_number_of_ranks() -> None:
    with pytest.raises(ScheduleError, match=r"ring\(order=1-0\): nranks: too many: found 3"):
        Ring(order=(1, 0)).program(Spec("all_reduce", 0, 3))


def test_a_declared_function_offers_what_it_says() -> None:
    declared = algorithm(collectives=("reduce",), name="mine", power_of_two=True)(swing)
    assert (declared.name, declared.collectives) == ("mine", frozenset({"reduce"}))
    with pytest.raises(ScheduleError, match="mine: nranks: not a power of two: found 6"):
        check_fits(declared, Spec("reduce", 0, 6))
    with pytest.raises(InvalidArgument, match="collective: unknown name"):
        algorithm(collectives=("reduction",))


@pytest.mark.parametrize("kind", [Ring, TwoShot])
def test_segments_follow_from_the_size_of_a_part(kind: type[Ring] | type[TwoShot]) -> None:
    assert kind().fitted(0, 8) == kind(segments=1)
    assert kind().fitted(8 * 3 * SEGMENT_NBYTES, 8) == kind(segments=3)
    assert kind().fitted(1 << 40, 8) == kind(segments=MAX_SEGMENTS)
    assert kind(segments=5).fitted(1 << 30, 8) == kind(segments=5)


def test_other_parameters_are_fitted() -> None:
    assert Tree().fitted(2 * 3 * SEGMENT_NBYTES, 8) == Tree(segments=3)
    assert Direct().fitted(1, 8) == Direct(window=WINDOW)
    assert GatherReduce().fitted(SEGMENT_NBYTES * 2, 8) == GatherReduce(Ring(segments=2))
    assert Halving().fitted(1 << 30, 8) == Halving()

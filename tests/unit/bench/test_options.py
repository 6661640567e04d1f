from __future__ import annotations

import pytest

from rawcoll.bench import options as o


@pytest.mark.parametrize(
    ("text", "nbytes"),
    [
        ("8", 8),
        ("1K", 1024),
        ("1k", 1024),
        ("32M", 32 << 20),
        ("2G", 2 << 30),
        ("1.5M", 3 << 19),
        ("32MB", 32 << 20),
        ("4KiB", 4096),
        (" 7 ", 7),
        ("0", 0),
    ],
)
def test_sizes_are_1024_based(text: str, nbytes: int) -> None:
    assert o.parse_size(text) == nbytes


@pytest.mark.parametrize("text", ["", "M", "-1", "8X", "=8", "1 2"])
def test_bad_sizes_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="invalid size: found"):
        o.parse_size(text)


def test_the_defaults_are_those_of_nccl_tests() -> None:
    options = o.Options()
    assert list(options.sizes()) == [32 << 20]
    assert (options.iters, options.warmup, options.agg, options.cycles) == (20, 1, 1, 1)
    assert (options.average, options.check, options.root) == (1, 1, 0)
    assert (options.ops, options.dtypes) == (("sum",), ("float",))


def test_sizes_grow_by_a_factor_or_by_a_step() -> None:
    by_factor = o.Options(min_nbytes=8, max_nbytes=100, step_factor=2)
    assert list(by_factor.sizes()) == [8, 16, 32, 64]
    by_step = o.Options(min_nbytes=8, max_nbytes=20, step_nbytes=5)
    assert list(by_step.sizes()) == [8, 13, 18]
    # A factor of 1 or 0 is none, as in nccl-tests.
    assert list(o.Options(min_nbytes=1, max_nbytes=3, step_nbytes=1, step_factor=1).sizes()) == [
        1,
        2,
        3,
    ]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            o.Options(min_nbytes=64 << 20),
            "invalid sizes for 'minbytes' and 'maxbytes': 67108864 > 33554432",
        ),
        (o.Options(min_nbytes=0, step_factor=2), "0 never grows"),
        (o.Options(floors=(o.Floor(1.0, 8),)), "min-busbw: 8 bytes is none of the measured sizes"),
    ],
)
def test_options_that_do_not_go_together(options: o.Options, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        options.check_consistent()


def test_algorithms_split_at_commas_outside_parentheses() -> None:
    text = "ring(segments=4, order=0-1), tree,./mine.py:swing,tree"
    assert o.parse_algorithms(text) == ("ring(segments=4, order=0-1)", "tree", "./mine.py:swing")
    nested = "hierarchical(across=ring(segments=2,order=1-0),levels=0-1/2),builtin"
    assert o.parse_algorithms(nested) == (nested.removesuffix(",builtin"), "builtin")


@pytest.mark.parametrize("text", ["", "a,,b", "ring(", "ring)", "a)b("])
def test_bad_algorithm_lists(text: str) -> None:
    with pytest.raises(ValueError, match=r"algorithm|parentheses"):
        o.parse_algorithms(text)


def test_names_of_types_are_nccl_tests_or_numpys() -> None:
    assert o.parse_dtypes("float") == o.parse_dtypes("float32") == ("float",)
    assert o.parse_dtypes("half") == ("half",)
    assert o.parse_dtypes("all")[:10] == (
        "int8",
        "uint8",
        "int32",
        "uint32",
        "int64",
        "uint64",
        "half",
        "float",
        "double",
        "bfloat16",
    )
    with pytest.raises(ValueError, match="unknown datatype: found 'f8e4m3', expected one of int8"):
        o.parse_dtypes("f8e4m3")


def test_reductions_roots_and_counts() -> None:
    assert o.parse_ops("all") == ("sum", "prod", "max", "min", "avg")
    with pytest.raises(ValueError, match="unknown reduction: found 'mulsum'"):
        o.parse_ops("mulsum")
    assert (o.parse_root("all"), o.parse_root("3")) == (o.ALL_ROOTS, 3)
    assert o.parse_count("0x10") == 16
    with pytest.raises(ValueError, match="at least 1"):
        o.parse_positive("0")


def test_floors() -> None:
    assert o.parse_floors("20@64M,1.5@8") == (o.Floor(20.0, 64 << 20), o.Floor(1.5, 8))
    with pytest.raises(ValueError, match="GBPS@SIZE"):
        o.parse_floors("20")

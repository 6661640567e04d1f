"""Expressions: equal ones have equal numbers, and long ones can still be told."""

from __future__ import annotations

from functools import reduce

import pytest

from rawcoll.schedule.symbols import UNDEFINED, Repeated, Symbols


def test_equal_expressions_are_one():
    symbols = Symbols()
    a, b = symbols.leaf(0, 5), symbols.leaf(1, 5)
    assert symbols.leaf(0, 5) == a
    total = symbols.reduction("reduce", (a, b))
    assert symbols.reduction("reduce", (a, b)) == total
    assert len({UNDEFINED, a, b, total, symbols.reduction("reduce", (b, a))}) == 5
    assert symbols.contributions(total) == 0b11
    assert (symbols.depth(a), symbols.depth(total)) == (0, 1)
    assert symbols.show(total) == "(0 + 1)"
    assert symbols.show(UNDEFINED) == "undefined"
    assert symbols.name(a) == "rank 0's unit 5"


def test_repeated_contributions():
    symbols = Symbols()
    a, b = symbols.leaf(2, 0), symbols.leaf(3, 0)
    with pytest.raises(Repeated, match=r"contribution of rank 3 twice in \(3 \+ \(2 \+ 3\)\)"):
        symbols.reduction("reduce", (b, symbols.reduction("reduce", (a, b))))


def test_reordered_operands_are_told_from_other_parentheses():
    symbols = Symbols()
    a, b, c = (symbols.leaf(rank, 0) for rank in range(3))

    def of(*operands):
        return symbols.reduction("reduce", operands)

    assert symbols.is_reordered(of(a, b), of(b, a))
    assert symbols.is_reordered(of(of(a, b), c), of(of(b, a), c))
    assert not symbols.is_reordered(of(of(a, b), c), of(a, of(b, c)))
    assert not symbols.is_reordered(of(a, b), of(a, b))
    assert not symbols.is_reordered(a, UNDEFINED)


def test_deep_expressions():
    symbols = Symbols()
    leaves = [symbols.leaf(rank, 0) for rank in range(5000)]

    def chain(numbers):
        return reduce(lambda x, y: symbols.reduction("reduce", (x, y)), numbers)

    one, other = chain(leaves), chain([leaves[1], leaves[0], *leaves[2:]])
    assert symbols.depth(one) == 4999
    assert symbols.is_reordered(one, other)
    assert len(symbols.show(one)) <= 200
    assert symbols.show(one).endswith("+ 4998) + 4999)")

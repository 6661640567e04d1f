"""Expressions over ranks' contributions, hash-consed: equal expressions have equal numbers.

Owns the table of expressions. Two results are the same bits on every input exactly when they are
the same expression, so the check compares numbers. Knows nothing of programs.

Key terms: a *leaf* is one rank's value of one unit; the *contributions* of an expression are the
ranks whose leaves are in it, as a bit mask; its *depth* is how many reductions are nested in it.
"""

from __future__ import annotations

from typing import Final

UNDEFINED: Final = 0
_SHOWN = 200
"""Longest text of an expression in a message."""
_NESTED = 16
"""Most parentheses inside each other in one; a ring of n ranks has n - 1."""


class Repeated(ValueError):
    """Two operands of a reduction share a contribution."""


class Symbols:
    """The table; expression 0 is UNDEFINED."""

    def __init__(self) -> None:
        self._keys: list[tuple[object, ...]] = [("undefined",)]
        self._numbers: dict[tuple[object, ...], int] = {}
        self._contributions = [0]
        self._depths = [0]

    def leaf(self, rank: int, unit: int) -> int:
        """Rank ``rank``'s value of unit ``unit`` at the start."""
        return self._number(("leaf", rank, unit), 1 << rank, 0)

    def reduction(self, kind: str, operands: tuple[int, ...]) -> int:
        """The operands reduced from left to right by ``kind``.

        Raises:
            Repeated: a rank would contribute twice.
        """
        key = (kind, operands)
        found = self._numbers.get(key)
        if found is not None:
            return found
        mask = 0
        for operand in operands:
            shared = mask & self._contributions[operand]
            if shared:
                rank = (shared & -shared).bit_length() - 1
                raise Repeated(f"contribution of rank {rank} twice in {self._row(operands)}")
            mask |= self._contributions[operand]
        return self._number(key, mask, 1 + max(self._depths[operand] for operand in operands))

    def contributions(self, number: int) -> int:
        """Bit mask of the ranks in an expression."""
        return self._contributions[number]

    def depth(self, number: int) -> int:
        """How many reductions are nested in an expression."""
        return self._depths[number]

    def show(self, number: int) -> str:
        """An expression of ranks as text, such as ``((0 + 1) + 2)``; long ones are cut."""
        text = self._show(number, _NESTED)
        return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."

    def name(self, number: int) -> str:
        """A value that was moved, not reduced, as text."""
        key = self._keys[number]
        return f"rank {key[1]}'s unit {key[2]}" if key[0] == "leaf" else self.show(number)

    def is_reordered(self, first: int, second: int) -> bool:
        """Whether two expressions differ somewhere by nothing but the order of operands."""
        pairs = [(first, second)]
        while pairs:
            a, b = pairs.pop()
            left, right = self._operands(a), self._operands(b)
            if a == b or len(left) != len(right):
                continue
            if left and sorted(left) == sorted(right):
                return True
            pairs += zip(left, right, strict=True)
        return False

    def _number(self, key: tuple[object, ...], contributions: int, depth: int) -> int:
        found = self._numbers.get(key)
        if found is None:
            found = self._numbers[key] = len(self._keys)
            self._keys.append(key)
            self._contributions.append(contributions)
            self._depths.append(depth)
        return found

    def _operands(self, number: int) -> tuple[int, ...]:
        """The operands of a reduction; none of a leaf."""
        found = self._keys[number][-1]
        return found if isinstance(found, tuple) else ()

    def _show(self, number: int, nested: int) -> str:
        key = self._keys[number]
        if key[0] == "leaf":
            return str(key[1])
        if key[0] == "undefined":
            return "undefined"
        prefix = "" if key[0] == "reduce" else str(key[0])
        return prefix + self._row(self._operands(number), nested)

    def _row(self, operands: tuple[int, ...], nested: int = _NESTED) -> str:
        if not nested:
            return "(...)"
        return "(" + " + ".join(self._show(each, nested - 1) for each in operands) + ")"

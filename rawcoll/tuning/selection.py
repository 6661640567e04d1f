"""The choice behind ``algorithm="auto"``: by collective, size and number of ranks alone.

Owns fixed thresholds for ranks that share memory. Every input is the same on all ranks, so all choose
alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

SMALL_NBYTES: Final = 32 << 10
"""Up to here the number of rounds decides, beyond it the bytes that each rank moves."""


@dataclass(frozen=True, slots=True)
class Choice:
    """An algorithm by name, and why."""

    algorithm: str
    reason: str


def choose(collective: str, nbytes: int, nranks: int) -> Choice:
    """The algorithm for ``nbytes`` bytes of the whole array over ``nranks`` ranks."""
    small = nbytes <= SMALL_NBYTES
    size = f"{nbytes} bytes {'<=' if small else '>'} {SMALL_NBYTES}"
    match collective:
        case "all_reduce" if small:
            return Choice("doubling", f"fewest rounds: {size}")
        case "all_reduce":
            return Choice("two_shot", f"fewest bytes in two exchanges: {size}")
        case "all_gather" if small:
            return Choice("doubling", f"fewest rounds: {size}")
        case "reduce_scatter" | "all_gather" if nranks > 8:
            return Choice("ring", f"fewest bytes, one peer at a time: {size}, {nranks} ranks > 8")
        case "broadcast" if small:
            return Choice("binomial", f"fewest rounds: {size}")
        case "broadcast":
            return Choice("ring", f"every byte sent once by each rank: {size}")
        case "reduce" if small or nranks <= 2:
            return Choice("binomial", f"fewest rounds: {size}")
        case "reduce":
            return Choice("tree", f"two pipelined trees: {size}")
        case "barrier":
            return Choice("doubling", "fewest rounds")
        case "gather" | "scatter" if small and nranks > 4:
            return Choice("binomial", f"fewest rounds: {size}")
    return Choice("direct", f"one exchange: {size}, {nranks} ranks")

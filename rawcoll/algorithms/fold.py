"""The fold that makes any number of ranks a power of two.

With ``size`` the largest power of two and ``extra`` ranks more, each of the first ``extra`` even
ranks hands its data to the odd rank after it, sits out, and is served at the end. The others take
*seats* 0 to ``size - 1``, in rank order.

Source: Thakur, Rabenseifner and Gropp, Optimization of collective communication operations in
MPICH, 2005, section 4.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fold:
    """The seats of ``nranks`` ranks."""

    nranks: int

    @property
    def nsteps(self) -> int:
        """Base-2 logarithm of the number of seats."""
        return self.nranks.bit_length() - 1

    @property
    def size(self) -> int:
        """Number of seats."""
        return 1 << self.nsteps

    @property
    def extra(self) -> int:
        """Number of ranks that sit out."""
        return self.nranks - self.size

    @property
    def nrounds(self) -> int:
        """Rounds before the first step, and again after the last: 1 where any rank sits out."""
        return 1 if self.extra else 0

    def is_out(self, rank: int) -> bool:
        """Whether the rank sits out."""
        return rank < 2 * self.extra and rank % 2 == 0

    def is_host(self, rank: int) -> bool:
        """Whether the rank also stands for the one before it."""
        return rank < 2 * self.extra and rank % 2 == 1

    def seat(self, rank: int) -> int:
        """The seat of a rank that does not sit out."""
        return rank // 2 if rank < 2 * self.extra else rank - self.extra

    def rank(self, seat: int) -> int:
        """The rank in a seat."""
        return 2 * seat + 1 if seat < self.extra else seat + self.extra

    def first_part(self, seat: int) -> int:
        """The first rank that a seat stands for; those of all seats are contiguous, in order."""
        return 2 * seat if seat < self.extra else seat + self.extra

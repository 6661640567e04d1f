"""Prove an algorithm for a number of ranks: an unproved one does not run.

Owns which forms of a schedule are proved, and remembers what was. Programs of all ranks exist here
only.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from rawcoll.algorithms.base import Algorithm
from rawcoll.schedule.check import Proof, check
from rawcoll.schedule.passes import out_of_place
from rawcoll.schedule.program import Schedule, Spec

NPROOFS: Final = 512
"""Proofs remembered; a proof is a few numbers."""

_ALIASED: Final = frozenset({"all_reduce", "reduce_scatter"})
"""Collectives whose two arrays may be one memory while the out-of-place form runs.

all_gather may alias too. Its out-of-place form is then a copy of the own part onto itself, which
is no work, and otherwise the in-place form.
"""


def programs(
    algorithm: Algorithm, collective: str, nranks: int, root: int = 0, in_place: bool = True
) -> Schedule:
    """The programs of all ranks.

    Args:
        algorithm: what writes them.
        collective: what for.
        nranks: number of ranks.
        root: the root, where the collective has one.
        in_place: whether in the in-place form (all_to_all has none and stays out of place).
    """
    specs = [Spec(collective, rank, nranks, root) for rank in range(nranks)]
    written = (algorithm.program(spec) for spec in specs)
    return Schedule(tuple(written if in_place else map(out_of_place, written)))


@lru_cache(maxsize=NPROOFS)
def prove(algorithm: Algorithm, collective: str, nranks: int, root: int = 0) -> Proof:
    """Prove every form of an algorithm that a call may use; returns the proof of the written form.

    These are the in-place form, the out-of-place form, and, where arrays may alias, that form with
    INPUT and OUTPUT in one memory.

    Raises:
        InvalidArgument: the collective is not offered.
        ScheduleError: a program is wrong, or the number of ranks is not served.
    """
    schedule = programs(algorithm, collective, nranks, root)
    proof = check(schedule)
    if schedule.programs[0].in_place:
        derived = Schedule(tuple(map(out_of_place, schedule.programs)))
        check(derived)
        if collective in _ALIASED:
            check(derived, aliased=True)
    return proof

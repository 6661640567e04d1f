"""Which algorithms run at which sizes, agreed by all ranks before anything is measured.

Owns the reading of ``--algorithms``: texts to values, ``all`` to a list, and which do not fit.
Knows nothing of arrays and time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rawcoll.bench.case import RAW, Case
from rawcoll.bench.options import DTYPES
from rawcoll.errors import InvalidArgument, RankMismatch, RawcollError

if TYPE_CHECKING:
    from rawcoll.comm.communicator import Communicator


@dataclass(frozen=True, slots=True)
class Plan:
    """What would run for one case: from ``explain``, the same on all ranks."""

    algorithm: str
    digest: str
    sent_nbytes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """One algorithm of a run.

    Attributes:
        label: the text that names it; calls take it as ``algorithm``.
        plans: for each case that it fits, what would run.
        refusals: for each case that it does not fit, why.
    """

    label: str
    plans: dict[Case, Plan]
    refusals: dict[Case, str]

    def refusal(self) -> str:
        """Why it does not fit the first case that it does not fit."""
        return next(iter(self.refusals.values()), "")


def choose(comm: Communicator, texts: Sequence[str], cases: Sequence[Case]) -> tuple[Choice, ...]:
    """The choices that ``texts`` name. Collective.

    Raises:
        RawcollError: a named algorithm is unknown or does not fit a case; on all ranks alike. With
            ``all``, algorithms that fit no case are returned with their refusals.
    """
    collective = cases[0].collective.name
    names = list(_names(collective, texts))
    choices = tuple(_choice(comm, name, cases) for name in names)
    _agree(comm, choices)
    if "all" not in texts:
        for choice in choices:
            if choice.refusals:
                raise InvalidArgument(f"algorithms: {choice.label}: {choice.refusal()}")
    return choices


def _names(collective: str, texts: Sequence[str]) -> dict[str, None]:
    """The texts in order, ``all`` replaced by every name. (A dict: no duplicates, order kept.)"""
    from rawcoll.algorithms.catalog import names_for

    if collective == "sendrecv":
        unknown = [text for text in texts if text not in ("auto", "all")]
        if unknown:
            raise InvalidArgument(
                f"algorithms: sendrecv has no choice: found {unknown[0]!r}, expected auto"
            )
        return {"auto": None}
    names: dict[str, None] = {}
    for text in texts:
        names |= dict.fromkeys((RAW, *names_for(collective)) if text == "all" else (text,))
    return names


def _choice(comm: Communicator, text: str, cases: Sequence[Case]) -> Choice:
    choice = Choice(text, {}, {})
    for case in cases:
        try:
            _check_known(text)
            choice.plans[case] = plan_of(comm, case, text)
        except RawcollError as error:
            choice.refusals[case] = str(error)
    return choice


def _check_known(text: str) -> None:
    """Refuse what names no algorithm. Calls get the text itself, as a program would pass it."""
    from rawcoll.algorithms.catalog import algorithm_from

    if text not in ("auto", RAW):
        algorithm_from(text)


def plan_of(comm: Communicator, case: Case, algorithm: str) -> Plan:
    """What the communicator would run; RawcollError where it refuses."""
    collective = case.collective
    if algorithm == RAW:
        if collective.reduces and (case.op == "avg" or case.dtype in ("half", "bfloat16")):
            raise InvalidArgument(f"algorithm: MPI has none: found {case.op} of {case.dtype}")
        return Plan("MPI's own, called without rawcoll", "", ())
    if collective.name == "sendrecv":
        return Plan("sendrecv", "", (case.nbytes,) * case.nranks)
    options: dict[str, Any] = {"algorithm": algorithm}
    if collective.reduces:
        options["op"] = case.op
    if collective.rooted:
        options["root"] = case.root
    said = comm.explain(collective.name, case.counts.largest, DTYPES[case.dtype], **options)
    return Plan(str(said.algorithm), str(said.digest or ""), tuple(said.sent_nbytes or ()))


def _agree(comm: Communicator, choices: Sequence[Choice]) -> None:
    """Refuse on all ranks together: one that went on alone would wait for ever."""
    mine = [(choice.label, sorted(choice.refusals.values())) for choice in choices]
    if any(theirs != mine for theirs in comm.mpi.allgather(mine)):
        raise RankMismatch("algorithms: the ranks do not agree which of them fit")

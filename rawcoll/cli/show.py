"""``rawcoll show``: a schedule as text or as a picture.

Owns the arguments and the head of the text. A schedule that does not prove is shown all the same,
since that is when it has to be looked at; the exit status is then 1.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Final

from rawcoll.algorithms.base import Algorithm, text
from rawcoll.algorithms.catalog import ALGORITHMS, algorithm_from
from rawcoll.algorithms.prove import programs, prove
from rawcoll.cli._drawing import draw
from rawcoll.cli.main import UsageError, speaks
from rawcoll.comm.handshake import describe
from rawcoll.errors import InvalidArgument, ScheduleError
from rawcoll.schedule.collectives import COLLECTIVES
from rawcoll.schedule.metrics import metrics
from rawcoll.schedule.program import Schedule
from rawcoll.schedule.text import digest, dump, dump_schedule

NAME: Final = "show"
HELP: Final = "show the schedule of an algorithm as text or as an SVG picture"

_EPILOG: Final = f"""\
Algorithms: {", ".join(ALGORITHMS)}; with parameters, as in
'ring(segments=2,order=0-2-1-3)' or 'hierarchical(levels=0-1/2-3)'; or an own function, as in
./mine.py:swing. No MPI is needed.

    rawcoll show ring all_reduce -n 4
    rawcoll show ring all_reduce -n 4 --rank 1
    rawcoll show tree broadcast -n 7 --root 3 -o tree.svg

Lines that begin with # say what the schedule costs, in units: an array is cut into as many units
as the first line of each program says. "waits" are the earlier steps that a step waits for.
"""

_COUNTED: Final = ("unit", "round", "message", "rounding")
"""Facts that have a plural."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.epilog = _EPILOG
    parser.add_argument(
        "algorithm", metavar="ALGORITHM", help="name, name(parameter=value), file:function"
    )
    parser.add_argument(
        "collective",
        metavar="COLLECTIVE",
        nargs="?",
        default="all_reduce",
        choices=tuple(COLLECTIVES),
        help=f"{', '.join(COLLECTIVES)} (all_reduce)",
    )
    parser.add_argument(
        "-n", "--ranks", dest="nranks", type=int, default=4, metavar="N", help="how many ranks (4)"
    )
    parser.add_argument("--root", type=int, default=0, metavar="RANK", help="the root (0)")
    parser.add_argument("--rank", type=int, metavar="RANK", help="text of this rank only")
    parser.add_argument("--out-of-place", action="store_true", help="input and output apart")
    parser.add_argument(
        "--format", choices=("text", "svg"), help="default: by the file's ending, else text"
    )
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="where to (stdout)")


def run(arguments: argparse.Namespace) -> int:
    """Show; 1 where the schedule does not prove."""
    if not speaks():
        return 0
    algorithm = algorithm_from(arguments.algorithm)
    kind = _checked_format(arguments)
    _check_ranks(arguments)
    schedule = programs(
        algorithm,
        arguments.collective,
        arguments.nranks,
        arguments.root,
        in_place=not arguments.out_of_place,
    )
    facts, flaw = _facts(algorithm, schedule)
    title = f"{text(algorithm)} {arguments.collective}, {_call(schedule)}"
    if kind == "svg":
        shown = draw(schedule, title, _subtitle(dict(facts), schedule))
    else:
        head = [title, *(f"{name:11} {fact}" for name, fact in facts)]
        shown = "".join(f"# {row}\n" for row in head) + "\n" + _programs(schedule, arguments.rank)
    _write(shown, arguments.output)
    if flaw is not None:
        print(f"rawcoll: does not prove: {flaw}", file=sys.stderr)
    return 0 if flaw is None else 1


def _checked_format(arguments: argparse.Namespace) -> str:
    by_name = arguments.output is not None and arguments.output.suffix == ".svg"
    kind = arguments.format or ("svg" if by_name else "text")
    if kind == "svg" and arguments.rank is not None:
        raise UsageError("--rank: a picture shows all ranks: leave it out, or use --format text")
    return str(kind)


def _check_ranks(arguments: argparse.Namespace) -> None:
    nranks = arguments.nranks
    if nranks < 1:
        raise InvalidArgument(f"nranks: out of range: found {nranks}, expected at least 1")
    if arguments.root and not COLLECTIVES[arguments.collective].rooted:
        raise InvalidArgument(f"root: {arguments.collective} has none: found {arguments.root}")
    for name, rank in (("root", arguments.root), ("rank", arguments.rank)):
        if rank is not None and not 0 <= rank < nranks:
            raise InvalidArgument(f"{name}: out of range: found {rank}, expected 0 to {nranks - 1}")


def _call(schedule: Schedule) -> str:
    first = schedule.programs[0]
    rooted = COLLECTIVES[first.spec.collective].rooted
    root = f", root {first.spec.root}" if rooted else ""
    return f"{_count(str(schedule.nranks), 'rank')}{root}, {'in' if first.in_place else 'out of'} place"


def _facts(
    algorithm: Algorithm, schedule: Schedule
) -> tuple[list[tuple[str, str]], ScheduleError | None]:
    """What the schedule costs, by name; and why it does not prove, where it does not."""
    spec = schedule.programs[0].spec
    costs = metrics(schedule)
    sent = describe([rank.sent_nbytes for rank in costs.ranks])
    facts = [
        ("schedule", digest(schedule)),
        ("units", str(schedule.programs[0].nunits)),
        ("rounds", str(costs.rounds)),
        ("messages", str(costs.messages)),
        ("units sent", sent),
    ]
    try:
        proof = prove(algorithm, spec.collective, spec.nranks, spec.root)
    except ScheduleError as flaw:
        return [*facts, ("proved", "no")], flaw
    if COLLECTIVES[spec.collective].reduces:
        facts.append(("roundings", str(proof.depth)))
    return [*facts, ("proved", "yes")], None


def _subtitle(facts: dict[str, str], schedule: Schedule) -> str:
    """The same in one short line."""
    words = [_count(facts[f"{one}s"], one) for one in _COUNTED if f"{one}s" in facts]
    most = str(metrics(schedule).max_sent_nbytes)
    words.append(f"a rank sends at most {_count(most, 'unit')}")
    words.append(f"schedule {facts['schedule']}")
    return "  \N{MIDDLE DOT}  ".join(words if facts["proved"] == "yes" else [*words, "NOT PROVED"])


def _count(number: str, one: str) -> str:
    return f"{number} {one}" if number == "1" else f"{number} {one}s"


def _programs(schedule: Schedule, rank: int | None) -> str:
    return dump_schedule(schedule) if rank is None else dump(schedule.programs[rank])


def _write(shown: str, output: Path | None) -> None:
    if output is None:
        sys.stdout.write(shown)
        return
    try:
        output.write_text(shown, encoding="utf-8")
    except OSError as error:
        raise InvalidArgument(f"output: cannot be written: {error}") from error

"""``rawcoll check``: prove algorithms over ranges of ranks.

Owns the arguments, the table and the words that say what was proved. The proof itself is
``rawcoll.algorithms.prove``.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Final

from rawcoll.algorithms.catalog import ALGORITHMS
from rawcoll.cli._proving import Family, Row, collectives_of, families, prove_row, roots_of
from rawcoll.cli.main import speaks
from rawcoll.schedule.collectives import COLLECTIVES

NAME: Final = "check"
HELP: Final = "prove built-in or own algorithms for many numbers of ranks"

_RANKS: Final = "1-17,32,64"
_MOST_RANKS: Final = 4096
_EPILOG: Final = f"""\
Without ALGORITHM, all built-in ones: {", ".join(ALGORITHMS)}.
hierarchical without levels is proved for nodes of 3 ranks, and for groups of 3 nodes of 2 ranks,
the last ones smaller. An own algorithm is file:function; a function that declares no collectives
is taken for an all_reduce. No MPI is needed.

    rawcoll check
    rawcoll check ring 'tree(segments=3)' --collective all_reduce -n 2-9
    rawcoll check ./mine.py:swing -n 2,4,8,16
"""

_PROVED: Final = """\
Proved of each row, for every number of ranks in it{roots}:
  - every rank ends with what the collective promises; a reduction holds every rank's contribution
    exactly once
  - a reduction's result comes from the same expression on all ranks: the same bits everywhere
  - both ends of a message name the same round and the same units
  - no deadlock, even if each rank's transfers run strictly one after another and no message is
    buffered
  - no data race: the steps' waits order all conflicting accesses
  - nothing is read before it is written, and nothing is written outside the result and scratch
in place, out of place (all_to_all: only so) and, for all_reduce and reduce_scatter, with the
out-of-place form on one array."""
_BUILTIN: Final = """\
builtin is the library's own collective as one step: proved is that all ranks join it with the
right units, not what the library does."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.epilog = _EPILOG
    parser.add_argument(
        "algorithms",
        metavar="ALGORITHM",
        nargs="*",
        help="name, name(parameter=value), file:function (all built-in ones)",
    )
    parser.add_argument(
        "--collective",
        action="append",
        choices=tuple(COLLECTIVES),
        metavar="C",
        help="only this collective; may be repeated (all that an algorithm offers)",
    )
    parser.add_argument(
        "-n",
        "--ranks",
        type=_parse_ranks,
        default=_parse_ranks(_RANKS),
        metavar="RANGES",
        help=f"numbers of ranks ({_RANKS})",
    )
    parser.add_argument(
        "--all-roots", action="store_true", help="every root, not just the first, middle and last"
    )


def run(arguments: argparse.Namespace) -> int:
    """Prove; 1 where anything fails."""
    if not speaks():
        return 0
    cases = list(_cases(arguments.algorithms, arguments.collective))
    roots_for = _every_root if arguments.all_roots else roots_of
    width = max(map(len, ("algorithm", *(family.name for family, _ in cases))))
    print(
        _line(width, "algorithm", "collective", "ranks", "rounds", "messages", "roundings", "time")
    )
    rows = []
    for family, collective in cases:
        rows.append(prove_row(family, collective, arguments.ranks, roots_for))
        for text in _row_lines(rows[-1], width):
            print(text, flush=True)
    for text in _summary(rows, arguments.all_roots):
        print(text)
    return int(any(row.failure for row in rows) or not any(row.proved for row in rows))


def _every_root(collective: str, nranks: int) -> tuple[int, ...]:
    return tuple(range(nranks)) if COLLECTIVES[collective].rooted else (0,)


def _cases(names: list[str], only: list[str] | None) -> Iterator[tuple[Family, str]]:
    """What is proved; an algorithm that is named must offer a collective that is."""
    for family in families(names):
        offered = collectives_of(family, named=bool(only))
        for collective in only or offered:
            if collective in offered or names:
                yield family, collective


def _parse_ranks(text: str) -> tuple[int, ...]:
    """``1-4,8`` is 1, 2, 3, 4 and 8."""
    found: set[int] = set()
    for part in text.split(","):
        first, dash, last = part.partition("-")
        try:
            found.update(range(int(first), int(last if dash else first) + 1))
        except ValueError:
            raise argparse.ArgumentTypeError(f"found {part!r}, expected N or N-N") from None
    if not found or min(found) < 1 or max(found) > _MOST_RANKS:
        raise argparse.ArgumentTypeError(f"found {text!r}, expected ranges in 1 to {_MOST_RANKS}")
    return tuple(sorted(found))


def _show_ranks(ranks: list[int]) -> str:
    """The inverse of ``_parse_ranks``."""
    runs: list[list[int]] = []
    for rank in ranks:
        if runs and rank == runs[-1][-1] + 1:
            runs[-1].append(rank)
        else:
            runs.append([rank])
    return ",".join(str(r[0]) if len(r) == 1 else f"{r[0]}-{r[-1]}" for r in runs) or "none"


def _line(width: int, *cells: str) -> str:
    name, collective, ranks, rounds, messages, roundings, time = cells
    return (
        f"{name:{width}}  {collective:14}  {ranks:16}  {rounds:>6}  {messages:>8}"
        f"  {roundings:>9}  {time:>7}"
    )


def _row_lines(row: Row, width: int) -> Iterator[str]:
    proof = row.largest
    numbers = ["-"] * 3
    if proof is not None:
        depth = str(proof.depth) if COLLECTIVES[row.collective].reduces else "-"
        numbers = [str(proof.rounds), str(proof.messages), depth]
    proved = _show_ranks(row.proved)
    yield _line(width, row.name, row.collective, proved, *numbers, f"{row.seconds:.2f} s")
    for reason, ranks in row.refused.items():
        yield f"  not served for {_show_ranks(ranks)}: {reason}"
    if row.failure:
        yield f"  FAILED: {row.failure}"


def _summary(rows: list[Row], all_roots: bool) -> Iterator[str]:
    proved = [row for row in rows if row.proved]
    failed = [row for row in rows if row.failure]
    yield ""
    if proved:
        rooted = any(COLLECTIVES[row.collective].rooted for row in proved)
        which = "every one" if all_roots else "the first, the middle and the last"
        yield _PROVED.format(roots=f" and as root {which}" if rooted else "")
    if any(row.name == "builtin" for row in proved):
        yield _BUILTIN
    if proved:
        yield "rounds, messages and roundings are those of the largest number of ranks."
    nproofs = sum(row.nproofs for row in rows)
    yield f"{nproofs} proofs in {sum(row.seconds for row in rows):.1f} s; {len(failed)} rows failed"

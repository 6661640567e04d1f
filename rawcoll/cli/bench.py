"""``rawcoll bench``: nccl-tests' flags, and rawcoll's own, to options.

Owns the flags' names, their help and what is refused. What they mean is ``rawcoll.bench``'s affair.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from rawcoll.bench import options as o
from rawcoll.bench.collectives import ALIASES, COLLECTIVES
from rawcoll.cli.main import UsageError
from rawcoll.errors import InvalidArgument

NAME: Final = "bench"
HELP: Final = "measure a collective, checked first, in nccl-tests' format"

_EPILOG: Final = """\
Run it under mpirun: mpirun -n 4 python -m rawcoll bench all_reduce -b 8 -e 64M -f 4

Sizes take K, M, G (1024-based). Flags and output are those of nccl-tests; lines that begin with
"# rawcoll" are additions. -n with --compare is the number of interleaved repeats, and without
sizes --compare measures 1K to 64M by 4.

Algorithms: a name, one with parameters, or an own function, as in
  --algorithms 'ring(segments=4),two_shot,builtin,mpi,./mine.py:swing'
"builtin" is the library's own collective called through rawcoll; "mpi" is MPI's own called without
any of rawcoll; "all" is these and all of rawcoll's.
"""

_COLLECTIVES: Final = (*COLLECTIVES, *ALIASES)

# flag, long name, field of Options, reader, placeholder, help
_VALUES: Final[tuple[tuple[str, str, str, Callable[[str], Any], str, str], ...]] = (
    ("-b", "--minbytes", "min_nbytes", o.parse_size, "SIZE", "first size (32M)"),
    ("-e", "--maxbytes", "max_nbytes", o.parse_size, "SIZE", "last size (32M)"),
    ("-i", "--stepbytes", "step_nbytes", o.parse_step, "SIZE", "added to a size (1M)"),
    ("-f", "--stepfactor", "step_factor", o.parse_count, "N", "multiplies a size (off)"),
    ("-n", "--iters", "iters", o.parse_positive, "N", "timed iterations (20)"),
    ("-w", "--warmup_iters", "warmup", o.parse_count, "N", "untimed calls a size (1)"),
    ("-m", "--agg_iters", "agg", o.parse_positive, "N", "calls in flight an iteration (1)"),
    ("-N", "--run_cycles", "cycles", o.parse_count, "N", "runs over the table; 0: for ever (1)"),
    ("-c", "--check", "check", o.parse_count, "N", "checked calls a placement (1)"),
    ("-o", "--op", "ops", o.parse_ops, "OP", "sum prod max min avg, or all (sum)"),
    ("-d", "--datatype", "dtypes", o.parse_dtypes, "TYPE", "float, half, ..., or all (float)"),
    ("-r", "--root", "root", o.parse_root, "RANK", "a rank, or all (0)"),
    ("-J", "--output_file", "json_path", str, "FILE", "also write the results as JSON"),
)
_OWN: Final[tuple[tuple[str, str, Callable[[str], Any], str, str], ...]] = (
    ("--algorithms", "algorithms", o.parse_algorithms, "A,B(...)", "what runs (auto); all"),
    ("--baseline", "baseline", str, "A", "what ratios are to (mpi, else builtin)"),
    ("--min-busbw", "floors", o.parse_floors, "GBPS@SIZE", "fail below this bus bandwidth"),
    ("--plot", "plot_path", str, "FILE", "draw bus bandwidth over size (.png, .svg)"),
    (
        "--mmap-threshold",
        "mmap_threshold",
        o.parse_size,
        "SIZE",
        "keep freed memory below SIZE, so that MPI's temporary buffers do not fault each call",
    ),
)
# nccl-tests' flags of which one value only has a meaning here: flag, long name, that value, why.
_FIXED: Final = (
    ("-t", "--nthreads", 1, "a rank is a process with one thread: start more ranks with mpirun"),
    ("-g", "--ngpus", 1, "a rank has one device: start more ranks with mpirun"),
    ("-G", "--cudagraph", 0, "there is no graph to capture on the host"),
    ("-p", "--parallel_init", 0, "ranks are processes: they always start in parallel"),
    ("-y", "--stream_null", 0, "the host has no null stream"),
    ("-C", "--report_cputime", 0, "calls on the host return when they are complete"),
    ("-D", "--device_implementation", 0, "there is no device-side implementation"),
    ("-u", "--unalign", 0, "arrays are always aligned"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare nccl-tests' flags, then rawcoll's."""
    parser.epilog = _EPILOG
    # Fields that are not given stay out of the namespace: Options holds the defaults.
    parser.argument_default = argparse.SUPPRESS
    parser.add_argument(
        "collective", choices=_COLLECTIVES, metavar="COLLECTIVE", help=", ".join(_COLLECTIVES)
    )
    theirs = parser.add_argument_group("nccl-tests' flags (defaults in parentheses)")
    for flag, long, field, read, shown, text in _VALUES:
        theirs.add_argument(flag, long, dest=field, type=_reader(read), metavar=shown, help=text)
    theirs.add_argument(
        "-a",
        "--average",
        dest="average",
        type=int,
        choices=range(4),
        help="over ranks: 0 rank 0's, 1 mean, 2 min, 3 max (1)",
    )
    theirs.add_argument(
        "-z",
        "--blocking",
        dest="blocking",
        type=int,
        choices=range(4),
        help="1: a barrier after each call (0)",
    )
    theirs.add_argument(
        "-R",
        "--local_register",
        dest="register",
        type=int,
        choices=range(2),
        help="1: arrays made by comm.empty, in memory that ranks of a node share (0)",
    )
    theirs.add_argument(
        "-T",
        "--timeout",
        dest="timeout_s",
        type=_reader(o.parse_count),
        metavar="S",
        help="time limit of a call; 0: the usual one (0)",
    )
    theirs.add_argument(
        "-I",
        "--per_iter",
        dest="per_iteration",
        action="store_true",
        help="time each iteration; four more columns a placement",
    )
    for flag, long, value, reason in _FIXED:
        theirs.add_argument(
            flag,
            long,
            dest=argparse.SUPPRESS,
            type=_only(value, reason),
            metavar="N",
            help=argparse.SUPPRESS,
        )
    ours = parser.add_argument_group("rawcoll's own")
    for long, field, read, shown, text in _OWN:
        ours.add_argument(long, dest=field, type=_reader(read), metavar=shown, help=text)
    ours.add_argument(
        "--compare", action="store_true", help="one table: a row a size, a column an algorithm"
    )
    ours.add_argument(
        "--out-of-place", action="store_true", help="let --compare measure out of place"
    )


def _reader(read: Callable[[str], Any]) -> Callable[[str], Any]:
    """argparse hides a ValueError's sentence; this keeps it."""

    def parse(text: str) -> Any:
        try:
            return read(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return parse


def _only(value: int, reason: str) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if text.strip() != str(value):
            raise argparse.ArgumentTypeError(f"only {value}: {reason}")
        return value

    return parse


def options_from(arguments: argparse.Namespace) -> o.Options:
    """The options that were given, over the defaults.

    Raises:
        UsageError: they do not go together.
    """
    names = o.Options.__dataclass_fields__
    given = {name: value for name, value in vars(arguments).items() if name in names}
    compare = given.get("compare", False)
    if compare:
        if not {"min_nbytes", "max_nbytes", "step_nbytes", "step_factor"} & given.keys():
            given |= {"min_nbytes": 1 << 10, "max_nbytes": 64 << 20, "step_factor": 4}
        given.setdefault("algorithms", ("all",))
        _refuse(given, ("per_iteration", "agg", "cycles", "blocking"), "with --compare")
    else:
        _refuse(given, ("baseline", "out_of_place"), "without --compare")
    options = replace(o.Options(), **given)
    options = replace(options, timeout_s=options.timeout_s or None)
    try:
        options.check_consistent()
    except ValueError as error:
        raise UsageError(str(error)) from None
    return options


def _refuse(given: dict[str, Any], fields: tuple[str, ...], where: str) -> None:
    for field in fields:
        if field in given:
            raise UsageError(f"{field}: has no meaning {where}")


def run(arguments: argparse.Namespace) -> int:
    """Measure; see ``rawcoll.bench.run``."""
    options = options_from(arguments)
    from rawcoll.bench.run import run_benchmark
    from rawcoll.bench.session import Output

    output = Output(_print_line, _progress(sys.stderr))
    try:
        return run_benchmark(options, sys.argv, output)
    except InvalidArgument as error:
        # Options that only the ranks together can refuse; all of them do.
        raise UsageError(str(error)) from error


def _print_line(text: str) -> None:
    print(text, flush=True)


def _progress(stream: Any) -> Callable[[str], None]:
    """What is under way, on one line of a terminal; nothing if nobody watches."""
    if not stream.isatty():
        return lambda _: None

    def show(text: str) -> None:
        # Back to the start, clear the line, write, back: the next line of the report overwrites it.
        stream.write(f"\r\x1b[K{text[:78]}\r")
        stream.flush()

    return show

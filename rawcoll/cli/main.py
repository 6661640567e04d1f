"""The frame of the command line: finds the subcommands, parses, runs one, turns errors into exit
statuses.

Owns the exit statuses (0 success, 1 failure, 2 wrong usage) and the rule that under mpirun only one
rank speaks. Must not know what any subcommand does, and starts no MPI: which rank this is comes
from the environment that the launcher made.
"""

from __future__ import annotations

import argparse
import importlib
import os
import pkgutil
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn, Protocol, cast

import rawcoll.cli
from rawcoll.errors import RawcollError

# The first of these that is set holds this process's rank: Open MPI, PMIx, MPICH and Intel MPI,
# Slurm.
RANK_VARIABLES = ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID")
# How long a silent rank puts off its failure: the launcher may end the job at the first one, and rank 0
# is still to say what was wrong.
_GRACE_S = 5.0


class UsageError(Exception):
    """Arguments that parse one by one but cannot be served together; for the user to read."""


class Command(Protocol):
    """What a subcommand's module defines."""

    NAME: str
    HELP: str

    @property
    def add_arguments(self) -> Callable[[argparse.ArgumentParser], None]:
        """Declares the arguments."""

    @property
    def run(self) -> Callable[[argparse.Namespace], int]:
        """Does the work; returns the exit status."""


def speaks(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether this process prints: it is rank 0, or no launcher started it."""
    ranks = (environment[name] for name in RANK_VARIABLES if name in environment)
    return next(ranks, "0") == "0"


class Parser(argparse.ArgumentParser):
    """An argument parser that is silent on all ranks but the first."""

    def _print_message(self, message: str, file: Any = None) -> None:
        if speaks():
            super()._print_message(message, file)

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        if status != 0 and not speaks():
            time.sleep(_GRACE_S)
        super().exit(status, message)


def find_commands() -> list[Command]:
    """The subcommands in this package, by name."""
    names = (module.name for module in pkgutil.iter_modules(rawcoll.cli.__path__))
    return [
        cast(Command, importlib.import_module(f"rawcoll.cli.{name}"))
        for name in sorted(names)
        if name != "main" and not name.startswith("_")
    ]


def make_parser(commands: Sequence[Command]) -> Parser:
    """A parser with one subparser a command."""
    parser = Parser(prog="rawcoll", description="Collective communication from proved schedules.")
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in commands:
        subparser = subparsers.add_parser(
            command.NAME,
            help=command.HELP,
            description=command.HELP,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        command.add_arguments(subparser)
        subparser.set_defaults(command=command, parser=subparser)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one subcommand.

    Args:
        argv: the arguments after the program's name; default: this process's.

    Returns:
        0; 1 after a RawcollError or whatever the command calls failure. Wrong usage exits with 2.
    """
    arguments = make_parser(find_commands()).parse_args(argv)
    try:
        return cast(Command, arguments.command).run(arguments)
    except UsageError as error:
        cast(Parser, arguments.parser).error(str(error))
    except RawcollError as error:
        # Printed by every rank that fails: another rank's message may be a different one.
        print(f"rawcoll: {error}", file=sys.stderr)
        return 1

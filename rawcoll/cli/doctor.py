"""``rawcoll doctor``: what is installed, what will be used, and what mends what is missing.

Owns the order of the report and its verdict. Works as a single process and as a job; in a job rank
0 reports, and adds the ranks and their hosts.
"""

from __future__ import annotations

import argparse
import os
import sys
import threading
import warnings
from typing import Any, Final

from rawcoll.cli import _examine, _examine_mpi
from rawcoll.cli._findings import BROKEN, FINE, NOTE, Finding, found_by, lines_of
from rawcoll.cli.main import speaks

NAME: Final = "doctor"
HELP: Final = "say what is installed, what will be used, and what is missing"

_PATIENCE_S: Final = 60.0
_EPILOG: Final = """\
Exit status 0: rawcoll can be used; 1: something is BROKEN. Each finding names what mends it.
As a single process it also starts two ranks with the mpirun on PATH and lets them add up.

    rawcoll doctor
    mpirun -n 4 python -m rawcoll doctor
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.epilog = _EPILOG
    parser.add_argument("--no-trial", action="store_true", help="start no ranks")


def run(arguments: argparse.Namespace) -> int:
    """Examine and report; 1 where something makes rawcoll unusable."""
    launched = _examine_mpi.is_launched()
    gathered: list[dict[str, Any]] = []
    problems: list[Finding] = []
    library, mpi = _library()
    if launched and library and not _examine_mpi.conflict(library):
        problems = found_by("ranks", lambda: _gather_into(gathered))
    if not speaks():
        return 0
    mpi += found_by("mpirun", lambda: _examine_mpi.mpirun(library))
    mpi += found_by("launcher", lambda: _examine_mpi.launcher(library, len(gathered) or 1))
    if not (launched or arguments.no_trial or any(each.grade == BROKEN for each in mpi)):
        mpi += found_by("trial", lambda: _examine_mpi.trial(library))
    return _verdict(_report(mpi, gathered, problems))


def _gather_into(gathered: list[dict[str, Any]]) -> list[Finding]:
    """Ask the ranks; ends the process where they do not all answer. Nothing is found yet."""
    watchdog = threading.Timer(_PATIENCE_S, _give_up)
    watchdog.daemon = True
    watchdog.start()
    try:
        version = _examine.installed("rawcoll") or "source"
        gathered += _examine_mpi.gather(version, _kernels())
    finally:
        watchdog.cancel()
    return []


def _give_up() -> None:
    sys.stderr.write(f"rawcoll: doctor: not all ranks answered within {_PATIENCE_S:g} s\n")
    sys.stderr.flush()
    os._exit(1)  # the main thread is blocked inside MPI


def _kernels() -> str:
    from rawcoll.kernels.host import host_kernels

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return host_kernels().name


def _report(
    mpi: list[Finding], gathered: list[dict[str, Any]], problems: list[Finding]
) -> list[Finding]:
    """Print section by section; returns all findings."""
    everything: list[Finding] = []

    def section(title: str, findings: list[Finding]) -> None:
        everything.extend(findings)
        for line in lines_of(title, findings):
            print(line, flush=True)

    section("software", found_by("packages", _examine.packages))
    section("MPI", mpi)
    if gathered or problems:
        section("ranks", problems + found_by("ranks", lambda: _examine_mpi.ranks(gathered)))
    machine = found_by("kernels", _examine.kernels) + found_by("cores", _examine.cores)
    section("machine", machine + found_by("GPU", _examine.gpu))
    section("settings", found_by("RAWCOLL_*", _examine.variables))
    used = Finding(NOTE, "device", "host: numpy arrays and anything with DLPack, over MPI")
    section("what will be used", [used, Finding(NOTE, "kernels", _used_kernels())])
    return everything


def _library() -> tuple[str, list[Finding]]:
    """The examination of the library, whose words the others need."""
    words: list[str] = []

    def examine() -> list[Finding]:
        text, findings = _examine_mpi.library()
        words.append(text)
        return findings

    findings = found_by("MPI", examine)
    return (words or [""])[0], findings


def _used_kernels() -> str:
    """Which kernels the communicator takes, in words."""
    return {"native": "the compiled ones", "numpy": "numpy's"}.get(_kernels(), _kernels())


def _verdict(findings: list[Finding]) -> int:
    grades = [finding.grade for finding in findings]
    nbroken = grades.count(BROKEN)
    nwarnings = sum(grade not in (FINE, NOTE, BROKEN) for grade in grades)
    print()
    if nbroken:
        print(f"rawcoll cannot be used: {nbroken} BROKEN, to mend in the order above")
        return 1
    print(f"rawcoll can be used; {nwarnings} warnings" if nwarnings else "rawcoll can be used")
    print("try: mpirun -n 2 python -m rawcoll bench all_reduce -b 1M -e 16M -f 4")
    return 0

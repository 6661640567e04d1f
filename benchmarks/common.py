"""What all suites share: the environment of a result, writing it, and interleaved times."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rawcoll.bench import environment
from rawcoll.bench.compare import calls_a_repeat, interleaved
from rawcoll.bench.stats import Interval, median_with_quartiles

ROOT = Path(__file__).resolve().parent.parent
RESULTS = Path(__file__).resolve().parent / "results"
MIB = 1 << 20

Call = Callable[[], Any]


def commit() -> str:
    """The commit that is checked out; ``+`` when files differ from it."""
    head = _git("rev-parse", "--short=12", "HEAD")
    # Results of this very run do not make the tree dirty.
    changed = _git("status", "--porcelain", "--untracked-files=no", "--", ":!benchmarks/results")
    return head + ("+" if changed else "")


def _git(*arguments: str) -> str:
    done = subprocess.run(
        ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return done.stdout.strip()


def mpi_family(library: str) -> str:
    """``openmpi``, ``mpich`` or ``other``, from what the library says of itself."""
    if "open mpi" in library.lower():
        return "openmpi"
    return "mpich" if "mpich" in library.lower() else "other"


def describe_run(nranks: int | None = None) -> dict[str, Any]:
    """What stands at the head of every result. MPI must be running where ``nranks`` is given."""
    found = environment.capture() if nranks else environment.capture_without_mpi()
    shown = [Path(sys.argv[0]).name, *sys.argv[1:]]
    return {
        "commit": commit(),
        "command": " ".join([*(["mpirun", "-n", str(nranks)] if nranks else []), "python", *shown]),
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "nranks": nranks,
        "environment": found,
    }


def write_result(name: str, document: dict[str, Any]) -> Path:
    """Write ``results/NAME.json`` whole, or not at all."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    temporary = path.with_suffix(f".{os.getpid()}.part")
    temporary.write_text(json.dumps(document, indent=1) + "\n")
    temporary.replace(path)
    return path


def read_result(name: str) -> dict[str, Any] | None:
    """The document that was written as ``name``, or None."""
    path = RESULTS / f"{name}.json"
    if not path.exists():
        return None
    document: dict[str, Any] = json.loads(path.read_text())
    return document


def paired_times(
    comm: Any, calls: Sequence[Call], repeats: int, width: int | None = None
) -> list[list[float]]:
    """Seconds of a call for each of ``calls`` and each repeat, mean over ranks. Collective."""
    width = width or calls_a_repeat(comm, calls)
    everyone = comm.mpi.allgather(interleaved(calls, comm.mpi.barrier, repeats, width))
    return [
        [
            sum(ranks[index][repeat] for ranks in everyone) / len(everyone)
            for repeat in range(repeats)
        ]
        for index in range(len(calls))
    ]


def microseconds(interval: Interval) -> dict[str, float]:
    """An interval of seconds, in microseconds."""
    return {name: round(value * 1e6, 3) for name, value in asdict(interval).items()}


def summary_us(times: Sequence[float]) -> dict[str, float]:
    """Median between quartiles, in microseconds."""
    return microseconds(median_with_quartiles(times))

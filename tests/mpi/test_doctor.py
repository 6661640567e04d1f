"""`rawcoll doctor` with a real MPI: alone, and as a job."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import mpilaunch
from support.launcher import ROOT


def test_alone_it_finds_the_mpi_and_starts_two_ranks(mpirun: Callable[..., Any]) -> None:
    environment = mpilaunch.clean_environment(os.environ)
    folder = os.path.dirname(mpilaunch.find_mpirun())
    environment["PATH"] = folder + os.pathsep + environment.get("PATH", "")
    done = subprocess.run(
        [sys.executable, "-m", "rawcoll", "doctor"],
        env=environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "the library's own" in done.stdout
    assert "two ranks met and added up" in done.stdout
    assert "rawcoll can be used" in done.stdout
    assert "Traceback" not in done.stderr


def test_in_a_job_rank_0_reports_all_ranks(mpirun: Callable[..., Any]) -> None:
    done = mpirun(3, ["python", "-m", "rawcoll", "doctor"], check=True)
    assert done.stdout.count("software\n") == 1
    assert "MPI has 3 ranks" in done.stdout
    assert "ranks 0 1 2 on " in done.stdout


def test_a_variable_that_is_not_known_fails(mpirun: Callable[..., Any]) -> None:
    done = mpirun(2, ["python", "-m", "rawcoll", "doctor"], env={"RAWCOLL_NONE": "1"})
    assert done.returncode != 0
    assert "to mend: unset RAWCOLL_NONE" in done.stdout
    assert "Traceback" not in done.stderr

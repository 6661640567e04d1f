"""Running programs under mpirun from a test, with an end to every wait.

Which mpirun and which flags is launch/mpilaunch.py's knowledge.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import mpilaunch

ROOT = Path(__file__).resolve().parents[2]
DEFAULT_TIMEOUT_S = 120.0


class JobTimeout(AssertionError):
    """A job did not end within its time limit; the text holds what it had printed."""


def rank_environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return what ranks run with: no outer job's variables, one thread, argument checks on."""
    environment = mpilaunch.clean_environment(os.environ)
    environment |= {"OMP_NUM_THREADS": "1", "RAWCOLL_CHECK": "1"}
    # Unbuffered, one print() is several writes, and the lines of the ranks mix.
    environment.pop("PYTHONUNBUFFERED", None)
    environment["PYTHONPATH"] = os.pathsep.join(
        [str(ROOT / "tests"), *filter(None, [os.environ.get("PYTHONPATH")])]
    )
    return environment | dict(extra or {})


def mpirun(
    nranks: int,
    program: str | Path | Sequence[str | Path],
    *,
    timeout: float = DEFAULT_TIMEOUT_S,
    env: Mapping[str, str] | None = None,
    check: bool = False,
) -> subprocess.CompletedProcess[str]:
    """Run a program on ``nranks`` ranks and wait for all of them.

    Args:
        nranks: number of ranks.
        program: a script for this Python, or the whole command as a sequence (``"python"`` as
            its first word is this Python).
        timeout: seconds after which the whole process group is killed.
        env: variables to add for the ranks.
        check: fail the test when the exit status is not 0.

    Returns:
        The completed process: ``stdout`` and ``stderr`` as text, ``returncode``.

    Raises:
        JobTimeout: it ran longer than ``timeout``; with everything printed until then.
    """
    command = [*mpilaunch.mpirun_command(mpilaunch.find_mpirun(), nranks), *_words(program)]
    # Files, not pipes: what was printed survives the kill, and a stray grandchild holds no pipe.
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            env=rank_environment(env),
            cwd=ROOT,
            start_new_session=True,
        )
        try:
            process.wait(timeout)
            in_time = True
        except subprocess.TimeoutExpired:
            in_time = False
        finally:
            _kill_group(process)
            _remove_shared_memory()
        done = subprocess.CompletedProcess(command, process.returncode, _text(out), _text(err))
    if not in_time:
        raise JobTimeout(f"{describe(done)}\nthe job did not end within {timeout:g} s: killed")
    if check and done.returncode != 0:
        raise AssertionError(describe(done))
    return done


def describe(done: subprocess.CompletedProcess[str]) -> str:
    """Return command, exit status and output, for an assertion's message."""
    return (
        f"{shlex.join(done.args)}\nexit status {done.returncode}\n"
        f"--- stdout ---\n{done.stdout}--- stderr ---\n{done.stderr}"
    )


def _words(program: str | Path | Sequence[str | Path]) -> list[str]:
    words = [program] if isinstance(program, str | Path) else list(program)
    first = str(words[0])
    if first.endswith(".py"):
        return [sys.executable, *map(str, words)]
    return [sys.executable if first == "python" else first, *map(str, words[1:])]


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    """End mpirun and its children: first a request, which lets mpirun end ranks elsewhere."""
    for number, patience_s in ((signal.SIGTERM, 3.0), (signal.SIGKILL, 10.0)):
        if process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(patience_s)
    # mpirun may be gone and a rank still there.
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def _remove_shared_memory() -> None:
    """Remove the shared memory that MPICH leaves behind when its ranks are killed.

    A segment that some process has mapped belongs to a job that runs; so does one made just now.
    """
    segments = [file for file in Path("/dev/shm").glob("mpich_shm_*") if _is_stale(file)]
    if not segments:
        return
    mapped = ""
    for maps in Path("/proc").glob("[0-9]*/maps"):
        with contextlib.suppress(OSError):
            mapped += maps.read_text(errors="replace")
    for file in segments:
        if str(file) not in mapped:
            file.unlink(missing_ok=True)


def _is_stale(file: Path) -> bool:
    try:
        status = file.stat()
    except FileNotFoundError:
        return False
    return status.st_uid == os.geteuid() and time.time() - status.st_ctime > 2.0


def _text(file: tempfile._TemporaryFileWrapper[bytes]) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")

"""Ranks that fail, leave, die or never come: the others learn of it in time, with the reason."""

from __future__ import annotations

import textwrap
import time
from pathlib import Path

import pytest
from support.launcher import describe

HEAD = """
import os, signal, sys, threading, time
import numpy as np
import rawcoll

comm = rawcoll.init(timeout_s=LIMIT)
x = np.ones(1000)
comm.all_reduce(x)
print("started", flush=True)
comm.barrier()  # nobody ends the job before all have said so
"""


@pytest.fixture
def job(mpirun, tmp_path: Path):
    """``job(nranks, body, limit_s)``: run HEAD and the body; the outer limit is generous."""

    def run(nranks: int, body: str, limit_s: float = 2.0, **env: str):
        script = tmp_path / "script.py"
        script.write_text(HEAD.replace("LIMIT", str(limit_s)) + textwrap.dedent(body))
        started = time.monotonic()
        done = mpirun(nranks, script, timeout=90, env={"RAWCOLL_CHECK": "0", **env})
        assert done.stdout.count("started") == nranks, describe(done)
        done.took_s = time.monotonic() - started
        return done

    return run


TELL = """
def tell(call):
    started = time.monotonic()
    try:
        call()
        print("ended well")
    except rawcoll.CollectiveTimeout as error:
        took = time.monotonic() - started
        assert 1.9 < took < 8, took
        print("timeout:", error, "|", error.collective, error.round, error.peers, error.rank)
        sys.stdout.flush()
"""


NEVER_CALLED = {
    "comm.all_reduce(x, algorithm='ring')": "all_reduce",
    "comm.all_reduce(x)": "all_reduce",
    "comm.all_reduce(x, algorithm='ring', async_op=True).wait()": "all_reduce",
    "comm.broadcast(x, root=1)": "broadcast",
    "comm.barrier()": "barrier",
    "comm.recv(x, 1)": "point-to-point",
    "comm.plan('all_reduce', x, algorithm='ring').run()": "all_reduce",
    "comm.all_reduce(x, algorithm='builtin', async_op=True).wait()": "all_reduce",
}


@pytest.fixture(scope="module")
def told(mpirun, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What rank 0 tells of each call, made on a communicator of its own while rank 1 sleeps."""
    script = tmp_path_factory.mktemp("never") / "script.py"
    body = f"""
comms = [comm.split(0) for _ in range({len(NEVER_CALLED)})]
if comm.rank == 0:
    for comm, call in zip(comms, {list(NEVER_CALLED)!r}):
        print("call:", call)
        tell(lambda: eval(call))
        try:
            comm.barrier()
        except rawcoll.TransportError as error:
            print("afterwards:", error)
        comm.close()
    sys.stdout.flush()
    open("{script}.end", "w").close()
while not os.path.exists("{script}.end"):
    time.sleep(0.1)
os._exit(0)
"""
    script.write_text(HEAD.replace("LIMIT", "2") + TELL + body)
    done = mpirun(2, script, timeout=90, env={"RAWCOLL_CHECK": "0"})
    texts = [part.split("\n", 1) for part in done.stdout.split("call: ")[1:]]
    assert [call for call, _ in texts] == list(NEVER_CALLED), describe(done)
    return dict(texts)


@pytest.mark.parametrize(("call", "said"), NEVER_CALLED.items())
def test_a_rank_that_never_calls(told: dict[str, str], call: str, said: str) -> None:
    text = told[call]
    assert f"timeout: {said}: no progress: found 2 s without any on rank 0 in round 0" in text
    assert "not heard from: 1 |" in text
    assert f"| {said} 0 (1,) 0" in text or "builtin" in call
    assert f"afterwards: communicator: unusable: an earlier {said} failed" in text


def test_a_stream_that_stands_still(job) -> None:
    done = job(
        2,
        TELL
        + """
if comm.rank == 0:
    stream = rawcoll.Stream()
    comm.all_reduce(x, stream=stream, algorithm="ring")
    tell(stream.synchronize)
    os._exit(0)
time.sleep(5)
os._exit(0)
""",
    )
    assert "timeout: all_reduce: no progress" in done.stdout, describe(done)


def test_the_builtin_that_never_ends_ends_the_job(job) -> None:
    done = job(
        2,
        """
        if comm.rank == 0:
            comm.all_reduce(x, algorithm="builtin")
        time.sleep(60)
        """,
        RAWCOLL_DEBUG="WARN",
    )
    assert done.returncode != 0
    assert done.took_s < 40
    assert (
        "rank 0: builtin all_reduce: no end: found 2 s inside the library below" in done.stderr
    ), describe(done)


def test_a_close_that_not_all_ranks_make_ends_the_job(job) -> None:
    done = job(2, "comm.close() if comm.rank == 0 else time.sleep(60)")
    assert done.returncode != 0
    assert done.took_s < 40
    assert "rank 0: close: no end: found 2 s" in done.stderr, describe(done)


@pytest.mark.parametrize(
    "body",
    [
        """
        if comm.rank == 1:
            raise ValueError("only here")
        comm.all_reduce(x)
        """,
        """
        with comm:
            if comm.rank == 1:
                raise ValueError("only here")
            comm.all_reduce(x)
        """,
        """
        def work():
            raise ValueError("only here")
        if comm.rank == 1:
            thread = threading.Thread(target=work)
            thread.start()
            time.sleep(60)
        comm.all_reduce(x)
        """,
    ],
    ids=["plain", "with", "thread"],
)
def test_an_uncaught_exception_ends_the_job_and_is_seen(job, body: str) -> None:
    done = job(3, body, limit_s=60)
    assert done.returncode != 0, describe(done)
    assert done.took_s < 30, "waited for the time limit"
    assert "ValueError: only here" in done.stderr, describe(done)
    assert "Traceback (most recent call last)" in done.stderr


def test_exceptions_that_are_caught_end_nothing(job) -> None:
    done = job(
        2,
        """
        try:
            comm.all_reduce(x, op="none")
        except rawcoll.InvalidArgument:
            pass
        comm.all_reduce(x)
        comm.close()
        print("ended")
        """,
    )
    assert done.returncode == 0, describe(done)
    assert done.stdout.count("ended") == 2


def test_the_hook_of_before_still_runs_and_after_close_is_back(job) -> None:
    done = job(
        2,
        """
        comm.close()
        before = sys.excepthook
        sys.excepthook = lambda *args: print("mine first")
        comm = rawcoll.init(timeout_s=30)
        if comm.rank == 1:
            raise ValueError("seen by mine only")
        comm.barrier()
        """,
        limit_s=30,
    )
    assert done.returncode != 0
    assert "mine first" in done.stdout, describe(done)
    assert "rank 1: uncaught ValueError: seen by mine only; ending the job" in done.stderr


@pytest.mark.parametrize(("status", "expected"), [("0", 0), ("", 0)])
def test_an_orderly_exit_inside_with(job, status: str, expected: int) -> None:
    done = job(
        2, f"with comm:\n    comm.all_reduce(x)\n    print('leaving')\n    sys.exit({status})\n"
    )
    assert done.returncode == expected, describe(done)
    assert done.stdout.count("leaving") == 2
    assert "Traceback" not in done.stderr


def test_a_failing_exit_of_one_rank_inside_with_ends_the_job(job) -> None:
    done = job(
        2,
        """
        with comm:
            if comm.rank == 1:
                sys.exit(3)
            comm.all_reduce(x)
        """,
        limit_s=60,
    )
    assert done.returncode != 0
    assert done.took_s < 30, describe(done)
    assert "SystemExit: 3" in done.stderr, describe(done)


def test_sys_exit_of_one_rank_is_noticed_by_the_others(job) -> None:
    done = job(2, "sys.exit(3) if comm.rank == 1 else comm.all_reduce(x)")
    assert done.returncode != 0, describe(done)
    assert done.took_s < 40
    assert "rank 0" in done.stderr, describe(done)


def test_an_interrupt_ends_the_job(job) -> None:
    done = job(
        2,
        """
        if comm.rank == 1:
            threading.Timer(1, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        else:
            time.sleep(60)
        comm.all_reduce(x)
        """,
        limit_s=50,
    )
    assert done.returncode != 0, describe(done)
    assert done.took_s < 30, describe(done)
    assert "KeyboardInterrupt" in done.stderr, describe(done)


def test_a_caught_interrupt_leaves_an_unusable_communicator(job) -> None:
    done = job(
        2,
        """
        if comm.rank == 1:
            threading.Timer(1, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
            try:
                comm.all_reduce(x, algorithm="ring")
            except KeyboardInterrupt:
                print("interrupted")
            try:
                comm.all_reduce(x)
            except rawcoll.TransportError as error:
                print("afterwards:", error)
        sys.stdout.flush()
        time.sleep(2)
        os._exit(0)
        """,
        limit_s=50,
    )
    assert "interrupted" in done.stdout, describe(done)
    assert "afterwards: communicator: unusable: an earlier all_reduce failed" in done.stdout, (
        describe(done)
    )


def test_a_killed_rank_ends_or_fails_the_others(job) -> None:
    done = job(
        3,
        """
        if comm.rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        comm.all_reduce(x, algorithm="ring")
        print("went well")
        """,
        limit_s=5,
    )
    assert done.returncode != 0, describe(done)
    assert "went well" not in done.stdout
    assert done.took_s < 60


def test_abort_ends_the_job_from_one_rank(job) -> None:
    done = job(2, "comm.abort() if comm.rank == 1 else comm.all_reduce(x)", limit_s=60)
    assert done.returncode != 0
    assert done.took_s < 30, describe(done)


def test_one_of_several_works_fails_alone(job) -> None:
    """An error stays with its own communicator and Work."""
    done = job(
        2,
        TELL
        + """
other = comm.split(0)
if comm.rank == 0:
    broken = comm.all_reduce(x, algorithm="ring", async_op=True)
    for _ in range(20):
        assert (other.all_reduce(np.ones(50), async_op=True).wait() == 2).all()
    tell(broken.wait)
    assert (other.all_reduce(np.ones(50)) == 2).all()
    print("the other works")
else:
    for _ in range(20):
        other.all_reduce(np.ones(50), async_op=True).wait()
    time.sleep(2.5)
    other.all_reduce(np.ones(50))
sys.stdout.flush()
time.sleep(0.5)
os._exit(0)
""",
    )
    assert "timeout: all_reduce: no progress" in done.stdout, describe(done)
    assert "the other works" in done.stdout, describe(done)


def test_children_may_live(job) -> None:
    done = job(
        2,
        """
        import subprocess
        assert subprocess.run([sys.executable, "-c", "print('child')"]).returncode == 0
        comm.all_reduce(x)
        child = os.fork()
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)
        comm.all_reduce(x)
        comm.close()
        print("ended")
        """,
        limit_s=20,
    )
    assert done.returncode == 0, describe(done)
    assert done.stdout.count("ended") == 2

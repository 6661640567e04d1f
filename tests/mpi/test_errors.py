"""Bad input is refused with its reason before anything moves; ranks that differ are told apart.

After every refusal the arrays are as they were and the communicator works.
"""

from __future__ import annotations

import os
import re

from support.cases import each, mpi_cases, skip


def refused(comm, pattern, call, *untouched, kind="InvalidArgument"):
    """``call`` raises, with a message that matches, and has done nothing."""
    import numpy as np
    from support.expected import error_of

    before = [np.array(array) for array in untouched]
    error = error_of(call)
    assert type(error).__name__ == kind, repr(error)
    assert re.search(pattern, str(error)), f"{error} does not match {pattern}"
    for array, old in zip(untouched, before, strict=True):
        assert np.array(array).tobytes() == old.tobytes()
    assert comm.all_reduce(np.ones(3)).tolist() == [comm.nranks] * 3


def case_arrays(comm):
    import numpy as np

    x = np.arange(12.0)
    refused(comm, r"x: not contiguous: found strides \(16,\)", lambda: comm.all_reduce(x[::2]), x)
    square = np.arange(12.0).reshape(3, 4)
    refused(comm, "x: not contiguous", lambda: comm.all_reduce(square.T), square)
    frozen = np.arange(3.0)
    frozen.flags.writeable = False
    refused(comm, "x: read-only memory", lambda: comm.all_reduce(frozen), frozen)
    refused(comm, "x: read-only memory", lambda: comm.recv(frozen, 0), frozen)
    refused(comm, "out: read-only memory", lambda: comm.all_reduce(np.ones(3), frozen), frozen)
    refused(comm, r"x.dtype: unknown name: found 'complex128', expected one of bfloat16, float16",
            lambda: comm.all_reduce(np.ones(3, complex)))  # fmt: skip
    refused(comm, "x.dtype: unknown name: found 'bool'", lambda: comm.all_reduce(np.ones(3, bool)))
    refused(comm, "x.dtype: unknown name: found '>f4'", lambda: comm.all_reduce(np.ones(3, ">f4")))
    refused(comm, "x: not an array: found list", lambda: comm.all_reduce([1.0, 2.0]))
    refused(comm, "x: not an array: found NoneType", lambda: comm.broadcast(None))
    refused(comm, "x: not an array: found float", lambda: comm.all_reduce(1.5))
    # A read-only source is fine.
    assert comm.all_reduce(frozen, np.empty(3)).tolist() == [0, comm.nranks, 2 * comm.nranks]


def case_results(comm):
    import numpy as np

    n, x = comm.nranks, np.arange(6.0)
    x = np.arange(6.0 * n)
    refused(
        comm, rf"out: count: found 5, expected {6 * n}", lambda: comm.all_reduce(x, np.empty(5)), x
    )
    refused(comm, "out.dtype: found float32, expected float64 as in x",
            lambda: comm.all_reduce(x, np.empty(6 * n, "f4")), x)  # fmt: skip
    refused(comm, "out: overlaps x", lambda: comm.all_reduce(x[:-1], x[1:]), x)
    refused(comm, "out: overlaps x", lambda: comm.all_to_all(x, x), x)
    refused(comm, "out: overlaps x", lambda: comm.sendrecv(x, x, 0, 0), x)
    wide = np.arange(6.0 * n + 3)
    own = wide[6 * comm.rank + 1 : 6 * comm.rank + 7]
    refused(comm, f"out: overlaps x: .*out's part of rank {comm.rank}",
            lambda: comm.all_gather(own, wide[: 6 * n]), wide)  # fmt: skip
    refused(comm, "out: overlaps x", lambda: comm.reduce_scatter(wide[: 6 * n], own), wide)
    refused(comm, "codec, residual: found a value", lambda: comm.all_reduce(x, codec="int8"), x)
    refused(comm, "codec, residual: found a value", lambda: comm.all_reduce(x, residual=x), x)
    refused(
        comm, "stream: found int, expected rawcoll.Stream", lambda: comm.all_reduce(x, stream=0), x
    )


def case_residual_of_a_warm_call(comm):
    import numpy as np

    x = np.ones(5)
    for _ in range(3):
        comm.all_reduce(x, op="max")
    refused(comm, "codec, residual", lambda: comm.all_reduce(x, op="max", residual=x), x)


def case_names(comm):
    import numpy as np

    x = np.ones(4)
    refused(comm, "op: unknown name: found 'mean', expected one of avg, max, min, prod, sum",
            lambda: comm.all_reduce(x, op="mean"), x)  # fmt: skip
    refused(comm, "op: unknown name: found None", lambda: comm.all_reduce(x, op=None), x)
    refused(comm, r"op: unknown name: found \['sum'\]", lambda: comm.all_reduce(x, op=["sum"]), x)
    refused(comm, "algorithm: unknown name: found 'rings', expected one of .*doubling.*ring.*two_shot",
            lambda: comm.all_reduce(x, algorithm="rings"), x)  # fmt: skip
    refused(comm, "algorithm: wrong type: found int", lambda: comm.all_reduce(x, algorithm=3), x)
    refused(
        comm, "algorithm: wrong type: found list", lambda: comm.all_reduce(x, algorithm=["ring"]), x
    )
    refused(comm, "algorithm: ring does not offer the collective: found 'reduce'",
            lambda: comm.reduce(x, algorithm="ring"), x)  # fmt: skip
    refused(comm, "ring: parameter: unknown name: found 'parts'",
            lambda: comm.all_reduce(x, algorithm="ring(parts=2)"), x)  # fmt: skip
    refused(comm, "segments: out of range: found 0",
            lambda: comm.all_reduce(x, algorithm="ring(segments=0)"), x)  # fmt: skip
    refused(comm, "collective: unknown name: found 'allreduce', expected one of all_gather",
            lambda: comm.plan("allreduce", x), x)  # fmt: skip
    refused(comm, "graph: found True", lambda: comm.plan("all_reduce", x, graph=True), x)
    refused(
        comm,
        "plan: algorithm: found native steps",
        lambda: comm.plan("all_reduce", x, algorithm="builtin"),
        x,
    )
    refused(comm, r"nranks: too few|levels|too many|expected at",
            lambda: comm.all_reduce(x, algorithm="ring(order=0-1-2-3-4-5-6)"),
            x, kind="ScheduleError")  # fmt: skip
    refused(comm, "dtype: unknown name: found 'float7'", lambda: comm.empty(3, "float7"))


@each(root=[-1, 99, "0", None, 0.0])
def case_roots_and_peers(comm, root):
    import numpy as np

    x = np.ones(comm.nranks)
    for name in ("reduce", "broadcast", "gather", "scatter"):
        refused(comm, "^root: ", lambda name=name: getattr(comm, name)(x, root=root), x)
    refused(comm, "^peer: ", lambda: comm.send(x, root), x)
    refused(comm, "^peer: ", lambda: comm.recv(x, root), x)
    refused(comm, "^dst: ", lambda: comm.sendrecv(x, np.empty(1), root, 0), x)
    refused(comm, "^src: ", lambda: comm.sendrecv(x, np.empty(1), 0, root), x)


def case_counts(comm):
    import numpy as np

    n = comm.nranks
    x = np.ones(2 * n)
    refused(comm, r"^counts: found \[2\], expected" if n > 1 else "^counts: sum: found 7",
            lambda: comm.reduce_scatter(x, counts=[2] if n > 1 else [7]), x)  # fmt: skip
    refused(comm, "^counts: .*not negative", lambda: comm.reduce_scatter(x, counts=[-1] * n), x)
    refused(comm, f"^counts: sum: found {3 * n}, expected x's count {2 * n}",
            lambda: comm.reduce_scatter(x, counts=[3] * n), x)  # fmt: skip
    refused(comm, "^counts: found 7, expected integers", lambda: comm.all_gather(x, counts=7), x)
    refused(comm, "^counts: .*expected integers", lambda: comm.all_gather(x, counts=[0.5] * n), x)
    refused(comm, rf"^x: count: found {2 * n}, expected counts\[{comm.rank}\] = 1",
            lambda: comm.all_gather(x, counts=[1] * n), x)  # fmt: skip
    refused(comm, "send_counts, recv_counts: found one of them",
            lambda: comm.all_to_all(x, send_counts=[2] * n), x)  # fmt: skip
    refused(comm, "recv_counts: own part: found 1, expected",
            lambda: comm.all_to_all(x, send_counts=[2] * n, recv_counts=[1] * n), x)  # fmt: skip
    if n > 1:
        odd = np.ones(n + 1)
        for name in ("reduce_scatter", "all_to_all"):
            refused(comm, f"x: count: found {n + 1}, expected a multiple of {n} ranks",
                    lambda name=name: getattr(comm, name)(odd), odd)  # fmt: skip


def case_groups(comm):
    def nested():
        with comm.group(), comm.group():
            pass

    refused(comm, "group: nested", nested)


def case_use_after_close(comm):
    import numpy as np

    import rawcoll

    x, sub = np.ones(3), comm.split(0, comm.rank)
    sub.all_reduce(x)
    plan = sub.plan("all_reduce", x)
    plan.close()
    sub.close()
    sub.close()
    for call in (
        lambda: sub.all_reduce(x),
        lambda: sub.all_reduce(x, async_op=True),
        lambda: sub.all_reduce(x, stream=rawcoll.Stream()),
        lambda: sub.all_reduce(x, algorithm="builtin"),
        sub.barrier,
        lambda: sub.send(x, 0),
        lambda: sub.recv(x, 0),
        lambda: sub.sendrecv(x, np.empty(3), 0, 0),
        sub.group,
        lambda: sub.plan("all_reduce", x),
        lambda: sub.split(0, 0),
    ):
        refused(comm, r"communicator: closed: found a call after close\(\)", call, x)


def case_use_in_a_forked_child(comm):
    import warnings

    import numpy as np

    import rawcoll

    x, y = np.ones(3), np.ones(2)
    comm.all_reduce(y)
    read, write = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        answers = []
        for call in (lambda: comm.all_reduce(x), lambda: comm.all_reduce(y), comm.barrier,
                     lambda: comm.send(x, 0), comm.close, lambda: comm.split(0, 0)):  # fmt: skip
            try:
                call()
                answers.append("worked")
            except rawcoll.InvalidArgument as error:
                answers.append(str(error))
            except BaseException as error:
                answers.append(repr(error))
        try:
            with comm:
                pass
            with comm:
                raise SystemExit(3)
        except SystemExit:
            answers.append("left alone")
        os.write(write, "\n".join(answers).encode())
        os._exit(0)
    os.close(write)
    with open(read) as pipe:
        answers = pipe.read().splitlines()
    os.waitpid(child, 0)
    expected = "communicator: found a forked child, expected the process that made it"
    assert answers == [expected] * 6 + ["left alone"], answers
    assert comm.all_reduce(np.ones(3)).tolist() == [comm.nranks] * 3


def mismatch(comm, pattern, call):
    """Every rank gets the same message and can go on."""
    if os.environ["RAWCOLL_CHECK"] != "1":
        skip("only with RAWCOLL_CHECK=1")
    if comm.nranks == 1:
        skip("one rank agrees with itself")
    refused(comm, pattern, call, kind="RankMismatch")


@each(how=["call", "async", "stream", "plan"])
def case_different_counts(comm, how):
    import numpy as np

    import rawcoll

    x = np.ones(8 + (comm.rank == 1))
    call = {
        "call": lambda: comm.all_reduce(x),
        "async": lambda: comm.all_reduce(x, async_op=True),
        "stream": lambda: comm.all_reduce(x, stream=rawcoll.Stream()),
        "plan": lambda: comm.plan("all_reduce", x),
    }[how]
    rest = "rank 0" if comm.nranks == 2 else "ranks 0, 2"
    found = f"all_reduce: count differs: found 8 on {rest}.*, 9 on rank 1, expected the same"
    mismatch(comm, found, call)
    assert (x == 1).all()


def case_different_everything_else(comm):
    import numpy as np

    odd, x = comm.rank == 1, np.ones(8)
    mismatch(comm, "all_reduce: dtype differs: found float64 on .*, int64 on rank 1",
             lambda: comm.all_reduce(np.ones(8, "i8" if odd else "f8")))  # fmt: skip
    mismatch(comm, "all_reduce: op differs: found sum on .*, max on rank 1",
             lambda: comm.all_reduce(x, op="max" if odd else "sum"))  # fmt: skip
    mismatch(comm, r"algorithm differs: found ring\(segments=1\) on .*, tree\(segments=1\) on rank 1",
             lambda: comm.all_reduce(x, algorithm="tree" if odd else "ring"))  # fmt: skip
    mismatch(comm, "broadcast: root differs: found 0 on .*, 1 on rank 1",
             lambda: comm.broadcast(x, root=1 if odd else 0))  # fmt: skip
    mismatch(comm, "call: collective differs: found all_reduce on .*, broadcast on rank 1",
             lambda: comm.broadcast(x) if odd else comm.all_reduce(x))  # fmt: skip
    mismatch(comm, "call: collective differs: found barrier on .*, reduce on rank 1",
             lambda: comm.reduce(x) if odd else comm.barrier())  # fmt: skip
    mismatch(comm, "all_gather: counts differs|all_gather: count differs",
             lambda: comm.all_gather(np.ones(3 + odd)))  # fmt: skip
    order = "-".join(map(str, range(comm.nranks)))
    ordered = f"ring(segments=1,order={order})"
    mismatch(comm, rf"all_reduce: algorithm differs: found ring.segments=1. on .*order={order}.* on rank 1",
             lambda: comm.all_reduce(x, algorithm=ordered if odd else "ring(segments=1)"))  # fmt: skip
    assert (x == 1).all()


def case_all_to_all_counts_that_do_not_match(comm):
    import numpy as np

    n, odd = comm.nranks, comm.rank == 1
    sent, received = [2] * n, [2] * n
    if odd and n > 1:
        received[0] = 3
    mismatch(comm, "all_to_all: counts differ: found 2 sent by rank 0 to rank 1, which expected 3",
             lambda: comm.all_to_all(np.ones(2 * n), send_counts=sent, recv_counts=received))  # fmt: skip
    mismatch(comm, "all_to_all: counts differ: found 1 sent by rank 0 to rank 1, which expected 2",
             lambda: comm.all_to_all(np.ones((2 if odd else 1) * n)))  # fmt: skip


def case_a_long_algorithm_is_compared_too(comm):
    import numpy as np

    from rawcoll.algorithms import FunctionAlgorithm

    if comm.nranks > 1:
        skip("what matters is that its signature fits")
    long = FunctionAlgorithm(lambda rank, nranks, b: None, "n" * 5000)
    comm.all_reduce(np.ones(2), algorithm=long)


test_errors = mpi_cases(globals(), nranks=(1, 2, 3), case_timeout_s=30)
test_errors_unchecked = mpi_cases(
    globals(), nranks=(2,), case_timeout_s=30, env={"RAWCOLL_CHECK": "0"}
)

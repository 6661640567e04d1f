"""Every collective by every algorithm under mpirun, bit for bit against numpy."""

from __future__ import annotations

import itertools

from support.cases import each, mpi_cases, skip
from support.expected import DTYPES, OPS, REDUCING, UNEVEN, calls

ALGORITHMS = {
    "all_reduce": (
        *("auto", "builtin", "ring", "ring(segments=3)", "tree(segments=2)", "halving"),
        *("doubling", "direct", "direct(window=1)", "two_shot(segments=2)", "gather_reduce"),
    ),
    "reduce": ("auto", "builtin", "tree", "binomial", "direct"),
    "broadcast": ("auto", "builtin", "ring(segments=2)", "tree", "binomial", "direct"),
    "all_gather": ("auto", "builtin", "ring", "ring(segments=2)", "halving", "doubling", "direct"),
    "reduce_scatter": ("auto", "builtin", "ring", "ring(segments=3)", "halving", "direct"),
    "all_to_all": ("auto", "builtin", "direct", "direct(window=1)"),
    "gather": ("auto", "builtin", "binomial", "direct"),
    "scatter": ("auto", "builtin", "binomial", "direct"),
}
PAIRS = [(name, algorithm) for name, known in ALGORITHMS.items() for algorithm in known]


def check(comm, collective, algorithm, count, *args, **options):
    # Open MPI's vector code saturates sums of 8- and 16-bit integers.
    options["wraps"] = "builtin" not in algorithm
    given = calls(collective, comm.nranks, count, *args, **options)[comm.rank]
    given.check(getattr(comm, collective)(**given.arguments, algorithm=algorithm))


@each(pair=PAIRS)
def case_call(comm, pair):
    collective, algorithm = pair
    n, turns = comm.nranks, itertools.product(DTYPES, OPS if collective in REDUCING else ("sum",))
    turns = itertools.cycle(turns)
    for turn, count in enumerate([0, 1, n - 1, n, n + 1, 37, 3000] * 2):
        for _ in range(7):
            dtype, op = next(turns)
        check(
            comm, collective, algorithm, count, dtype, op,
            root=turn % n,
            uneven=collective in UNEVEN and turn % 3 != 0,
            in_place=turn % 2 == 0,
        )  # fmt: skip


@each(algorithm=["two_shot", "builtin"], dtype=DTYPES)
def case_dtype_and_op(comm, algorithm, dtype):
    for op, in_place in itertools.product(OPS, [True, False]):
        check(comm, "all_reduce", algorithm, 37, dtype, op, in_place=in_place)
        other = "builtin" if algorithm == "builtin" else "direct"
        check(comm, "reduce", other, 37, dtype, op, in_place=in_place, root=comm.nranks - 1)
        check(comm, "reduce_scatter", other, 9, dtype, op, in_place=in_place, uneven=True)


@each(in_place=[True, False])
def case_builtin_counts(comm, in_place):
    """Parts of nobody but one rank; a rank with an alias beside ranks without one is legal."""
    import numpy as np

    counts = [0] * (comm.nranks - 1) + [5]
    out, mine = np.full(5, -1), np.arange(counts[comm.rank])
    if in_place and comm.rank == comm.nranks - 1:
        out[:] = mine
        mine = out
    for algorithm in ("builtin", "direct"):
        comm.all_gather(mine, out, counts, algorithm=algorithm)
        assert out.tolist() == [0, 1, 2, 3, 4]


def case_barrier(comm):
    for algorithm in ("auto", "doubling", "direct", "builtin"):
        assert comm.barrier(algorithm=algorithm) is None


def case_barrier_waits_for_the_last(comm, mpi):
    import time

    if comm.rank == comm.nranks - 1:
        time.sleep(0.1)
    arrived = time.monotonic()
    comm.barrier()
    left = time.monotonic()
    assert min(mpi.allgather(left)) >= max(mpi.allgather(arrived))  # one machine, one clock


def case_new_arrays_have_the_documented_shape(comm):
    import numpy as np

    n = comm.nranks
    assert comm.all_gather(np.zeros((2, 3))).shape == (n, 2, 3)
    assert comm.all_gather(np.zeros(())).shape == (n,)
    assert comm.all_gather(np.zeros((2, 3)), counts=[6] * n).shape == (6 * n,)
    assert comm.reduce_scatter(np.zeros((n, 2, 3))).shape == (2, 3)
    assert comm.reduce_scatter(np.zeros((2 * n, 3))).shape == (2, 3)
    assert comm.reduce_scatter(np.zeros(6 * n), counts=[6] * n).shape == (6,)
    assert comm.all_to_all(np.zeros((n, 4))).shape == (n, 4)
    gathered = comm.gather(np.zeros((2, 3)), root=n - 1)
    assert gathered is None if comm.rank < n - 1 else gathered.shape == (n, 2, 3)
    assert comm.scatter(np.zeros((n, 4)), root=0).shape == (4,)
    scalar = np.array(comm.rank + 1.0)
    assert comm.all_reduce(scalar) is scalar
    assert scalar == n * (n + 1) / 2


def case_ranks_have_the_same_bits(comm, mpi):
    import numpy as np

    random = np.random.default_rng(comm.rank)
    values = (random.standard_normal(5000) * 10.0 ** random.integers(-9, 9, 5000)).astype("f4")
    values[::97] = np.nan
    values[5::89] = np.inf * (-1) ** comm.rank
    for algorithm in ALGORITHMS["all_reduce"]:
        if algorithm != "builtin":
            for op in ("sum", "min", "avg"):
                found = mpi.allgather(
                    comm.all_reduce(values.copy(), op=op, algorithm=algorithm).tobytes()
                )
                assert found == found[:1] * comm.nranks, (algorithm, op)


def case_the_transports_agree(comm):
    """MPI and in-process run the same schedule: the same bits, of inexact values too."""
    import numpy as np

    from rawcoll.comm.world import World

    inputs = [
        np.random.default_rng(r).standard_normal(700).astype("f4") for r in range(comm.nranks)
    ]
    for algorithm in ALGORITHMS["all_reduce"][2:]:
        here = World(comm.nranks).run("all_reduce", [{"x": x.copy()} for x in inputs], algorithm)
        found = comm.all_reduce(inputs[comm.rank].copy(), algorithm=algorithm)
        assert found.tobytes() == here[comm.rank].tobytes(), algorithm


@each(across=["ring", "builtin"])
def case_hierarchical(comm, across):
    if comm.nranks != 4:
        skip("levels are written for 4 ranks")
    others = () if across == "builtin" else ("all_gather", "reduce_scatter")
    for collective in ("all_reduce", "broadcast", *others):
        for count, root in ((0, 0), (1, 3), (37, 2), (3000, 1)):
            check(
                comm, collective, f"hierarchical(levels=0-1/2-3,across={across})", count, root=root
            )


def case_own_algorithm(comm):
    import numpy as np

    def everyone_to_everyone(rank, nranks, b):
        slots = [
            b.span(0) if r == rank else b.span(0, buffer=b.scratch(0, 1)) for r in range(nranks)
        ]
        for peer in range(nranks):
            if peer != rank:
                b.send(0, peer, b.span(0))
                b.recv(0, peer, slots[peer])
        if nranks > 1:
            b.reduce(0, slots, b.span(0), last=True)

    x = np.full(100, comm.rank + 1)
    comm.all_reduce(x, algorithm=everyone_to_everyone)
    assert (x == comm.nranks * (comm.nranks + 1) // 2).all()


def case_large_messages_travel_in_pieces(comm, mpi):
    import numpy as np

    from rawcoll.transport.mpi import MpiTransport
    from rawcoll.transport.wired import WiredTransport

    transport = MpiTransport(mpi.Dup(), max_message_nbytes=1000)
    x = np.arange(5001, dtype=np.uint16) + comm.rank
    y = np.zeros_like(x)
    ahead, behind = (comm.rank + 1) % comm.nranks, (comm.rank - 1) % comm.nranks
    message = (0, 0, x.nbytes, ahead), (1, 0, x.nbytes, behind)
    bases = [x.ctypes.data, y.ctypes.data]
    by_native_code = WiredTransport.over(transport, mpi.Dup(), shared_memory=False)
    for tag, through in enumerate((transport, by_native_code)):
        y[:] = 0
        pending = through.post(message[:1], message[1:], bases, tag)
        while not pending.test():
            pass
        assert y.tolist() == (np.arange(5001) + behind).tolist()
    by_native_code.close()


test_collectives = mpi_cases(globals(), nranks=(1, 2, 3, 4, 5))
test_collectives_over_mpi = mpi_cases(globals(), nranks=(2, 3), env={"RAWCOLL_SHM": "0"})

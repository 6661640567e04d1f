"""Communicators of some of the ranks, and of the caller's own MPI communicator."""

from __future__ import annotations

from support.cases import mpi_cases


def case_split_in_halves_with_reversed_keys(comm):
    import numpy as np

    part = comm.split(comm.rank % 2, -comm.rank)
    members = [r for r in reversed(range(comm.nranks)) if r % 2 == comm.rank % 2]
    assert (part.nranks, part.size) == (len(members), len(members))
    assert members[part.rank] == comm.rank
    assert part.all_gather(np.array(comm.rank)).tolist() == members
    assert part.broadcast(np.array(comm.rank), root=part.nranks - 1) == members[-1]
    for algorithm in ("ring", "tree", "builtin"):
        total = part.all_reduce(np.full(100, comm.rank), algorithm=algorithm)
        assert (total == sum(members)).all()
    part.close()


def case_equal_keys_keep_the_order(comm):
    part = comm.split(7)
    assert (part.rank, part.nranks) == (comm.rank, comm.nranks)
    part.close()


def case_without_a_color(comm):
    import numpy as np

    part = comm.split(None if comm.rank == 0 else 0)
    assert (part is None) == (comm.rank == 0)
    if part is not None:
        assert part.all_reduce(np.ones(2)).tolist() == [comm.nranks - 1] * 2
        part.close()
    assert comm.all_reduce(np.ones(2)).tolist() == [comm.nranks] * 2


def case_nested(comm):
    import numpy as np

    part, parts = comm, []
    while part.nranks > 1:
        part = part.split(part.rank // max(1, (part.nranks + 1) // 2), -part.rank)
        parts.append(part)
        assert part.all_reduce(np.ones(3)).tolist() == [part.nranks] * 3
    works = [c.all_reduce(np.ones(5), async_op=True) for c in (comm, *parts)]
    for c, work in zip((comm, *parts), works, strict=True):
        assert work.wait().tolist() == [c.nranks] * 5
    for c in reversed(parts):
        c.close()


def case_parent_and_part_in_flight_together(comm):
    import numpy as np

    part = comm.split(comm.rank // 2)
    size = len([r for r in range(comm.nranks) if r // 2 == comm.rank // 2])
    works = []
    for _ in range(10):
        works.append((comm.all_reduce(np.ones(200), async_op=True), comm.nranks))
        works.append((part.all_reduce(np.ones(100), async_op=True), size))
    for work, expected in reversed(works):
        assert (work.wait() == expected).all()
    part.close()


def case_many_communicators_with_own_operations(comm):
    """MPI's user-defined operations are few; each communicator uses them all."""
    import ml_dtypes
    import numpy as np

    for _ in range(5):
        part = comm.split(0)
        for dtype in (np.float16, ml_dtypes.bfloat16):
            for op in ("sum", "prod", "min", "max"):
                x = np.ones(3, dtype)
                part.all_reduce(x, op=op, algorithm="builtin")
                assert (x == (comm.nranks if op == "sum" else 1)).all()
        part.close()


def case_users_communicator(mpi):
    import numpy as np
    from support.expected import error_of

    import rawcoll

    reverse = mpi.Split(0, -mpi.rank)
    with rawcoll.init(mpi_comm=reverse) as comm:
        assert (comm.rank, comm.nranks) == (mpi.size - 1 - mpi.rank, mpi.size)
        # The caller's own traffic on its communicator and ours do not meet.
        request = reverse.irecv(source=(reverse.rank - 1) % mpi.size, tag=0)
        work = comm.all_reduce(np.full(10, comm.rank), async_op=True)
        reverse.send("mine", (reverse.rank + 1) % mpi.size, tag=0)
        assert request.wait() == "mine"
        assert (work.wait() == mpi.size * (mpi.size - 1) // 2).all()
    assert reverse.allreduce(1) == mpi.size
    reverse.Free()
    assert "closed" in str(error_of(comm.barrier))


def case_topology_and_device(comm):
    assert comm.device == "host"
    assert comm.topology.nodes == (tuple(range(comm.nranks)),)


test_subgroups = mpi_cases(globals(), nranks=(1, 2, 3, 5), case_timeout_s=30)

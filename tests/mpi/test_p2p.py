"""send, recv, sendrecv and groups."""

from __future__ import annotations

from support.cases import each, mpi_cases, skip
from support.expected import DTYPES


@each(dtype=DTYPES)
def case_ring_of_sendrecv(comm, dtype):
    from support.expected import assert_same_bits, values

    ahead, behind = (comm.rank + 1) % comm.nranks, (comm.rank - 1) % comm.nranks
    for count in (0, 1, 37, 70_000):
        x, out = values(count, dtype, "sum", comm.rank), values(count, dtype, "sum", 99)
        assert comm.sendrecv(x, out, ahead, behind) is out
        assert_same_bits(out, values(count, dtype, "sum", behind))


def case_send_and_recv(comm):
    import numpy as np

    if comm.rank == 0:
        for peer in range(1, comm.nranks):
            assert comm.send(np.arange(5) + peer, peer) is None
    else:
        x = np.zeros(5, int)
        assert comm.recv(x, 0) is x
        assert x.tolist() == [comm.rank + i for i in range(5)]


def case_messages_of_a_pair_arrive_in_order(comm):
    import numpy as np

    if comm.nranks < 2 or comm.rank > 1:
        return
    if comm.rank == 0:
        for i in range(50):
            comm.send(np.full(1 + i * 37, i), 1)
    else:
        for i in range(50):
            x = np.zeros(1 + i * 37, int)
            assert (comm.recv(x, 0) == i).all()


def case_group_of_all_to_all(comm):
    import numpy as np

    ranks = range(comm.nranks)
    out = np.full((comm.nranks, 1000), -1)
    x = np.arange(comm.nranks * 1000).reshape(-1, 1000) + 10**6 * comm.rank
    with comm.group():
        for peer in ranks:  # sends first on all ranks: only together do they end
            comm.send(x[peer], peer)
        for peer in ranks:
            assert comm.recv(out[peer], peer) is not None
        assert (out == -1).all(), "moved before the end of the group"
    for peer in ranks:
        assert (
            out[peer] == np.arange(comm.rank * 1000, comm.rank * 1000 + 1000) + 10**6 * peer
        ).all()


def case_message_to_self(comm):
    import numpy as np

    x, y = np.arange(100_000), np.zeros(100_000, int)
    with comm.group():
        comm.send(x, comm.rank)
        comm.recv(y, comm.rank)
    assert (x == y).all()
    y[:] = 0
    comm.sendrecv(x, y, comm.rank, comm.rank)
    assert (x == y).all()


def case_empty_messages_and_groups(comm):
    import numpy as np

    with comm.group():
        pass
    nothing = np.empty(0)
    comm.send(nothing, (comm.rank + 1) % comm.nranks)
    comm.recv(nothing, (comm.rank - 1) % comm.nranks)
    with comm.group():
        comm.send(nothing, 0)
        comm.recv(np.empty((0, 3)), comm.nranks - 1)


def case_group_that_raises_sends_nothing(comm):
    import numpy as np

    try:
        with comm.group():
            comm.send(np.ones(3), (comm.rank + 1) % comm.nranks)
            raise ValueError("changed my mind")
    except ValueError:
        pass
    out = np.zeros(3)
    comm.sendrecv(
        np.full(3, 7.0), out, (comm.rank + 1) % comm.nranks, (comm.rank - 1) % comm.nranks
    )
    assert out.tolist() == [7.0] * 3


def case_beside_collectives_in_flight(comm):
    import numpy as np

    work = comm.all_reduce(np.ones(5000), algorithm="ring", async_op=True)
    out = np.zeros(10)
    ahead, behind = (comm.rank + 1) % comm.nranks, (comm.rank - 1) % comm.nranks
    comm.sendrecv(np.full(10, float(comm.rank)), out, ahead, behind)
    assert (out == behind).all()
    assert (work.wait() == comm.nranks).all()


def case_different_number_of_messages_a_rank(comm):
    """Point-to-point calls do not count as collective calls."""
    import numpy as np

    if comm.nranks < 2:
        skip("needs a peer")
    if comm.rank == 0:
        for _ in range(3):
            comm.send(np.ones(2), 1)
    if comm.rank == 1:
        for _ in range(3):
            comm.recv(np.empty(2), 0)
    assert comm.all_reduce(np.ones(2)).tolist() == [comm.nranks] * 2


def case_groups_of_two_threads_do_not_mix(comm):
    import threading

    import numpy as np

    if comm.nranks != 2:
        skip("written for two ranks")
    other, failed, inside, leave = comm.split(0), [], threading.Event(), threading.Event()

    def hold_a_group_open():
        try:
            with comm.group():
                inside.set()
                leave.wait(20)
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=hold_a_group_open)
    thread.start()
    inside.wait(20)
    out = np.zeros(3)
    comm.sendrecv(np.full(3, comm.rank + 1.0), out, 1 - comm.rank, 1 - comm.rank)
    arrived = out.tolist()
    leave.set()
    thread.join()
    other.close()
    assert not failed, failed
    assert arrived == [2.0 - comm.rank] * 3


test_p2p = mpi_cases(globals(), nranks=(1, 2, 3), case_timeout_s=30)
test_p2p_over_mpi = mpi_cases(globals(), nranks=(3,), env={"RAWCOLL_SHM": "0"})

"""Calls in flight: many at once, in any order, in streams, on several communicators, bound plans."""

from __future__ import annotations

import os

from support.cases import each, mpi_cases, skip


def skip_if_calls_block():
    """RAWCOLL_CHECK compares at the call: ranks that call in different orders wait for each other."""
    if os.environ["RAWCOLL_CHECK"] == "1":
        skip("the comparison of signatures blocks at the call")


def total(comm, value=1):
    return value * comm.nranks * (comm.nranks + 1) // 2


@each(algorithm=["auto", "ring(segments=2)", "tree", "halving", "builtin"])
def case_many_in_flight_completed_in_any_order(comm, algorithm):
    import random

    import numpy as np

    arrays = [np.full(10 + 300 * i, (i + 1) * (comm.rank + 1)) for i in range(24)]
    works = [comm.all_reduce(x, algorithm=algorithm, async_op=True) for x in arrays]
    order = list(range(24))
    random.Random(comm.rank).shuffle(order)  # another one on every rank
    for i in order:
        assert works[i].wait() is arrays[i]
        assert (arrays[i] == total(comm, i + 1)).all()
        assert works[i].done()
        assert works[i].wait() is works[i].synchronize() is works[i].result is arrays[i]


def case_different_collectives_in_flight_beside_blocking_ones(comm):
    import numpy as np

    n, r = comm.nranks, comm.rank
    one = comm.all_gather(np.full(3, r), async_op=True)
    two = comm.reduce_scatter(np.arange(2 * n), op="max", async_op=True)
    three = comm.broadcast(np.full(4, r), root=n - 1, async_op=True)
    assert comm.all_reduce(np.ones(5)).tolist() == [n] * 5
    four = comm.all_to_all(np.arange(n) + 10 * r, async_op=True)
    five = comm.gather(np.full(2, r), root=0, async_op=True)
    six = comm.scatter(np.arange(n) * 3, root=0, async_op=True)
    comm.barrier()
    assert six.wait().tolist() == 3 * r  # one element each: 0-d
    assert four.wait().tolist() == [r + 10 * peer for peer in range(n)]
    gathered = five.wait()
    assert gathered is None if r else gathered.tolist() == [[p, p] for p in range(n)]
    assert three.wait().tolist() == [n - 1] * 4
    assert two.wait().tolist() == [2 * r, 2 * r + 1]
    assert one.wait().tolist() == [[p] * 3 for p in range(n)]


def case_work_proceeds_without_the_caller(comm):
    """In the background: no rank waits, all come to an end."""
    import time

    import numpy as np

    x = np.full(50_000, comm.rank + 1)
    work = comm.all_reduce(x, algorithm="ring(segments=2)", async_op=True)
    deadline = time.monotonic() + 30
    while not work.done():
        assert time.monotonic() < deadline, "no progress in the background"
        time.sleep(0.001)
    assert (x == total(comm)).all()
    work.wait()


@each(algorithm=["auto", "builtin"])
def case_communicators_in_opposite_orders(comm, algorithm):
    import numpy as np

    skip_if_calls_block()
    other = comm.split(0, comm.rank)
    for _ in range(5):
        x, y = np.full(2000, comm.rank + 1), np.full(3000, 2 * comm.rank + 2)
        order = [(comm, x), (other, y)]
        if comm.rank % 2:
            order.reverse()
        works = [c.all_reduce(array, algorithm=algorithm, async_op=True) for c, array in order]
        for work in works if comm.rank % 3 else reversed(works):
            work.wait()
        assert (x == total(comm)).all()
        assert (y == total(comm, 2)).all()
    other.close()


def case_blocking_call_beside_one_in_flight_elsewhere(comm):
    """The call on the other communicator ends although the one in flight cannot yet."""
    import numpy as np

    skip_if_calls_block()
    other = comm.split(0, comm.rank)
    x = np.full(100, comm.rank + 1)
    work = comm.all_reduce(x, async_op=True) if comm.rank else None
    assert other.all_reduce(np.ones(3)).tolist() == [comm.nranks] * 3
    if work is None:
        work = comm.all_reduce(x, async_op=True)
    assert (work.wait() == total(comm)).all()
    other.close()


def case_threads_with_a_communicator_each(comm):
    import threading

    import numpy as np

    comms, failed = [comm.split(0, comm.rank) for _ in range(3)], []

    def run(mine, value):
        try:
            for i in range(30):
                x = np.full(1 + 97 * i, value * (mine.rank + 1))
                if i % 3:
                    mine.all_reduce(x)
                else:
                    mine.all_reduce(x, async_op=True).wait()
                assert (x == total(mine, value)).all()
        except BaseException as error:
            failed.append(repr(error))

    threads = [threading.Thread(target=run, args=(c, 1 + i)) for i, c in enumerate(comms)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed, failed
    for mine in comms:
        mine.close()


def case_stream_orders_host_functions_and_collectives(comm):
    import time

    import numpy as np

    from rawcoll import Stream

    stream, x, log = Stream(), np.zeros(1000, int), []

    def fill():
        time.sleep(0.005 * comm.rank)
        x[:] = comm.rank + 1
        log.append("filled")

    stream.launch(fill)
    assert comm.all_reduce(x, stream=stream) is x
    stream.launch(lambda: log.append(int(x[0])))
    comm.all_reduce(x, stream=stream)
    stream.synchronize()
    assert log == ["filled", total(comm)]
    assert (x == total(comm) * comm.nranks).all()


def case_work_in_a_stream_waits_for_what_is_before_it(comm):
    import numpy as np

    from rawcoll import Stream

    stream, x = Stream(), np.zeros(1000, int)
    stream.launch(lambda: x.fill(comm.rank + 1))
    assert (comm.all_reduce(x, stream=stream, async_op=True).wait() == total(comm)).all()
    stream.launch(lambda: x.fill(2 * comm.rank + 2))
    work = comm.all_reduce(x, stream=stream, async_op=True, algorithm="builtin")
    assert (work.wait() == total(comm, 2)).all()


def case_events_join_streams(comm):
    import numpy as np

    from rawcoll import Event, Stream

    produce, reduce, x = Stream(), Stream(), np.zeros(500, int)
    for step in range(5):
        produce.launch(lambda step=step: x.fill((step + 1) * (comm.rank + 1)))
        reduce.wait_event(produce.record_event())
        comm.all_reduce(x, stream=reduce)
        done = Event()
        done.record(reduce)
        produce.wait_event(done)
        if step % 2:
            done.synchronize()
            assert done.query()
            assert (x == total(comm, step + 1)).all()
    reduce.synchronize()
    assert (x == total(comm, 5)).all()


def case_streams_run_side_by_side(comm):
    """A stream that is held up does not hold up another; opposite orders on the ranks."""
    import numpy as np

    from rawcoll import Stream

    one, two, gate = Stream(), Stream(), Stream()
    x, y = np.full(100, comm.rank + 1), np.full(100, comm.rank + 1)
    opened = []
    gate.launch(lambda: opened.append(1))
    one.wait_event(gate.record_event())
    first = comm.all_reduce(x, stream=one, async_op=True)
    second = comm.all_reduce(y, stream=two, async_op=True)
    assert (second.wait() == total(comm)).all()
    assert (first.wait() == total(comm)).all()
    assert opened == [1]


def case_work_keeps_arrays_until_the_end(comm):
    import gc
    import time
    import weakref

    import numpy as np

    class Array(np.ndarray):
        pass

    def collected(reference):
        deadline = time.monotonic() + 10
        while reference() is not None and time.monotonic() < deadline:
            gc.collect()
            time.sleep(0.001)
        return reference() is None

    x, out = np.full(5000, comm.rank + 1).view(Array), np.zeros(5000, int).view(Array)
    source, target = weakref.ref(x), weakref.ref(out)
    if comm.rank == comm.nranks - 1 and comm.nranks > 1:
        time.sleep(0.02)
    work = comm.all_reduce(x, out, algorithm="ring", async_op=True)
    del x
    assert work.done() or source() is not None
    assert (work.wait() == total(comm)).all()
    assert collected(source), "a finished Work holds its source"
    del out
    assert target() is not None
    work = None
    assert collected(target), "a dropped Work holds its result"
    # One that nobody holds runs to its end.
    comm.all_reduce(np.full(5000, 1).view(Array), algorithm="ring", async_op=True)
    comm.barrier()


def case_plan_runs_many_times(comm):
    import numpy as np

    x = np.zeros(1000, int)
    with comm.plan("all_reduce", x, algorithm="ring(segments=2)") as plan:
        for i in range(20):
            x[:] = (i + 1) * (comm.rank + 1)
            found = plan.run() if i % 2 else plan.start().wait()
            assert found is x
            assert (x == total(comm, i + 1)).all()
            assert plan.done()


def case_plan_refuses_a_start_too_many(comm):
    import numpy as np
    from support.expected import error_of

    x = np.full(100, comm.rank + 1)
    plan = comm.plan("all_reduce", x)
    plan.start()
    for attempt in (plan.start, plan.run):
        assert "plan: active: found a start" in str(error_of(attempt))
    assert (plan.wait() == total(comm)).all()
    plan.close()
    plan.close()
    assert "plan: closed: found a start after close()" in str(error_of(plan.start))


def case_several_plans_and_calls_in_flight(comm):
    import numpy as np

    arrays = [np.zeros(50 + i, int) for i in range(4)]
    plans = [comm.plan("all_reduce", x, op="max") for x in arrays]
    for step in range(6):
        for i, x in enumerate(arrays):
            x[:] = comm.rank + step * i
        order = range(4) if comm.rank % 2 else reversed(range(4))
        for i in order:
            plans[i].start()
        work = comm.all_reduce(np.ones(9), async_op=True)
        assert comm.all_reduce(np.ones(3)).tolist() == [comm.nranks] * 3
        for i, plan in enumerate(plans):
            assert (plan.wait() == comm.nranks - 1 + step * i).all()
        assert (work.wait() == comm.nranks).all()
    for plan in plans:
        plan.close()


@each(
    collective=[
        "reduce",
        "broadcast",
        "all_gather",
        "reduce_scatter",
        "all_to_all",
        "gather",
        "scatter",
    ]
)
def case_plan_of(comm, collective):
    from support.expected import calls

    given = calls(collective, comm.nranks, 37, root=0)[comm.rank]
    arguments = dict(given.arguments)
    before = None if arguments["x"] is None else arguments["x"].copy()
    plan = comm.plan(collective, arguments.pop("x"), **arguments)
    for _ in range(3):
        if before is not None:
            given.arguments["x"][:] = before
        given.check(plan.run())
    plan.close()


def case_plan_dropped_while_it_runs(comm):
    import gc

    import numpy as np

    comm.plan("all_reduce", np.full(20_000, 1.0), algorithm="ring").start()
    gc.collect()
    x = np.full(20_000, comm.rank + 1)
    comm.all_reduce(x)
    assert (x == total(comm)).all()


def case_warm_calls_change_arrays_sizes_and_ops(comm):
    import numpy as np

    for i in range(200):
        x = np.full(1 + i % 5, (i + comm.rank) % 7, "f4")
        op = ("sum", "max")[i % 2]
        comm.all_reduce(x, op=op)
        values = [(i + r) % 7 for r in range(comm.nranks)]
        assert (x == (sum(values) if op == "sum" else max(values))).all()


def case_caches_stay_bounded(comm):
    import numpy as np

    for count in range(1, 700):
        comm.all_reduce(np.ones(count, np.uint8), op="max", algorithm="direct")
    assert len(comm._planner._plans._entries) <= 512
    assert len(comm._warm) <= 256


test_async = mpi_cases(globals(), nranks=(1, 3), case_timeout_s=30)
test_async_unchecked = mpi_cases(
    globals(), nranks=(1, 2, 4), case_timeout_s=30, env={"RAWCOLL_CHECK": "0"}
)
test_async_over_mpi = mpi_cases(
    globals(), nranks=(3,), env={"RAWCOLL_SHM": "0", "RAWCOLL_CHECK": "0"}
)

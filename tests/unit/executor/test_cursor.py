"""The cursor: order, errors, callbacks, restarting; on transports and kernels that fail on demand."""

from __future__ import annotations

import gc
import threading
import weakref

import numpy as np
import pytest

from rawcoll.comm.queued import Queued, ThroughStream
from rawcoll.device.host import Stream
from rawcoll.errors import TransportError
from rawcoll.executor.cursor import Cursor
from rawcoll.executor.plan import Plan
from rawcoll.executor.table import Kernel, LocalRow, Table, WireRow
from rawcoll.executor.walk import PythonWalk
from rawcoll.executor.work import Work
from rawcoll.kernels.fallback import NumpyKernels
from rawcoll.transport.inproc import Switch
from rawcoll.types import DTYPES, Op


class FailingKernels(NumpyKernels):
    def copy(self, *args: object) -> None:
        raise MemoryError("kernel")


class FailingTransport:
    rank, nranks, wires = 0, 2, None

    def __init__(self, when: str) -> None:
        self.when = when

    def post(self, *args: object) -> FailingTransport:
        if self.when == "post":
            raise TransportError("post")
        return self

    def test(self) -> bool:
        raise TransportError("test")

    def missing(self) -> tuple[int, ...]:
        return (1,)


SEND = WireRow(0, 0, ((0, 0, 8, 1),), (), None)
RECV = WireRow(0, 0, (), ((1, 0, 8, 0),), None)
COPY = LocalRow(1, Kernel.COPY, (1, 0), ((0, 0),), 1)


def plan(wire: tuple[WireRow, ...] = (), local: tuple[LocalRow, ...] = ()) -> Plan:
    return Plan.of("test", Table(wire, local), DTYPES["float64"], Op.SUM, 2)


def walk(
    arrays: tuple[np.ndarray, ...],
    *args: object,
    transport: object = None,
    kernels: object = None,
) -> PythonWalk:
    transport, kernels = transport or Switch(2).transport(0), kernels or NumpyKernels()
    made = PythonWalk(plan(*args), transport, kernels)
    made.place([array.ctypes.data for array in arrays])
    return made


def cursor(*args: object, transport: object = None, kernels: object = None) -> Cursor:
    x, y = np.ones(1), np.zeros(1)
    made = Cursor(walk((x, y), *args, transport=transport, kernels=kernels), 0)
    made.arrays = (x, y)  # type: ignore[attr-defined]
    return made


def test_nothing_to_do_is_finished_and_calls_back_at_once() -> None:
    found: list[object] = []
    empty = cursor()
    assert empty.finished
    empty.when_finished(found.append)
    assert found == [None]
    assert not empty.step()


def test_a_message_needs_both_ends_and_a_kernel_waits_for_its_message() -> None:
    switch = Switch(2)
    one, two = (
        cursor((SEND,), transport=switch.transport(0)),
        cursor(
            (RECV,),
            (LocalRow(1, Kernel.COPY, (0, 0), ((1, 0),), 1),),
            transport=switch.transport(1),
        ),
    )
    two.arrays[0][:] = 5
    assert one.step()
    assert not one.step()
    assert (one.missing, one.round) == ((1,), 0)
    assert two.step()
    assert two.finished
    assert two.arrays[0][0] == 1
    assert one.step()
    assert one.finished
    assert (one.missing, one.round) == ((), None)


@pytest.mark.parametrize("when", ["post", "test"])
def test_an_error_of_the_transport_ends_this_cursor_only(when: str) -> None:
    broken, found = cursor((SEND,), transport=FailingTransport(when)), []
    broken.when_finished(found.append)
    assert broken.step()
    assert broken.finished
    assert isinstance(broken.error, TransportError)
    assert found == [broken.error]
    assert not broken.step()


def test_an_error_of_a_kernel_is_kept_and_reaches_the_work() -> None:
    local = (LocalRow(0, Kernel.COPY, (1, 0), ((0, 0),), 1),)
    broken = cursor((), local, kernels=FailingKernels())

    def wait(found: Cursor) -> None:
        found.step()
        if found.error is not None:
            raise found.error

    work = Work(broken, "result", wait, None)
    assert not work.done()
    with pytest.raises(MemoryError, match="kernel"):
        work.wait()
    assert work.done()


def test_failing_from_outside_happens_once() -> None:
    waiting, found = cursor((SEND,)), []
    waiting.when_finished(found.append)
    waiting.step()
    first, second = ValueError("first"), ValueError("second")
    waiting.fail(first)
    waiting.fail(second)
    assert found == [first]
    assert waiting.error is first


def test_it_waits_for_the_cursor_before_it() -> None:
    before = cursor((SEND,))
    x, y = np.ones(1), np.zeros(1)
    local = (LocalRow(0, Kernel.COPY, (1, 0), ((0, 0),), 1),)
    after = Cursor(walk((x, y), (), local), 0, before)
    assert not after.step()
    before.fail(ValueError())
    assert after.step()
    assert y[0] == 1


def test_callbacks_registered_while_another_thread_finishes_are_never_lost() -> None:
    local = (LocalRow(0, Kernel.COPY, (1, 0), ((0, 0),), 1),)
    for _ in range(300):
        one, found = cursor((), local), []
        thread = threading.Thread(target=one.step)
        thread.start()
        one.when_finished(found.append)
        thread.join()
        assert found == [None]


def test_a_work_lets_go_of_what_it_kept_at_the_end() -> None:
    local = (LocalRow(0, Kernel.COPY, (1, 0), ((0, 0),), 1),)
    one, array = cursor((), local), np.ones(10)
    reference = weakref.ref(array)
    work = Work(one, None, lambda found: None, array)
    del array
    gc.collect()
    assert reference() is not None
    one.step()
    gc.collect()
    assert reference() is None
    assert work.done()


def test_restarted_it_runs_again() -> None:
    local = (LocalRow(0, Kernel.COPY, (1, 0), ((0, 0),), 1),)
    one = cursor((), local)
    for value in (3.0, 4.0):
        one.arrays[0][:] = value
        one.step()
        assert one.finished
        assert one.arrays[1][0] == value
        one.restart(7)
        assert not one.finished


def test_in_a_stream_the_time_limit_begins_with_its_turn_and_its_error_is_the_streams() -> None:
    now = [0.0]
    one, stream = cursor((SEND,)), Stream()
    gate = threading.Event()
    late = TransportError("too late")
    queued = Queued(one, 5.0, lambda: one.fail(late), lambda: now[0])

    class Gate:
        @property
        def finished(self) -> bool:
            return gate.is_set()

        def step(self) -> bool:
            return False

    stream.enqueue(Gate())
    stream.enqueue(queued)
    through = ThroughStream(stream, one)
    now[0] = 100.0
    assert not through.step()
    gate.set()
    through.step()
    for now[0] in (100.0, 104.0):
        through.step()
        assert not through.finished
    now[0] = 105.5
    through.step()
    assert through.finished
    assert one.error is late
    with pytest.raises(TransportError, match="too late"):
        stream.synchronize()

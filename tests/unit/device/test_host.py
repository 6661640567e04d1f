"""Stream, Event and Memory on the host."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from rawcoll.device.host import ALIGNMENT, Event, Memory, Stream


def test_functions_run_in_order_when_the_stream_is_synchronized() -> None:
    stream, log = Stream(), []
    for i in range(5):
        stream.launch(lambda i=i: log.append(i))
    assert (log, stream.finished) == ([], False)
    stream.synchronize()
    assert (log, stream.finished) == ([0, 1, 2, 3, 4], True)


def test_an_event_is_complete_until_it_is_recorded_and_marks_one_point() -> None:
    stream, event, log = Stream(), Event(), []
    assert event.query()
    event.synchronize()
    stream.launch(lambda: log.append(1))
    event.record(stream)
    stream.launch(lambda: log.append(2))
    event.synchronize()
    assert log[:1] == [1]
    assert event.query()
    event.record()
    assert event.query(), "the calling thread is never behind"


def test_asking_an_event_again_and_again_comes_to_an_end() -> None:
    stream, log = Stream(), []
    stream.launch(lambda: log.append(1))
    event = stream.record_event()
    assert any(event.query() for _ in range(3))
    assert log == [1]


def test_a_stream_waits_for_an_event_of_another_that_nobody_else_steps() -> None:
    one, two, log = Stream(), Stream(), []
    one.launch(lambda: log.append("one"))
    two.wait_event(one.record_event())
    two.launch(lambda: log.append("two"))
    two.synchronize()
    assert log == ["one", "two"]


def test_waiting_is_for_the_state_at_the_time_of_the_call() -> None:
    one, two, event, log = Stream(), Stream(), Event(), []
    event.record(one)
    two.wait_event(event)
    one.launch(lambda: log.append("later"))
    event.record(one)
    two.launch(lambda: log.append("not held up"))
    two.synchronize()
    assert "not held up" in log


def test_a_chain_over_three_streams_both_ways() -> None:
    streams, log = [Stream() for _ in range(3)], []
    for lap in range(3):
        for i, stream in enumerate(streams):
            stream.launch(lambda lap=lap, i=i: log.append((lap, i)))
            streams[(i + 1) % 3].wait_event(stream.record_event())
    streams[0].synchronize()
    assert log == sorted(log)
    assert len(log) == 9


def test_an_exception_is_raised_once_by_synchronize_and_the_stream_goes_on() -> None:
    stream, log = Stream(), []
    stream.launch(lambda: 1 / 0)
    stream.launch(lambda: log.append("after"))
    with pytest.raises(ZeroDivisionError):
        stream.synchronize()
    assert log == ["after"]
    stream.synchronize()


def test_an_event_raises_what_went_wrong_before_it() -> None:
    stream = Stream()
    stream.launch(lambda: 1 / 0)
    event = stream.record_event()
    with pytest.raises(ZeroDivisionError):
        event.synchronize()
    stream.synchronize()


def test_whoever_steps_for_others_does_not_see_their_exceptions() -> None:
    broken, stream, log = Stream(), Stream(), []
    broken.launch(lambda: 1 / 0)
    stream.wait_event(broken.record_event())
    stream.launch(lambda: log.append(1))
    stream.synchronize()
    assert log == [1]
    with pytest.raises(ZeroDivisionError):
        broken.synchronize()


def test_a_function_may_use_its_own_stream() -> None:
    stream, log = Stream(), []
    stream.launch(lambda: stream.launch(lambda: log.append("inner")))
    stream.synchronize()
    assert log == ["inner"]


def test_many_threads_may_enqueue_and_step() -> None:
    stream, log = Stream(), []

    def work(number: int) -> None:
        for i in range(200):
            stream.launch(lambda i=i: log.append((number, i)))
            stream.step()
        stream.synchronize()

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    stream.synchronize()
    assert len(log) == 800
    for number in range(4):
        assert [i for n, i in log if n == number] == list(range(200))


@pytest.mark.parametrize("nbytes", [0, 1, 63, 64, 1000])
def test_memory_is_aligned_and_kept_by_its_arrays(nbytes: int) -> None:
    memory = Memory(nbytes)
    assert memory.address % ALIGNMENT == 0
    array = memory.array(np.dtype(np.uint8), nbytes)
    assert array.ctypes.data == memory.address or nbytes == 0
    del memory
    array[:] = 7
    assert (array == 7).all()

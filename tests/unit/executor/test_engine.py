"""The engine: whose task moves when, time limits by an injected clock, races with its thread."""

from __future__ import annotations

import threading
import time

import pytest

from rawcoll.device.host import Stream
from rawcoll.executor.engine import Engine


class Countdown:
    """A task of some steps."""

    def __init__(self, steps: int) -> None:
        self.left = steps

    @property
    def finished(self) -> bool:
        return self.left <= 0

    def step(self) -> bool:
        self.left -= 1
        return True


class Stuck:
    finished = False
    steps = 0

    def step(self) -> bool:
        self.steps += 1
        return False


class Clock:
    """Goes on by a second whenever it is looked at."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 1.0
        return self.now


def until(condition, limit_s: float = 10.0) -> None:
    deadline = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline, "not reached"
        time.sleep(0.0005)


def test_a_caller_drives_its_task_to_the_end() -> None:
    task = Countdown(1000)
    assert Engine().drive(task, 5)
    assert task.finished


def test_a_stuck_task_is_given_up_at_the_limit_and_not_before() -> None:
    clock = Clock()
    assert not Engine(clock).drive(Stuck(), 30)
    assert 30 <= clock.now <= 33


def test_every_movement_starts_the_limit_anew() -> None:
    clock = Clock()

    class Slow(Countdown):
        idle = 0

        def step(self) -> bool:
            self.idle += 1
            if self.idle % 3000:
                return False
            return super().step()

    assert Engine(clock).drive(Slow(20), 30)
    assert clock.now > 60


def test_a_blocked_caller_moves_what_others_wait_for() -> None:
    engine, other = Engine(), Countdown(10)

    class AfterOther:
        @property
        def finished(self) -> bool:
            return other.finished

        def step(self) -> bool:
            return False

    engine._tasks.append(other)  # under way; no thread is there to step it
    assert engine.drive(AfterOther(), 5)


def test_submitted_tasks_end_in_the_background() -> None:
    engine = Engine()
    tasks = [Countdown(50) for _ in range(20)]
    for task in tasks:
        engine.submit(task)
    until(lambda: all(task.finished for task in tasks) and not engine._tasks)
    again = Countdown(5)
    engine.submit(again)
    until(lambda: again.finished)


def test_naps_grow_and_start_small_again() -> None:
    naps: list[float] = []
    stuck, gate = Stuck(), threading.Event()

    def nap(seconds: float) -> None:
        naps.append(seconds)
        if len(naps) >= 10:
            stuck.finished = True
            gate.wait(10)

    engine = Engine(nap=nap)
    engine.submit(stuck)
    until(lambda: len(naps) >= 10)
    gate.set()
    assert naps[0] == 20e-6
    assert naps[:10] == sorted(naps[:10])
    assert max(naps[:10]) == 300e-6


def test_a_stream_that_gets_more_while_it_is_dropped_is_not_forgotten() -> None:
    """Enqueue and submit between the engine's last step and its look at ``finished``."""
    engine, log = Engine(nap=lambda seconds: None), []
    stream = Stream()
    for i in range(3000):
        stream.launch(lambda i=i: log.append(i))
        engine.submit(stream)
    until(lambda: len(log) == 3000)
    assert log == list(range(3000))


def test_an_exception_in_a_stream_does_not_end_the_engine() -> None:
    engine, stream, after = Engine(), Stream(), Countdown(3)
    stream.launch(lambda: 1 / 0)
    engine.submit(stream)
    until(lambda: stream.finished)
    engine.submit(after)
    until(lambda: after.finished)
    with pytest.raises(ZeroDivisionError):
        stream.synchronize()


def test_several_drivers_at_once() -> None:
    engine, tasks = Engine(), [Countdown(20_000) for _ in range(4)]
    results: list[bool] = []
    threads = [
        threading.Thread(target=lambda task=task: results.append(engine.drive(task, 20)))
        for task in tasks
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [True] * 4
    assert engine._drivers == 0

"""The in-process transport: rendezvous, order, sizes."""

from __future__ import annotations

import numpy as np
import pytest

from rawcoll.errors import BackendUnavailable, TransportError
from rawcoll.transport.inproc import Switch


def bases(*arrays: np.ndarray) -> list[int]:
    return [array.ctypes.data for array in arrays]


def test_a_message_moves_when_both_ends_are_there() -> None:
    switch, x, y = Switch(2), np.arange(4), np.zeros(4, int)
    sent = switch.transport(0).post([(0, 8, 16, 1)], [], bases(x), 0)
    assert not sent.test()
    assert sent.missing() == (1,)
    got = switch.transport(1).post([], [(0, 0, 16, 0)], bases(y), 0)
    assert sent.test()
    assert got.test()
    assert y.tolist() == [1, 2, 0, 0]


def test_messages_of_a_pair_match_in_order_and_tags_apart() -> None:
    switch, x, y = Switch(2), np.arange(3), np.full(3, -1)
    one, two = switch.transport(0), switch.transport(1)
    for tag, element in ((0, 0), (0, 1), (5, 2)):
        one.post([(0, 8 * element, 8, 1)], [], bases(x), tag)
    for tag, element in ((5, 0), (0, 1), (0, 2)):
        two.post([], [(0, 8 * element, 8, 0)], bases(y), tag)
    assert y.tolist() == [2, 0, 1]


def test_sizes_that_differ_are_an_error() -> None:
    switch, x = Switch(2), np.zeros(4)
    switch.transport(0).post([(0, 0, 16, 1)], [], bases(x), 0)
    with pytest.raises(
        TransportError, match="from rank 0 to rank 1: sizes differ: found 16 bytes sent, expected 8"
    ):
        switch.transport(1).post([], [(0, 0, 8, 0)], bases(x), 0)


def test_there_is_no_library_below() -> None:
    with pytest.raises(BackendUnavailable, match="builtin: found the in-process transport"):
        Switch(2).transport(0).prepare_native((0, 1))

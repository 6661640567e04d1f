"""Wires: messages through shared memory, here between threads and objects of one process."""

from __future__ import annotations

import threading
from itertools import count
from typing import Any

import numpy as np
import pytest

native = pytest.importorskip("rawcoll.native._native")

from support.wired import Node  # noqa: E402 - after the skip

from rawcoll.errors import TransportError  # noqa: E402

NENTRIES = 8


def words(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def send(node: Node, source: int, peers: list[int], tag: int, array: np.ndarray) -> Any:
    messages = [(0, 0, array.nbytes, peer) for peer in peers]
    return native.Posted(node.wires[source], messages, [], [array.ctypes.data], tag)


class Expected:
    """A message that is received some time."""

    def __init__(self, node: Node, rank: int, peer: int, tag: int, nwords: int = 1) -> None:
        self.array = np.zeros(nwords, np.int64)
        message = (0, 0, self.array.nbytes, peer)
        bases = [self.array.ctypes.data]
        self._posted = native.Posted(node.wires[rank], [], [message], bases, tag)

    def found(self) -> list[int] | None:
        return self.array.tolist() if self._posted.test() else None


def test_a_message_arrives_once() -> None:
    node = Node(2)
    first, second = Expected(node, 1, 0, 5), Expected(node, 1, 0, 5)
    assert first.found() is None
    assert send(node, 0, [1], 5, words(42)).test()
    assert first.found() == [42]
    assert second.found() is None


def test_messages_of_a_tag_match_in_order_and_tags_pass_one_another() -> None:
    node = Node(2)
    for value, tag in ((1, 7), (2, 8), (3, 7)):
        assert send(node, 0, [1], tag, words(value)).test()
    assert Expected(node, 1, 0, 8).found() == [2]
    assert Expected(node, 1, 0, 7).found() == [1]
    assert Expected(node, 1, 0, 7).found() == [3]


def test_two_messages_of_one_peer_in_one_transfer_match_in_order() -> None:
    node = Node(2)
    out = np.zeros(2, np.int64)
    both = [(0, 0, 8, 0), (0, 8, 8, 0)]
    posted = native.Posted(node.wires[1], [], both, [out.ctypes.data], 0)
    assert posted.missing() == (0,)
    for value in (1, 2):
        assert not posted.test()
        send(node, 0, [1], 0, words(value))
    assert posted.test()
    assert posted.missing() == ()
    assert out.tolist() == [1, 2]


def test_one_stage_serves_several_receivers() -> None:
    node = Node(4, arena_nbytes=1024)
    assert send(node, 2, [0, 1, 3], 1, words(*range(100))).test()
    for rank in (3, 0, 1):
        assert Expected(node, rank, 2, 1, 100).found() == list(range(100))
    assert not node.mpi.sizes


def test_a_full_channel_holds_a_send_up_until_an_entry_is_done() -> None:
    node = Node(2)
    for number in range(NENTRIES):
        assert send(node, 0, [1], 0, words(number)).test()
    late = words(99)
    posted = send(node, 0, [1], 0, late)
    assert not posted.test()
    assert posted.missing() == (1,)
    assert Expected(node, 1, 0, 0).found() == [0]
    assert posted.test()
    assert [Expected(node, 1, 0, 0).found() for _ in range(NENTRIES)] == [
        [n] for n in (1, 2, 3, 4, 5, 6, 7, 99)
    ]


def test_what_finds_no_room_goes_over_mpi() -> None:
    node = Node(2, arena_nbytes=1024)
    big = words(*range(1024 // 8))
    assert send(node, 0, [1], 1, big).test()
    after = words(7)
    posted = send(node, 0, [1], 2, after)
    assert not posted.test()
    assert node.mpi.sizes == [8]
    second = Expected(node, 1, 0, 2)
    assert second.found() == [7]
    assert posted.test()
    assert Expected(node, 1, 0, 1, big.size).found() == big.tolist()
    assert send(node, 0, [1], 3, big).test(), "the room is free again"


def test_another_size_is_refused() -> None:
    node = Node(2)
    send(node, 0, [1], 0, words(1, 2))
    with pytest.raises(
        TransportError, match="rank 0: sizes differ: found 16 bytes sent, expected 8"
    ):
        Expected(node, 1, 0, 0).found()


def test_neighbours_need_a_mailbox() -> None:
    with pytest.raises(ValueError, match="neighbours without a mailbox"):
        native.Wires([native.FAR, 1], None, None)


def test_a_handle_of_another_size_is_refused() -> None:
    with pytest.raises(ValueError, match="handle of an unknown size"):
        native.Mpi((1, 1, 1, 1), 0, 0, 2, 100)


def test_threads_exchange_many_messages_without_losing_one() -> None:
    node = Node(3)
    nmessages = 1000
    failures: list[str] = []

    def run(rank: int) -> None:
        others = [peer for peer in range(3) if peer != rank]
        received = dict.fromkeys(others, 0)
        coming = {peer: Expected(node, rank, peer, 0, 2) for peer in others}
        sent, going = 0, None
        for _ in count():
            if going is not None and going[0].test():
                going = None
            if sent < nmessages and going is None:
                data = words(rank, sent)
                going = (send(node, rank, others, sent % 5, data), data)
                sent += 1
            for peer in others:
                found = coming[peer].found() if received[peer] < nmessages else None
                if found is not None:
                    if found != [peer, received[peer]]:
                        failures.append(f"rank {rank} from {peer}: {found}")
                        return
                    received[peer] += 1
                    coming[peer] = Expected(node, rank, peer, received[peer] % 5, 2)
            if (
                sent == nmessages
                and going is None
                and all(n == nmessages for n in received.values())
            ):
                return

    threads = [threading.Thread(target=run, args=(rank,), daemon=True) for rank in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not failures
    assert not any(thread.is_alive() for thread in threads)

"""The mailbox: messages through shared memory, here between threads and objects of one process."""

import threading
from itertools import count

import numpy as np
import pytest

mailbox = pytest.importorskip("rawcoll.transport._mailbox")

from rawcoll.device.host import Memory  # noqa: E402 - after the skip

NENTRIES = 8
ARENA_NBYTES = 4096


class Node:
    """Ranks that share segments, as processes of a node would."""

    def __init__(self, nranks: int) -> None:
        nbytes = mailbox.segment_nbytes(nranks, NENTRIES, ARENA_NBYTES)
        self.segments = [Memory(nbytes) for _ in range(nranks)]
        for segment in self.segments:
            segment.array(np.dtype(np.uint8), nbytes)[:] = 0
        addresses = [segment.address for segment in self.segments]
        self.boxes = [
            mailbox.Mailbox(addresses, rank, NENTRIES, ARENA_NBYTES) for rank in range(nranks)
        ]


def words(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def send(node: Node, source: int, peers: list[int], tag: int, array: np.ndarray) -> bool:
    return node.boxes[source].send(peers, tag, array.ctypes.data, array.nbytes)


def receive(node: Node, rank: int, peer: int, tag: int, nwords: int = 1) -> list[int] | None:
    out = np.zeros(nwords, np.int64)
    if not node.boxes[rank].receive(peer, tag, out.ctypes.data, out.nbytes):
        return None
    return out.tolist()


def test_a_message_arrives_once() -> None:
    node = Node(2)
    assert receive(node, 1, 0, 5) is None
    assert send(node, 0, [1], 5, words(42))
    assert receive(node, 1, 0, 5) == [42]
    assert receive(node, 1, 0, 5) is None


def test_messages_of_a_tag_match_in_order_and_tags_pass_one_another() -> None:
    node = Node(2)
    for value, tag in ((1, 7), (2, 8), (3, 7)):
        assert send(node, 0, [1], tag, words(value))
    assert receive(node, 1, 0, 8) == [2]
    assert receive(node, 1, 0, 7) == [1]
    assert receive(node, 1, 0, 7) == [3]


def test_one_stage_serves_several_receivers() -> None:
    node = Node(4)
    assert send(node, 2, [0, 1, 3], 1, words(*range(100)))
    for rank in (3, 0, 1):
        assert receive(node, rank, 2, 1, 100) == list(range(100))


def test_a_borrowed_message_stays_until_it_is_released() -> None:
    node = Node(2)
    big = words(*range(ARENA_NBYTES // 8))
    assert send(node, 0, [1], 1, big)
    address, ticket = node.boxes[1].borrow(0, 1, big.nbytes)
    assert not send(node, 0, [1], 2, words(1)), "the arena is full"
    assert (
        np.ctypeslib.as_array((np.ctypeslib.ctypes.c_int64 * big.size).from_address(address)) == big
    ).all()
    node.boxes[1].release(0, ticket)
    assert send(node, 0, [1], 2, words(1))


def test_a_full_channel_refuses_until_an_entry_is_done() -> None:
    node = Node(2)
    for number in range(NENTRIES):
        assert send(node, 0, [1], 0, words(number))
    assert not send(node, 0, [1], 0, words(99))
    assert receive(node, 1, 0, 0) == [0]
    assert send(node, 0, [1], 0, words(99))
    assert [receive(node, 1, 0, 0) for _ in range(NENTRIES)] == [
        [1],
        [2],
        [3],
        [4],
        [5],
        [6],
        [7],
        [99],
    ]


def test_an_entry_kept_over_a_lap_is_no_new_message() -> None:
    node = Node(2)
    assert send(node, 0, [1], 0, words(0))
    _, ticket = node.boxes[1].borrow(0, 0, 8)
    for number in range(1, NENTRIES):
        assert send(node, 0, [1], 0, words(number))
        assert receive(node, 1, 0, 0) == [number]
    assert receive(node, 1, 0, 0) is None, "the borrowed entry of the lap before was taken again"
    assert not send(node, 0, [1], 0, words(8))
    node.boxes[1].release(0, ticket)
    assert send(node, 0, [1], 0, words(8))
    assert receive(node, 1, 0, 0) == [8]


def test_another_size_is_refused() -> None:
    node = Node(2)
    assert send(node, 0, [1], 0, words(1, 2))
    with pytest.raises(ValueError, match="found 16 bytes sent, expected 8"):
        receive(node, 1, 0, 0)


def test_a_message_that_never_fits_is_never_sent() -> None:
    node = Node(2)
    assert not send(node, 0, [1], 0, np.zeros(ARENA_NBYTES + 1, np.uint8))


def test_threads_exchange_many_messages_without_losing_one() -> None:
    node = Node(3)
    nmessages = 1000
    failures: list[str] = []

    def run(rank: int) -> None:
        others = [peer for peer in range(3) if peer != rank]
        received = dict.fromkeys(others, 0)
        sent = 0
        for _ in count():
            if sent < nmessages and send(node, rank, others, sent % 5, words(rank, sent)):
                sent += 1
            for peer in others:
                found = receive(node, rank, peer, received[peer] % 5, 2)
                if found is not None:
                    if found != [peer, received[peer]]:
                        failures.append(f"rank {rank} from {peer}: {found}")
                        return
                    received[peer] += 1
            if sent == nmessages and all(n == nmessages for n in received.values()):
                return

    threads = [threading.Thread(target=run, args=(rank,), daemon=True) for rank in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not failures
    assert not any(thread.is_alive() for thread in threads)

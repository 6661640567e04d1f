"""Messages between ranks that share memory; see native/host/mailbox.h."""

from collections.abc import Sequence

ELSEWHERE: int
"""The region of a message that is announced here and travels otherwise."""
RECEIVED: int
COMES_ELSEWHERE: int

def segment_nbytes(nranks: int, nentries: int, arena_nbytes: int, /) -> int: ...

class Mailbox:
    """One rank's end. Ranks are numbered on their node; addresses are of this process.

    A message of another size than expected raises ValueError. Any thread may call.
    """

    def __init__(
        self, segments: Sequence[int], rank: int, nentries: int, arena_nbytes: int, /
    ) -> None: ...
    def add_region(self, addresses: Sequence[int], /) -> int:
        """Memory that every rank has mapped: its address there of each rank's; returns its number."""

    def send(self, peers: Sequence[int], tag: int, address: int, nbytes: int, /) -> bool:
        """Stage a message for every peer; False, and nothing done, where there is no room now."""

    def send_in_place(
        self, peers: Sequence[int], tag: int, region: int, offset: int, nbytes: int, /
    ) -> list[int]:
        """Post a message where it stands in a region of this rank's; a ticket for each peer.

        Empty, and nothing done, where there is no room now.
        """

    def is_done(self, peer: int, ticket: int, /) -> bool:
        """Whether the peer has released the message, which may then be overwritten."""

    def receive(self, peer: int, tag: int, address: int, nbytes: int, /) -> int:
        """Copy the next message of a tag to ``address``: RECEIVED, COMES_ELSEWHERE, or 0: none yet."""

    def borrow(self, peer: int, tag: int, nbytes: int, /) -> tuple[int, int] | None:
        """Where the next message of a tag is, and the ticket to ``release`` it with.

        Address 0 for a message that comes elsewhere, with nothing to release.
        """

    def release(self, peer: int, ticket: int, /) -> None:
        """The memory of a borrowed message may be used again."""

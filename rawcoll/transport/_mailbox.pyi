"""Messages between ranks that share memory; see native/host/mailbox.h."""

from collections.abc import Sequence

def segment_nbytes(nranks: int, nentries: int, arena_nbytes: int, /) -> int: ...

class Mailbox:
    """One rank's end. Ranks are numbered on their node; addresses are of this process.

    A message of another size than expected raises ValueError. Any thread may call.
    """

    def __init__(
        self, segments: Sequence[int], rank: int, nentries: int, arena_nbytes: int, /
    ) -> None: ...
    def send(self, peers: Sequence[int], tag: int, address: int, nbytes: int, /) -> bool:
        """Stage a message for every peer; False, and nothing done, where there is no room now."""

    def receive(self, peer: int, tag: int, address: int, nbytes: int, /) -> bool:
        """Copy the next message of a tag to ``address``; False where there is none yet."""

    def borrow(self, peer: int, tag: int, nbytes: int, /) -> tuple[int, int] | None:
        """Where the next message of a tag is, and the ticket to ``release`` it with."""

    def release(self, peer: int, ticket: int, /) -> None:
        """The memory of a borrowed message may be used again."""

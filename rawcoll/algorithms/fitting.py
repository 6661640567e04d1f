"""How parameters that were left open follow from sizes: the only numbers here that are tuned.

They change how long a collective takes, never whether it is right. Where they change its bits, the
algorithm's module says so.
"""

from __future__ import annotations

from typing import Final

SEGMENT_NBYTES: Final = 1 << 20
"""Bytes of one segment of one rank's block: what is received is still cached when it is reduced."""

MAX_SEGMENTS: Final = 64
"""More segments than this cost more in rounds than they hide."""

WINDOW: Final = 16
"""Peers that ``direct`` talks to in one round."""


def fitted_segments(nbytes: int) -> int:
    """Segments for a block of ``nbytes`` bytes that is pipelined on its own."""
    return max(1, min(MAX_SEGMENTS, round(nbytes / SEGMENT_NBYTES)))

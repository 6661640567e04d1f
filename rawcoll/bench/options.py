"""The options of a benchmark run, and how their texts are read.

Owns the meaning and defaults of nccl-tests' flags and of rawcoll's own. Knows nothing of argparse:
texts come in one by one, and what is wrong with one is a ValueError with a sentence for the user.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

MIB: Final = 1 << 20

# nccl-tests' name -> ours, in nccl-tests' order; the two 16-bit integers are rawcoll's own.
DTYPES: Final = {
    "int8": "int8",
    "uint8": "uint8",
    "int32": "int32",
    "uint32": "uint32",
    "int64": "int64",
    "uint64": "uint64",
    "half": "float16",
    "float": "float32",
    "double": "float64",
    "bfloat16": "bfloat16",
    "int16": "int16",
    "uint16": "uint16",
}
OPS: Final = ("sum", "prod", "max", "min", "avg")
ALL_ROOTS: Final = -1

_SIZE = re.compile(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([KMG]?)(?:i?B)?\s*", re.IGNORECASE)
_UNITS: Final = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


@dataclass(frozen=True, slots=True)
class Floor:
    """A bus bandwidth that must be reached at a size."""

    gbps: float
    nbytes: int


@dataclass(frozen=True, slots=True)
class Options:
    """One run. The first block are nccl-tests' flags with its defaults.

    Attributes:
        min_nbytes, max_nbytes: the first size and the bound of the last.
        step_nbytes: what is added to a size, unless ``step_factor`` (above 1) multiplies it.
        iters, warmup, agg, cycles, check: timed iterations; untimed calls a size; calls in flight
            an iteration; runs over the table (0: for ever); checked calls a placement.
        average: over ranks: 0 rank 0's time, 1 mean, 2 min, 3 max.
        root: a rank, or ALL_ROOTS.
        blocking: 1: a barrier after each call.
        timeout_s: the communicator's time limit; None: its default.
        per_iteration: whether each iteration is timed by itself.
        register: 1: arrays are made by ``comm.empty``, whose memory ranks of a node share.
        json_path: the file to write, or None.
        algorithms: algorithm texts, ``auto``, ``mpi`` or ``all``.
        compare: one table of all algorithms, from interleaved repeats.
        baseline: the algorithm that ratios are to; None: ``mpi``, or ``builtin`` where there is no
            ``mpi``.
        out_of_place: whether ``compare`` measures out of place.
        floors: bus bandwidths that must be reached.
        plot_path: the picture to draw, or None.
        mmap_threshold: what the allocator's thresholds are raised to, or None.
    """

    collective: str = "all_reduce"
    min_nbytes: int = 32 * MIB
    max_nbytes: int = 32 * MIB
    step_nbytes: int = MIB
    step_factor: int = 1
    iters: int = 20
    warmup: int = 1
    agg: int = 1
    cycles: int = 1
    check: int = 1
    average: int = 1
    ops: tuple[str, ...] = ("sum",)
    dtypes: tuple[str, ...] = ("float",)
    root: int = 0
    blocking: int = 0
    timeout_s: float | None = None
    per_iteration: bool = False
    register: int = 0
    json_path: str | None = None

    algorithms: tuple[str, ...] = ("auto",)
    compare: bool = False
    baseline: str | None = None
    out_of_place: bool = False
    floors: tuple[Floor, ...] = ()
    plot_path: str | None = None
    mmap_threshold: int | None = None

    def sizes(self) -> Iterator[int]:
        """The sizes of the table, ascending."""
        size = self.min_nbytes
        while size <= self.max_nbytes:
            yield size
            size = size * self.step_factor if self.step_factor > 1 else size + self.step_nbytes

    def check_consistent(self) -> None:
        """Raise ValueError for values that do not go together."""
        if self.min_nbytes > self.max_nbytes:
            raise ValueError(
                "invalid sizes for 'minbytes' and 'maxbytes': "
                f"{self.min_nbytes} > {self.max_nbytes}"
            )
        if self.step_factor > 1 and self.min_nbytes == 0:
            raise ValueError("minbytes: 0 never grows by a factor; use -i, or begin above 0")
        sizes = set(self.sizes())
        for floor in self.floors:
            if floor.nbytes not in sizes:
                raise ValueError(f"min-busbw: {floor.nbytes} bytes is none of the measured sizes")


def parse_size(text: str) -> int:
    """Bytes in ``text``: a number with K, M or G, 1024-based, in either case."""
    match = _SIZE.fullmatch(text)
    if match is None:
        raise ValueError(f"invalid size: found {text!r}, expected a number with K, M, G or nothing")
    return int(float(match[1]) * _UNITS[match[2].lower()])


def parse_step(text: str) -> int:
    """A step in bytes, which is above 0."""
    step = parse_size(text)
    if step == 0:
        raise ValueError("invalid step: found 0, expected at least 1 byte")
    return step


def parse_count(text: str) -> int:
    """An integer of at least 0, in any base that C knows."""
    try:
        value = int(text, 0)
    except ValueError:
        value = -1
    if value < 0:
        raise ValueError(f"invalid number: found {text!r}, expected an integer of at least 0")
    return value


def parse_positive(text: str) -> int:
    """An integer of at least 1."""
    value = parse_count(text)
    if value == 0:
        raise ValueError("invalid number: found 0, expected at least 1")
    return value


def parse_dtypes(text: str) -> tuple[str, ...]:
    """nccl-tests' names for one element type (or numpy's), or for ``all``."""
    if text == "all":
        return tuple(DTYPES)
    for theirs, ours in DTYPES.items():
        if text in (theirs, ours):
            return (theirs,)
    raise ValueError(
        f"unknown datatype: found {text!r}, expected one of {', '.join(DTYPES)} or all"
    )


def parse_ops(text: str) -> tuple[str, ...]:
    """One reduction, or ``all``."""
    if text == "all":
        return OPS
    if text in OPS:
        return (text,)
    raise ValueError(f"unknown reduction: found {text!r}, expected one of {', '.join(OPS)} or all")


def parse_root(text: str) -> int:
    """A rank, or ALL_ROOTS."""
    return ALL_ROOTS if text == "all" else parse_count(text)


def parse_floors(text: str) -> tuple[Floor, ...]:
    """Bandwidths as ``GBPS@SIZE``, separated by commas."""
    floors = []
    for part in text.split(","):
        gbps, at, size = part.partition("@")
        if not at:
            raise ValueError(f"invalid bandwidth: found {part!r}, expected GBPS@SIZE as in 20@64M")
        floors.append(Floor(float(gbps), parse_size(size)))
    return tuple(floors)


def parse_algorithms(text: str) -> tuple[str, ...]:
    """Algorithm texts separated by commas; commas inside parentheses do not separate."""
    parts = [""]
    depth = 0
    for character in text:
        depth += (character == "(") - (character == ")")
        if depth < 0:
            break
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    if depth != 0:
        raise ValueError(f"unbalanced parentheses: found {text!r}")
    names = tuple(part.strip() for part in parts)
    if not all(names):
        raise ValueError(f"empty algorithm: found {text!r}, expected names separated by commas")
    return tuple(dict.fromkeys(names))

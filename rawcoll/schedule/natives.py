"""What a native step means: a collective among some ranks, on a range of units.

Owns the spans that each member must name and the expressions that each gets. Parts are equal shares
of the range, in the order of the step's ``ranks``.
"""

from __future__ import annotations

from collections.abc import Sequence

from rawcoll.schedule.collectives import Collective, Extent, collective_of
from rawcoll.schedule.ops import Native, Span
from rawcoll.schedule.symbols import Symbols

_Range = tuple[int, int]


def native_result(
    symbols: Symbols, natives: Sequence[Native], srcs: Sequence[Sequence[int]], place: int
) -> list[int]:
    """The expressions that member ``place`` gets in its ``dst``.

    Args:
        symbols: the table.
        natives: the step as each member has it, in the order of its ``ranks``.
        srcs: what each member's ``src`` holds.
        place: which member.

    Raises:
        ValueError: a member names other spans than the collective has, or a contribution comes
            twice.
    """
    first = natives[0]
    collective = collective_of(first.collective)
    whole = _whole(collective, natives)
    _check_span("src", natives[place].src, _expected(collective.before, first, whole, place))
    after = _expected(collective.after, first, whole, place)
    _check_span("dst", natives[place].dst, after)
    if after is None:
        return []
    start, stop = after[0] - whole[0], after[1] - whole[0]
    if collective.reduces:
        operands = list(zip(*srcs, strict=True))[start:stop]
        return [symbols.reduction(first.collective, each) for each in operands]
    if collective.name == "all_to_all":
        low, high = _share(whole, len(natives), place)
        return [number for src in srcs for number in src[low - whole[0] : high - whole[0]]]
    return [number for src in srcs for number in src][start:stop]


def _whole(collective: Collective, natives: Sequence[Native]) -> _Range:
    """The range that the step is about: what a member names that has all of it."""
    first = natives[0]
    for extent, side in ((collective.before, "src"), (collective.after, "dst")):
        member = first.ranks.index(first.root) if extent is Extent.ROOT_WHOLE else 0
        span: Span | None = getattr(natives[member], side)
        if extent is not Extent.PART and span is not None:
            return span.start, span.stop
    raise ValueError("found no span of the whole range, expected one")


def _expected(extent: Extent, native: Native, whole: _Range, place: int) -> _Range | None:
    match extent:
        case Extent.WHOLE:
            return whole
        case Extent.PART:
            return _share(whole, len(native.ranks), place)
        case Extent.ROOT_WHOLE:
            return whole if native.ranks[place] == native.root else None


def _share(whole: _Range, nparts: int, place: int) -> _Range:
    width, rest = divmod(whole[1] - whole[0], nparts)
    if rest:
        raise ValueError(f"units: found {whole[1] - whole[0]}, expected a multiple of {nparts}")
    return whole[0] + place * width, whole[0] + (place + 1) * width


def _check_span(name: str, span: Span | None, expected: _Range | None) -> None:
    found = None if span is None else (span.start, span.stop)
    if found != expected:
        raise ValueError(f"{name}: found units {found}, expected {expected}")

"""Whether a run reached the bus bandwidths that ``--min-busbw`` asks for."""

from __future__ import annotations

from collections.abc import Sequence

from rawcoll.bench.options import Floor, Options
from rawcoll.bench.report_compare import own_cells
from rawcoll.bench.rows import Block, Comparison, busbw_gbps


def unmet_by_blocks(blocks: Sequence[Block], options: Options) -> list[str]:
    """A sentence for each algorithm that is too slow, in either placement, at a floor's size."""
    sizes = list(options.sizes())
    return [
        _sentence(block.label, rate, floor)
        for floor in options.floors
        for block in blocks
        for row in block.rows
        # A row's own size may be smaller: parts are cut to equal length.
        if row.case.counts
        == row.case.collective.counts(floor.nbytes, row.case.itemsize, row.case.nranks)
        and floor.nbytes in sizes
        and (rate := min(busbw_gbps(row.case, timing.seconds) for timing in row.timings))
        < floor.gbps
    ]


def unmet_by_comparison(table: Comparison, options: Options) -> list[str]:
    """A sentence for each floor that the best of rawcoll's own algorithms does not reach."""
    sentences = []
    for floor in options.floors:
        for row, nbytes in zip(table.rows, options.sizes(), strict=True):
            if nbytes != floor.nbytes:
                continue
            rates = [busbw_gbps(row.case, cell.seconds.value) for cell in own_cells(table, row)]
            best = max(rates, default=0.0)
            if best < floor.gbps:
                sentences.append(_sentence("the best algorithm", best, floor))
    return sentences


def _sentence(label: str, gbps: float, floor: Floor) -> str:
    return (
        f"min-busbw: {label} at {floor.nbytes} B: found {gbps:.3g} GB/s, "
        f"expected at least {floor.gbps:g}"
    )

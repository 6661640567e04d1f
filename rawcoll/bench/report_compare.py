"""The table of ``--compare``: a row a size, a column an algorithm. Makes lines, prints none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rawcoll.bench.compare import LIBRARY
from rawcoll.bench.options import Options
from rawcoll.bench.report_text import note
from rawcoll.bench.rows import Cell, ComparedRow, Comparison, busbw_gbps
from rawcoll.bench.stats import geometric_mean

_CELL_WIDTH: Final = len("0.000123  1.23 [1.20, 1.26]")
_BASE_WIDTH: Final = len("0.000123")
_GAP: Final = "   "


def explanation(options: Options, row_case_text: str, baseline: str) -> list[str]:
    """What the numbers are."""
    return [
        note(f"{row_case_text}; bus bandwidth in GB/s of the median of {options.iters} repeats"),
        note(f"ratio: time of {baseline} over the algorithm's (above 1: faster than {baseline})"),
        note(
            "repeats are interleaved (A B C, B C A, ...); a ratio is the median of the repeats' "
            "ratios, in brackets its 95 % bootstrap interval"
        ),
    ]


def columns(table: Comparison) -> list[str]:
    """The two lines of column headings."""
    names = f"#{'size':>11}  {'count':>12}"
    units = f"#{'(B)':>11}  {'(elements)':>12}"
    for label in table.labels:
        width = _width(table, label)
        names += _GAP + f"{label:>{width}}"
        units += (
            _GAP + f"{'GB/s' if label == table.baseline else 'GB/s ratio   interval  ':>{width}}"
        )
    return [names, units]


def row_line(table: Comparison, row: ComparedRow) -> str:
    """One size."""
    line = f"{row.case.nbytes:12d}  {row.case.counts.count:12d}"
    for label, cell in zip(table.labels, row.cells, strict=True):
        text = _cell_text(row, cell, is_baseline=label == table.baseline)
        line += _GAP + f"{text:>{_width(table, label)}}"
    return line


def _width(table: Comparison, label: str) -> int:
    return max(len(label), _BASE_WIDTH if label == table.baseline else _CELL_WIDTH)


def _cell_text(row: ComparedRow, cell: Cell | None, *, is_baseline: bool) -> str:
    if cell is None:
        return "-"
    if cell.wrong:
        return f"WRONG {cell.wrong}"
    busbw = f"{busbw_gbps(row.case, cell.seconds.value):8.3g}"
    if is_baseline or cell.speedup is None:
        return busbw
    ratio = cell.speedup
    return f"{busbw} {ratio.value:5.2f} [{ratio.low:4.2f}, {ratio.high:4.2f}]"


def footer(table: Comparison) -> list[str]:
    """Errors, and each algorithm's mean ratio."""
    errors = table.errors
    means = [
        f"{label} {geometric_mean(ratios):.2f}"
        for index, label in enumerate(table.labels)
        if label != table.baseline and (ratios := _ratios(table, index))
    ]
    lines = [f"# {'Out of bounds values':<20} : {errors} {'FAILED' if errors else 'OK'}"]
    if means:
        lines.append(note(f"geometric mean of the ratios: {', '.join(means)}"))
    best = [ratio for row in table.rows if (ratio := best_own_ratio(table, row)) is not None]
    if best:
        lines.append(
            note(f"best of rawcoll's own at each size, geometric mean: {geometric_mean(best):.2f}")
        )
    return lines


def _ratios(table: Comparison, index: int) -> list[float]:
    cells = (row.cells[index] for row in table.rows)
    return [cell.speedup.value for cell in cells if cell and cell.speedup]


def own_cells(table: Comparison, row: ComparedRow) -> list[Cell]:
    """A row's cells that are not the library's."""
    pairs: Sequence[tuple[str, Cell | None]] = list(zip(table.labels, row.cells, strict=True))
    return [cell for label, cell in pairs if cell is not None and label not in LIBRARY]


def best_own_ratio(table: Comparison, row: ComparedRow) -> float | None:
    """The largest ratio among rawcoll's own algorithms at one size."""
    ratios = [cell.speedup.value for cell in own_cells(table, row) if cell.speedup]
    return max(ratios, default=None)

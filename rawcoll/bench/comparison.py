"""The one table of ``--compare``: measured, printed row by row, summed up."""

from __future__ import annotations

from rawcoll.bench import floors, plot, report_compare, report_json, report_text
from rawcoll.bench.compare import compare
from rawcoll.bench.rows import ComparedRow, Comparison, busbw_gbps
from rawcoll.bench.session import Measured, Run, notes


def run_comparison(run: Run) -> Measured:
    """The table of all algorithms."""
    (cases,) = run.series
    line = run.output.line

    def emit_row(table: Comparison, row: ComparedRow) -> None:
        if not table.rows:
            for text in [*explanation(table), "#", *report_compare.columns(table)]:
                line(text)
        line(report_compare.row_line(table, row))

    def explanation(table: Comparison) -> list[str]:
        placed = not run.options.out_of_place and run.collective.in_place
        what = f"{cases[0].dtype} {cases[0].shown_op}, {'in' if placed else 'out of'} place"
        return report_compare.explanation(run.options, what, table.baseline)

    line(report_text.note(f"{run.collective.name} compared, {run.comm.nranks} ranks"))
    for text in notes(run, None):
        line(report_text.note(text))
    table = compare(
        run.comm, run.runnable, cases, run.pool, run.options, run.output.progress, emit_row
    )
    for text in report_compare.footer(table):
        line(text)
    return Measured(
        report_json.comparison_part(table, run.options),
        floors.unmet_by_comparison(table, run.options),
        _comparison_lines(table),
    )


def _comparison_lines(table: Comparison) -> dict[str, plot.Points]:
    return {
        label: [
            (row.case.nbytes, busbw_gbps(row.case, cell.seconds.value))
            for row in table.rows
            if (cell := row.cells[index]) is not None
        ]
        for index, label in enumerate(table.labels)
    }

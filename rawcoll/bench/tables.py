"""nccl-tests' tables, one an algorithm: measured, printed row by row, summed up."""

from __future__ import annotations

from rawcoll.bench import floors, plot, report_json, report_text
from rawcoll.bench.choose import Choice
from rawcoll.bench.rows import Block, busbw_gbps
from rawcoll.bench.session import Measured, Run, notes
from rawcoll.bench.sweep import sweep


def run_tables(run: Run) -> Measured:
    """nccl-tests' tables, one an algorithm."""
    blocks = [_block(run, choice) for choice in run.runnable]
    unmet = floors.unmet_by_blocks(blocks, run.options)
    if run.least_mean_gbps is not None:
        unmet += [
            f"NCCL_TESTS_MIN_BW: {block.label}: mean bus bandwidth too low"
            for block in blocks
            if not report_text.mean_suffices(block.mean_busbw_gbps, run.least_mean_gbps)
        ]
    lines: dict[str, plot.Points] = {
        block.label: [
            (row.case.nbytes, max(busbw_gbps(row.case, t.seconds) for t in row.timings))
            for row in block.rows
        ]
        for block in blocks
    }
    part = report_json.blocks_part(blocks, run.options, run.least_mean_gbps)
    return Measured(part, unmet, lines)


def _block(run: Run, choice: Choice) -> Block:
    line, program = run.output.line, run.collective.program
    for text in report_text.header(run.options, program, run.devices, notes(run, choice)):
        line(text)
    rows = []
    for row in sweep(run.comm, choice, run.series, run.pool, run.options, run.output.progress):
        line(report_text.row_line(row))
        rows.append(row)
    block = Block(choice.label, tuple(rows))
    for text in report_text.plan_lines(rows):
        line(text)
    for case, reason in choice.refusals.items():
        line(report_text.note(f"not at {case.nbytes} B of {case.dtype}: {reason}"))
    for text in report_text.footer(block, program, run.least_mean_gbps):
        line(text)
    return block

"""One benchmark run from options to exit status, on every rank.

Owns the order of things: communicator, agreement on what runs, measuring, reports, verdict. Prints
nothing: lines go to a function, and only rank 0's are passed on.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rawcoll.bench import environment, plot, report_json, report_text
from rawcoll.bench.allocator import keep_freed_memory
from rawcoll.bench.case import Pool
from rawcoll.bench.choose import choose
from rawcoll.bench.collectives import collective_of
from rawcoll.bench.comparison import run_comparison
from rawcoll.bench.options import Options
from rawcoll.bench.session import SILENT, Output, Run
from rawcoll.bench.sweep import series_of
from rawcoll.bench.tables import run_tables
from rawcoll.errors import InvalidArgument

if TYPE_CHECKING:
    from rawcoll.comm.communicator import Communicator


def run_benchmark(options: Options, arguments: Sequence[str], output: Output) -> int:
    """Make a communicator and run. Collective over all ranks of the job.

    Args:
        options: what to do, consistent.
        arguments: the command line, for the record.
        output: used on rank 0 only.

    Returns:
        The exit status, the same on all ranks: 0, or 1 for wrong results or bandwidths not reached.

    Raises:
        RawcollError: on all ranks alike before anything ran; else the job is aborted.
    """
    from rawcoll.comm.init import init

    if options.plot_path is not None:
        plot.check_can_plot(options.plot_path)
    if options.mmap_threshold is not None:
        keep_freed_memory(options.mmap_threshold)
    comm = init(timeout_s=options.timeout_s)
    try:
        run = prepare(comm, options, arguments, output)
    except InvalidArgument:
        # Every rank refuses alike, so the job can end in order instead of by an abort.
        comm.close()
        raise
    with comm:
        return execute(run)


def prepare(comm: Communicator, options: Options, arguments: Sequence[str], output: Output) -> Run:
    """Agree on everything before anything is measured. Collective."""
    collective = collective_of(options.collective)
    series = series_of(options, collective, comm.rank, comm.nranks)
    cases = [case for cases in series for case in cases]
    texts = options.algorithms
    if options.compare and len(series) != 1:
        raise InvalidArgument(
            "compare: one table: found several element types, reductions or roots, expected one"
        )
    choices = choose(comm, texts, cases)
    minimum = os.environ.get("NCCL_TESTS_MIN_BW")
    return Run(
        comm=comm,
        options=options,
        arguments=arguments,
        collective=collective,
        series=series,
        choices=choices,
        pool=Pool(max(case.nbytes for case in cases), comm.empty if options.register else None),
        devices=comm.mpi.allgather(environment.this_device(comm.rank)),
        output=output if comm.rank == 0 else SILENT,
        least_mean_gbps=None if minimum is None else float(minimum),
    )


def execute(run: Run) -> int:
    """Measure and report. Collective; returns the exit status."""
    started = time.strftime(report_json.TIME_FORMAT)
    path = _reserve_json(run)
    found = run_comparison(run) if run.options.compare else run_tables(run)
    if path is not None:
        report_json.write(path, _document(run, started) | found.part | _ended())
    if run.options.plot_path is not None and run.comm.rank == 0:
        title = f"{run.collective.name}, {run.comm.nranks} ranks"
        plot.draw(run.options.plot_path, title, found.lines)
    for sentence in found.unmet:
        run.output.line(report_text.note(f"FAILED {sentence}"))
    failed = found.part["out_of_bounds"]["count"] > 0 or bool(found.unmet)
    return int(run.comm.mpi.bcast(int(failed), root=0))


def _reserve_json(run: Run) -> Path | None:
    """The file on rank 0. If that fails there, all ranks are told."""
    path, error = None, None
    if run.options.json_path is not None and run.comm.rank == 0:
        try:
            path = report_json.reserve(run.options.json_path)
        except InvalidArgument as refused:
            error = refused
        else:
            run.output.line(f"# Writing JSON output to {path}")
    error = run.comm.mpi.bcast(error, root=0)
    if error is not None:
        raise error
    return path


def _document(run: Run, started: str) -> dict[str, Any]:
    """What stands before the results."""
    return {
        "version": report_json.FILE_VERSION,
        "start_time": started,
        "args": list(run.arguments),
        "env": environment.settings(),
        "nccl_version": 0,
        "config": report_json.config(run.options, run.devices),
        "rawcoll": {
            "version": environment.package_version("rawcoll"),
            "collective": run.collective.name,
            "nranks": run.comm.nranks,
            "environment": environment.capture(),
            "mmap_threshold": run.options.mmap_threshold,
            "register": run.options.register,
            "left_out": {c.label: c.refusal() for c in run.choices if not c.plans},
        },
    }


def _ended() -> dict[str, Any]:
    return {"end_time": time.strftime(report_json.TIME_FORMAT)}

"""What all parts of a run share, and what every report says of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rawcoll.bench import environment, plot
from rawcoll.bench.case import Pool
from rawcoll.bench.choose import Choice
from rawcoll.bench.collectives import Collective
from rawcoll.bench.options import Options
from rawcoll.bench.sweep import Series

if TYPE_CHECKING:
    from rawcoll.comm.communicator import Communicator

Emit = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Output:
    """Where a run's text goes: lines of the report, and what is under way."""

    line: Emit
    progress: Emit


SILENT = Output(lambda _: None, lambda _: None)


@dataclass(frozen=True, slots=True)
class Run:
    """What all parts of a run share.

    Attributes:
        comm: the communicator.
        options: what was asked for.
        arguments: the command line, for the record.
        collective: which one.
        series: the cases in nccl-tests' order.
        choices: algorithms.
        pool: the memory.
        devices: one a rank.
        output: silent on all ranks but the first.
        least_mean_gbps: NCCL_TESTS_MIN_BW.
    """

    comm: Communicator
    options: Options
    arguments: Sequence[str]
    collective: Collective
    series: Sequence[Series]
    choices: Sequence[Choice]
    pool: Pool
    devices: Sequence[environment.Device]
    output: Output
    least_mean_gbps: float | None

    @property
    def runnable(self) -> list[Choice]:
        """The choices that fit some case."""
        return [choice for choice in self.choices if choice.plans]


@dataclass(frozen=True, slots=True)
class Measured:
    """What a run found.

    Attributes:
        part: the results as JSON takes them.
        unmet: a sentence for each bandwidth that was not reached.
        lines: what a picture shows.
    """

    part: dict[str, Any]
    unmet: list[str]
    lines: dict[str, plot.Points]


def notes(run: Run, choice: Choice | None) -> list[str]:
    """What rawcoll adds to the header."""
    here = sum(d.hostname == run.devices[0].hostname for d in run.devices)
    lines = [
        f"rawcoll {environment.package_version('rawcoll') or 'from a source tree'}"
        + (f", algorithm {choice.label}" if choice is not None else ""),
        environment.versions_line(environment.capture()),
        environment.cores_line(here, environment.cores()),
    ]
    if run.options.register:
        lines.append("arrays: made by comm.empty; ranks of a node share their memory")
    if run.options.mmap_threshold is not None:
        lines.append(
            "allocator: mmap threshold raised to "
            f"{run.options.mmap_threshold} B, heap not trimmed, on all ranks"
        )
    if choice is not None and not run.collective.in_place:
        lines.append(
            f"{run.collective.name} has no in-place form: those columns repeat out-of-place"
        )
    lines += [
        f"left out: {other.label}: {other.refusal()}" for other in run.choices if not other.plans
    ]
    return lines

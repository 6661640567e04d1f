"""pytest's side of ``support.cases``: runs a file's cases as one job, hands out the outcomes.

A job runs when the first of its tests does, with those cases only that pytest has selected. A case
that hangs or kills its ranks fails alone: the cases after it go on in a new job.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from support.cases import IN_RANK
from support.launcher import JobTimeout, describe, mpirun

# A file with more broken cases than this says so instead of starting ranks for ever.
MAX_JOBS = 8
START_S = 60.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one case: ``passed``, ``failed`` or ``skipped``, and why."""

    kind: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class JobSpec:
    """Which file's cases run on how many ranks, and how."""

    file: str
    nranks: int
    case_timeout_s: float
    env: tuple[tuple[str, str], ...] = ()


@dataclass(slots=True)
class Jobs:
    """The jobs of a pytest session: what was selected, and the outcomes so far."""

    selected: dict[JobSpec, list[str]] = field(default_factory=dict)
    outcomes: dict[JobSpec, dict[str, Outcome]] = field(default_factory=dict)

    def select(self, items: Iterable[pytest.Item]) -> None:
        """Note the cases among the collected tests."""
        for item in items:
            parameters = getattr(getattr(item, "callspec", None), "params", {})
            if isinstance(parameters.get("job"), JobSpec):
                self.selected.setdefault(parameters["job"], []).append(parameters["case"])

    def outcome(self, job: JobSpec, case: str) -> Outcome:
        """Return what became of the case; the first question of a job runs it."""
        if job not in self.outcomes:
            self.outcomes[job] = run_cases(job, self.selected.get(job, [case]))
        return self.outcomes[job][case]


def make_test(
    file: str,
    names: tuple[str, ...],
    nranks: tuple[int, ...],
    case_timeout_s: float,
    env: Mapping[str, str],
) -> Any:
    """Return the test function that ``mpi_cases`` promises."""
    jobs = [JobSpec(file, n, case_timeout_s, tuple(sorted(env.items()))) for n in nranks]
    rows = [pytest.param(job, name, id=f"{job.nranks}-{name}") for job in jobs for name in names]

    @pytest.mark.parametrize(("job", "case"), rows)
    def test_case(job: JobSpec, case: str, mpi_jobs: Jobs) -> None:
        outcome = mpi_jobs.outcome(job, case)
        if outcome.kind == "skipped":
            pytest.skip(outcome.text)
        if outcome.kind == "failed":
            pytest.fail(outcome.text, pytrace=False)

    return test_case


def run_cases(job: JobSpec, cases: list[str]) -> dict[str, Outcome]:
    """Run the cases on ``job.nranks`` ranks, in as few jobs as their failures allow."""
    outcomes: dict[str, Outcome] = {}
    for _ in range(MAX_JOBS):
        left = [case for case in cases if case not in outcomes]
        if not left:
            return outcomes
        outcomes |= _run_once(job, left)
    broken = Outcome("failed", f"not run: {MAX_JOBS} jobs ended in the cases before it")
    return {case: outcomes.get(case, broken) for case in cases}


def _run_once(job: JobSpec, cases: list[str]) -> dict[str, Outcome]:
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder)
        (results / "cases.json").write_text(json.dumps(cases))
        output, ended = _launch(job, cases, results)
        ranks = [_read_events(results / f"{rank}.jsonl") for rank in range(job.nranks)]
        stacks = {rank: _read_stacks(results, rank) for rank in range(job.nranks)}
    outcomes: dict[str, Outcome] = {}
    for case in cases:
        states = [events.get(case, {}) for events in ranks]
        if not any(states):
            break
        outcomes[case] = _judge(states, stacks, output)
    if not ended and not any(outcome.kind == "failed" for outcome in outcomes.values()):
        # No case is to blame: it broke before the first, between two, or after the last.
        outcomes[cases[min(len(outcomes), len(cases) - 1)]] = Outcome("failed", output)
    return outcomes


def _launch(job: JobSpec, cases: list[str], results: Path) -> tuple[str, bool]:
    program = ["python", "-m", "support.rank", job.file, str(results), str(job.case_timeout_s)]
    # Ranks end a job whose case hangs; this limit is for what they cannot see.
    limit_s = START_S + 2 * job.case_timeout_s + 5.0 * len(cases)
    try:
        done = mpirun(job.nranks, program, timeout=limit_s, env={**dict(job.env), IN_RANK: "1"})
    except JobTimeout as hang:
        return str(hang), False
    return describe(done), done.returncode == 0


def _judge(states: list[dict[str, Any]], stacks: Mapping[int, str], output: str) -> Outcome:
    """Unite what the ranks say of one case."""
    parts = []
    for rank, state in enumerate(states):
        if state.get("outcome") == "failed":
            parts.append(f"--- rank {rank} failed ---\n{state['text']}")
        elif "outcome" not in state:
            where = stacks[rank] or "(no stack: it was ended before its time limit)\n"
            parts.append(f"--- rank {rank} did not leave the case ---\n{where}")
    if parts:
        if any("outcome" not in state for state in states):
            parts.append(f"--- the job ---\n{output}")
        passed = [
            str(rank) for rank, state in enumerate(states) if state.get("outcome") == "passed"
        ]
        if passed:
            parts.insert(0, f"passed on rank {', '.join(passed)}")
        return Outcome("failed", "\n".join(parts))
    kinds = {state["outcome"] for state in states}
    if len(kinds) > 1:
        return Outcome("failed", "skip: not all ranks agree: " + json.dumps(states))
    return Outcome(kinds.pop(), states[0]["text"])


def _read_events(file: Path) -> dict[str, dict[str, Any]]:
    """Return the last event of each case. A line that a kill cut short is left out."""
    events: dict[str, dict[str, Any]] = {}
    for line in file.read_text().splitlines() if file.exists() else ():
        try:
            event = json.loads(line)
        except json.JSONDecodeError:
            continue
        events[event["case"]] = event
    return events


def _read_stacks(results: Path, rank: int) -> str:
    file = results / f"{rank}.stacks"
    return file.read_text(errors="replace") if file.exists() else ""

"""The runner of cases itself: passing, failing, hanging and dying ones, seen from outside."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.cases import find_cases
from support.jobs import JobSpec, Outcome, run_cases
from support.launcher import JobTimeout

BROKEN = Path(__file__).parent / "broken_cases.py"


@pytest.fixture(scope="module")
def outcomes() -> dict[str, Outcome]:
    names = [
        "case_passes[1]",
        "case_passes[2]",
        "case_skips",
        "case_fails_on_rank_1",
        "case_after_a_failure",
        "case_one_rank_leaves_the_others_waiting",
        "case_dies",
        "case_hangs",
        "case_after_a_hang",
    ]
    return run_cases(JobSpec(str(BROKEN), 2, case_timeout_s=2.0), names)


@pytest.mark.parametrize(
    "case", ["case_passes[1]", "case_passes[2]", "case_after_a_failure", "case_after_a_hang"]
)
def test_passing(outcomes: dict[str, Outcome], case: str) -> None:
    assert outcomes[case] == Outcome("passed")


def test_skip_keeps_its_reason(outcomes: dict[str, Outcome]) -> None:
    assert outcomes["case_skips"] == Outcome("skipped", "needs 9 ranks")


def test_failure_shows_rank_and_traceback(outcomes: dict[str, Outcome]) -> None:
    kind, text = outcomes["case_fails_on_rank_1"].kind, outcomes["case_fails_on_rank_1"].text
    assert kind == "failed"
    assert text.startswith("passed on rank 0\n--- rank 1 failed ---\nTraceback")
    assert "in case_fails_on_rank_1" in text
    assert "ValueError: only here" in text


def test_rank_that_left_alone_is_named_with_the_one_still_inside(
    outcomes: dict[str, Outcome],
) -> None:
    text = outcomes["case_one_rank_leaves_the_others_waiting"].text
    assert "--- rank 0 did not leave the case ---" in text
    assert "--- rank 1 failed ---" in text
    assert "ValueError: left early" in text


def test_death_is_a_failure_of_its_case_only(outcomes: dict[str, Outcome]) -> None:
    assert outcomes["case_dies"].kind == "failed"
    assert "did not leave the case" in outcomes["case_dies"].text
    assert "--- the job ---" in outcomes["case_dies"].text


def test_hang_shows_the_stack_of_the_rank_that_hangs(outcomes: dict[str, Outcome]) -> None:
    text = outcomes["case_hangs"].text
    assert outcomes["case_hangs"].kind == "failed"
    assert "rank 0 did not leave the case" in text
    assert "in case_hangs" in text


def test_hang_outside_the_runner_is_killed_with_its_output(mpirun, tmp_path: Path) -> None:
    script = tmp_path / "hang.py"
    script.write_text("import time\nprint('reached', flush=True)\ntime.sleep(600)\n")
    with pytest.raises(JobTimeout, match=r"(?s)reached.*did not end within 3 s"):
        mpirun(2, script, timeout=3)


def test_mpirun_returns_output_and_status(mpirun) -> None:
    program = (
        "from mpi4py import MPI; print('rank', MPI.COMM_WORLD.rank, 'of', MPI.COMM_WORLD.size)"
    )
    done = mpirun(3, ["python", "-c", program], check=True)
    assert sorted(done.stdout.splitlines()) == ["rank 0 of 3", "rank 1 of 3", "rank 2 of 3"]


def test_two_cases_of_one_name_are_refused() -> None:
    def case_x() -> None: ...

    case_x.rows = [{"value": 1}, {"value": "1"}]  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match=r"case_x\[1\] twice"):
        find_cases({"case_x": case_x})

from __future__ import annotations

import argparse
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from rawcoll.cli import main as frame
from rawcoll.errors import InvalidArgument


@pytest.fixture(autouse=True)
def no_launcher(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in frame.RANK_VARIABLES:
        monkeypatch.delenv(name, raising=False)


def command(run: Any) -> Any:
    def add_arguments(parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--number", type=int, default=0)

    return SimpleNamespace(NAME="try", HELP="a command", add_arguments=add_arguments, run=run)


def call(monkeypatch: pytest.MonkeyPatch, run: Any, *arguments: str) -> int:
    monkeypatch.setattr(frame, "find_commands", lambda: [command(run)])
    return frame.main(["try", *arguments])


def test_commands_are_the_modules_of_the_package() -> None:
    commands = frame.find_commands()
    names = [found.NAME for found in commands]
    assert "bench" in names
    assert names == sorted(names)
    for found in commands:
        assert found.HELP
        assert callable(found.add_arguments)
        assert callable(found.run)


def test_the_exit_status_is_the_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    assert call(monkeypatch, lambda arguments: arguments.number, "--number", "7") == 7


def test_an_error_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(_: argparse.Namespace) -> int:
        raise InvalidArgument("x: shape: found 1, expected 2")

    assert call(monkeypatch, run) == 1
    assert capsys.readouterr().err == "rawcoll: x: shape: found 1, expected 2\n"


def test_wrong_usage_exits_with_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(_: argparse.Namespace) -> int:
        raise frame.UsageError("these two do not go together")

    with pytest.raises(SystemExit, match="2"):
        call(monkeypatch, run)
    said = capsys.readouterr().err
    assert said.startswith("usage: rawcoll try")
    assert said.endswith("rawcoll try: error: these two do not go together\n")


def test_only_the_first_rank_says_what_is_wrong(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    slept: list[float] = []
    monkeypatch.setattr(frame.time, "sleep", slept.append)
    monkeypatch.setenv("PMI_RANK", "1")
    with pytest.raises(SystemExit, match="2"):
        call(monkeypatch, lambda _: 0, "--nonsense")
    assert capsys.readouterr().err == ""
    assert slept == [5.0], "the launcher may end the job at once, and rank 0 with it"


@pytest.mark.parametrize(
    ("environment", "speaks"),
    [
        ({}, True),
        ({"PMI_RANK": "0"}, True),
        ({"PMIX_RANK": "2"}, False),
        ({"OMPI_COMM_WORLD_RANK": "0", "PMIX_RANK": "0", "SLURM_PROCID": "5"}, True),
    ],
)
def test_which_rank_speaks(environment: dict[str, str], speaks: bool) -> None:
    assert frame.speaks(environment) is speaks


def test_the_help_names_the_commands() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "rawcoll", "--help"], capture_output=True, text=True, check=True
    )
    assert "bench" in done.stdout
    missing = subprocess.run(
        [sys.executable, "-m", "rawcoll"], capture_output=True, text=True, check=False
    )
    assert missing.returncode == 2
    assert "usage: rawcoll" in missing.stderr

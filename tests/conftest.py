"""Options, profiles and fixtures of the whole suite."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import mpilaunch
import pytest
from hypothesis import settings
from support import launcher
from support.jobs import Jobs

# No deadline: a shared two-core machine stalls now and then. CI looks at the same examples in every
# run, so that a red run is about the change; by hand, each run looks at new ones.
settings.register_profile("local", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "local")

_FOLDER_MARKS = {"mpi": "mpi", "faults": "mpi", "gpu": "gpu"}
_JOBS = pytest.StashKey[Jobs]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="write the golden files anew instead of comparing with them; review the diff",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_JOBS] = Jobs()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark by folder, so that ``-m mpi`` and ``-m "not gpu"`` mean what they say."""
    for item in items:
        folder = item.path.relative_to(Path(__file__).parent).parts[0]
        if folder in _FOLDER_MARKS:
            item.add_marker(_FOLDER_MARKS[folder])


def pytest_collection_finish(session: pytest.Session) -> None:
    session.config.stash[_JOBS].select(session.items)


@pytest.fixture(scope="session")
def mpi_jobs(request: pytest.FixtureRequest) -> Jobs:
    """The jobs of ``support.cases``; used by the tests that it makes."""
    return request.config.stash[_JOBS]


@pytest.fixture(scope="session")
def mpirun() -> Callable[..., object]:
    """``support.launcher.mpirun``; skips the test where no MPI is installed."""
    try:
        mpilaunch.find_mpirun()
    except FileNotFoundError as missing:
        pytest.skip(str(missing))
    return launcher.mpirun


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """``golden("ring-4.txt", text)``: the text equals the committed file of tests/golden.

    With ``--update-golden`` the file is written instead.
    """
    folder = Path(__file__).parent / "golden"

    def compare(name: str, text: str) -> None:
        file = folder / name
        if request.config.getoption("--update-golden"):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        assert file.exists(), f"golden: no file {file}: run with --update-golden and review it"
        assert text == file.read_text(), (
            f"golden: differs from {file} (--update-golden rewrites it)"
        )

    return compare

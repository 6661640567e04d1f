"""One rank of a job of cases: ``python -m support.rank MODULE_FILE RESULTS_DIR TIMEOUT_S``.

The names of the cases come from ``RESULTS_DIR/cases.json``. Every rank appends to its own file,
so that after a hang or a crash each event until then is there:

    {"case": ..., "event": "start"}
    {"case": ..., "event": "end", "outcome": "passed" | "failed" | "skipped", "text": ...}

and to another the stacks of its threads when a case runs past the time limit. After each case the
ranks wait for each other. When one left a case that the others are still in, their state is past
repair: the job ends, and the caller starts another for the cases that are left.
"""

from __future__ import annotations

import faulthandler
import importlib.util
import json
import os
import sys
import time
import traceback
from pathlib import Path
from typing import Any

from support.cases import Case, SkipCase, find_cases

# How long a rank waits for others to come out of the case that it has left with an error; when it
# was no error, they get the whole time limit of a case.
GRACE_S = 5.0


class Fixtures:
    """What a case may ask for by name. Made at first use; ``comm`` anew after a failed case."""

    def __init__(self) -> None:
        from mpi4py import MPI

        self.mpi: Any = MPI.COMM_WORLD
        self._comm: Any = None

    @property
    def comm(self) -> Any:
        """The communicator that ``rawcoll.init()`` gives."""
        if self._comm is None:
            import rawcoll

            self._comm = rawcoll.init()
        return self._comm

    def forget_comm(self) -> None:
        """Do not use the communicator again: its ranks may have left a case at different points."""
        self._comm = None

    def close(self) -> None:
        """Close the communicator; collective."""
        if self._comm is not None:
            self._comm.close()


def run_case(case: Case, fixtures: Fixtures) -> tuple[str, str]:
    """Run one case on this rank. Returns its outcome and the text that belongs to it."""
    try:
        values = {name: getattr(fixtures, name) for name in case.fixtures}
        case.function(**case.arguments, **values)
    except SkipCase as reason:
        return "skipped", str(reason)
    except Exception:
        return "failed", traceback.format_exc()
    return "passed", ""


def all_left(control: Any, failed: bool, limit_s: float) -> bool | None:
    """Wait until every rank has left the case. Returns whether any failed; None: not all came."""
    import numpy as np
    from mpi4py import MPI

    mine, anywhere = np.array([failed], "i4"), np.zeros(1, "i4")
    request = control.Iallreduce(mine, anywhere, op=MPI.MAX)
    deadline = time.monotonic() + (GRACE_S if failed else limit_s + GRACE_S)
    while not request.Test():
        if time.monotonic() > deadline:
            return None
        time.sleep(0.0002)
    return bool(anywhere[0])


def load(file: str) -> dict[str, Case]:
    """Import a test module by its path and return its cases."""
    spec = importlib.util.spec_from_file_location(Path(file).stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return find_cases(vars(module))


def main(file: str, results: Path, limit_s: float) -> None:
    """Run the chosen cases of the module on this rank."""
    names = json.loads((results / "cases.json").read_text())
    cases, fixtures = load(file), Fixtures()
    control, rank = fixtures.mpi.Dup(), fixtures.mpi.rank
    with (
        open(results / f"{rank}.jsonl", "a", buffering=1) as events,
        open(results / f"{rank}.stacks", "a") as stacks,
    ):

        def tell(**event: Any) -> None:
            events.write(json.dumps(event) + "\n")

        for name in names:
            tell(case=name, event="start")
            faulthandler.dump_traceback_later(limit_s, file=stacks)
            outcome, text = run_case(cases[name], fixtures)
            faulthandler.cancel_dump_traceback_later()
            tell(case=name, event="end", outcome=outcome, text=text)
            # From here on only this wait can block: its stack would say nothing of the case.
            any_failed = all_left(control, outcome == "failed", limit_s)
            if any_failed is None:
                sys.stderr.write(f"rank {rank}: not all ranks left {name}: ending the job\n")
                sys.stderr.flush()
                sys.stdout.flush()
                os._exit(3)
            if any_failed:
                fixtures.forget_comm()
        fixtures.close()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), float(sys.argv[3]))

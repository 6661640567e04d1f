"""The digits example trains, repeats its bits, and agrees with one process."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from support.launcher import ROOT

pytest.importorskip("sklearn")
EXAMPLE = ROOT / "examples" / "digits_numpy.py"


def _bits(output: str) -> tuple[list[str], str]:
    """The losses to all digits, and the digest of the parameters."""
    losses = re.findall(r"^ +\d+  (\d\.\d{15})  ", output, re.MULTILINE)
    (digest,) = re.findall(r"parameters (\w{16}), the same bits on all ranks: True", output)
    return losses, digest


@pytest.mark.parametrize("nranks", [1, 2, 5])
def test_digits(mpirun: Callable[..., Any], nranks: int) -> None:
    first = mpirun(nranks, [EXAMPLE, "--check-single"], check=True).stdout
    losses, _ = _bits(first)
    assert len(losses) == 8
    assert float(losses[-1]) < 0.15 < float(losses[0])
    assert "largest difference from one process" in first
    accuracies = re.findall(r"  (0\.\d{4})  ", first)
    assert float(accuracies[-1]) > 0.94
    if nranks == 5:
        second = mpirun(nranks, [EXAMPLE], check=True).stdout
        assert _bits(second) == _bits(first)

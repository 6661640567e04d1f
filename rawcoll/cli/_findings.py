"""Findings of ``rawcoll doctor``, and how they are printed.

Key terms: a finding is *fine*, only worth knowing (*note*), a *warning* (it works, but badly), or
*broken* (rawcoll cannot be used); all but the fine ones may have the command that mends them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

FINE: Final = "ok"
NOTE: Final = "-"
WARNING: Final = "WARNING"
BROKEN: Final = "BROKEN"


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report.

    Attributes:
        grade: FINE, NOTE, WARNING or BROKEN.
        topic: what was looked at.
        fact: what was found.
        mend: the command, or what else to do; empty where nothing is to be done.
    """

    grade: str
    topic: str
    fact: str
    mend: str = ""


Examine = Callable[[], Iterable[Finding]]


def found_by(topic: str, examine: Examine) -> list[Finding]:
    """What an examination finds; an examination that fails is a finding itself."""
    try:
        return list(examine())
    except Exception as error:  # a report with a hole in it is better than none
        return [Finding(WARNING, topic, f"could not be examined: {type(error).__name__}: {error}")]


def lines_of(title: str, findings: Iterable[Finding]) -> Iterator[str]:
    """A section of the report."""
    yield title
    for finding in findings:
        yield f"  {finding.grade:8} {finding.topic:12} {finding.fact}"
        if finding.mend:
            yield f"  {'':8} {'':12}   to mend: {finding.mend}"

"""`rawcoll show`: the text parses back, the picture is XML and has what the schedule has."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from rawcoll.algorithms.catalog import algorithm_from
from rawcoll.algorithms.prove import programs
from rawcoll.cli._columns import columns_of, units_label
from rawcoll.cli.main import main
from rawcoll.errors import InvalidArgument
from rawcoll.schedule.metrics import metrics
from rawcoll.schedule.ops import OUTPUT, Span
from rawcoll.schedule.text import digest, parse, parse_schedule

SVG = "{http://www.w3.org/2000/svg}"

MINE_FIRST = """
def careless(rank, nranks, b):
    whole, theirs = b.span(0, 1), b.span(0, 1, b.scratch(0, 1))
    b.send(0, 1 - rank, whole)
    b.recv(0, 1 - rank, theirs)
    b.reduce(0, (whole, theirs), whole, last=True)
"""


def _body(shown: str) -> str:
    return "\n".join(line for line in shown.splitlines() if not line.startswith("#"))


@pytest.mark.parametrize("form", [[], ["--out-of-place"]])
def test_text_parses_back_and_its_head_counts(capsys, form: list[str]) -> None:
    assert main(["show", "ring(segments=2)", "all_reduce", "-n", "3", *form]) == 0
    shown = capsys.readouterr().out
    schedule = programs(algorithm_from("ring(segments=2)"), "all_reduce", 3, 0, in_place=not form)
    assert parse_schedule(_body(shown)) == schedule
    assert f"# schedule    {digest(schedule)}\n" in shown
    assert "# rounds      8\n" in shown
    assert "# roundings   2\n" in shown
    assert "# proved      yes\n" in shown


def test_one_rank(capsys) -> None:
    assert main(["show", "tree", "broadcast", "-n", "5", "--root", "2", "--rank", "4"]) == 0
    program = parse(_body(capsys.readouterr().out))
    assert (program.spec.rank, program.spec.root) == (4, 2)


@pytest.mark.parametrize(
    ("algorithm", "collective", "nranks"),
    [
        ("ring", "all_reduce", 4),
        ("direct", "all_to_all", 5),
        ("hierarchical(levels=0-1-2/3-4)", "all_reduce", 5),
        ("builtin", "gather", 3),
        ("ring", "all_reduce", 1),
        ("two_shot(segments=4)", "all_reduce", 16),
    ],
)
def test_picture_is_xml_with_an_arrow_a_pair_and_round(
    tmp_path: Path, algorithm: str, collective: str, nranks: int
) -> None:
    file = tmp_path / "shown.svg"
    assert main(["show", algorithm, collective, "-n", str(nranks), "-o", str(file)]) == 0
    root = ElementTree.parse(file).getroot()
    words = [text.text or "" for text in root.iter(f"{SVG}text")]
    assert [f"rank {rank}" in words for rank in range(nranks)] == [True] * nranks
    columns = columns_of(programs(algorithm_from(algorithm), collective, nranks))
    assert len(list(root.iter(f"{SVG}polygon"))) == sum(len(column.arrows) for column in columns)
    assert "href" not in file.read_text()


def test_columns_hold_all_messages_and_reductions() -> None:
    schedule = programs(algorithm_from("halving"), "all_reduce", 6)
    columns = columns_of(schedule)
    assert [column.round for column in columns] == sorted(column.round for column in columns)
    assert len(columns) == metrics(schedule).rounds
    nreduces = sum(rank.reduces > 0 for rank in metrics(schedule).ranks)
    assert len({mark.rank for column in columns for mark in column.marks}) == nreduces
    assert {mark.kind for column in columns for mark in column.marks} == {"reduce", "last"}


def test_copies_before_the_first_round_have_a_column() -> None:
    columns = columns_of(programs(algorithm_from("ring"), "all_gather", 3, in_place=False))
    assert columns[0].round is None
    assert [(mark.rank, mark.label) for mark in columns[0].marks] == [(0, "0"), (1, "1"), (2, "2")]


def test_units_in_short() -> None:
    def label(*ranges: tuple[int, int]) -> str:
        return units_label(Span(OUTPUT, start, stop) for start, stop in ranges)

    assert label((3, 4)) == "3"
    assert label((3, 5), (5, 6)) == "3:6"
    assert label((4, 5), (0, 1), (2, 3), (6, 7), (8, 10)) == "0 2 4 +2"


def test_title_is_escaped(tmp_path: Path) -> None:
    from rawcoll.cli._drawing import draw

    schedule = programs(algorithm_from("ring"), "all_reduce", 2)
    shown = draw(schedule, "a<b>&\x00", '"quoted"')
    assert "a&lt;b&gt;&amp;\N{REPLACEMENT CHARACTER}" in shown
    ElementTree.fromstring(shown.encode())


def test_a_schedule_that_does_not_prove_is_shown_and_fails(capsys, tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(MINE_FIRST)
    assert main(["show", f"{file}:careless", "-n", "2"]) == 1
    shown = capsys.readouterr()
    assert "# proved      no\n" in shown.out
    assert len(parse_schedule(_body(shown.out)).programs) == 2
    assert "not 'mine first'" in shown.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nope"], "algorithm: unknown name: found 'nope', expected one of binomial"),
        (["ring", "reduce"], "ring does not offer the collective: found 'reduce'"),
        (["ring", "-n", "0"], "nranks: out of range: found 0, expected at least 1"),
        (["ring", "--rank", "4"], "rank: out of range: found 4, expected 0 to 3"),
        (["ring", "--root", "1"], "root: all_reduce has none: found 1"),
        (["direct", "-n", "65", "--format", "svg"], "svg: too many ranks for a picture: found 65"),
        (["ring(segments=99)", "--format", "svg"], "svg: too many rounds for a picture: found 594"),
        (["ring", "-o", "/nowhere/x"], "output: cannot be written: "),
    ],
)
def test_what_cannot_be_shown_is_said(capsys, arguments: list[str], message: str) -> None:
    assert main(["show", *arguments]) == 1
    assert message in capsys.readouterr().err


def test_a_picture_of_one_rank_is_wrong_usage(capsys) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["show", "ring", "--rank", "0", "--format", "svg"])
    assert "--rank: a picture shows all ranks" in capsys.readouterr().err


def test_only_rank_0_of_a_job_speaks(capsys, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PMI_RANK", "1")
    assert main(["show", "ring"]) == 0
    assert capsys.readouterr().out == ""


def test_too_large_is_an_invalid_argument() -> None:
    from rawcoll.cli._drawing import draw

    with pytest.raises(InvalidArgument, match="expected at most 64"):
        draw(programs(algorithm_from("binomial"), "reduce", 65), "", "")

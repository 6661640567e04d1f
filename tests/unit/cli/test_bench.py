from __future__ import annotations

import io

import pytest

from rawcoll.bench.options import ALL_ROOTS, Floor, Options
from rawcoll.cli import bench
from rawcoll.cli.main import UsageError, make_parser


def options(text: str) -> Options:
    arguments = make_parser([bench]).parse_args(["bench", *text.split()])  # type: ignore[list-item]
    return bench.options_from(arguments)


def test_without_flags_the_defaults_are_nccl_tests() -> None:
    assert options("all_reduce") == Options()
    assert options("alltoall").collective == "alltoall"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("-b8 -e1K -f2", Options(min_nbytes=8, max_nbytes=1024, step_factor=2)),
        ("-b 8 -e 1K -f 2", Options(min_nbytes=8, max_nbytes=1024, step_factor=2)),
        ("-b=8 -e=1K -f=2", Options(min_nbytes=8, max_nbytes=1024, step_factor=2)),
        (
            "--minbytes 8 --maxbytes=1K --stepfactor 2",
            Options(min_nbytes=8, max_nbytes=1024, step_factor=2),
        ),
        ("-i 4M -e 64M", Options(step_nbytes=4 << 20, max_nbytes=64 << 20)),
        (
            "-n5 -w0 -m2 -N0 -c0 -a3",
            Options(iters=5, warmup=0, agg=2, cycles=0, check=0, average=3),
        ),
        (
            "-oall -dhalf -rall -z1",
            Options(
                ops=("sum", "prod", "max", "min", "avg"),
                dtypes=("half",),
                root=ALL_ROOTS,
                blocking=1,
            ),
        ),
        ("-T 30 -I -J out.json", Options(timeout_s=30, per_iteration=True, json_path="out.json")),
        ("-T 0", Options()),
        ("-t 1 -g 1 -G 0 -p0", Options()),
        (
            "--algorithms ring(segments=4,order=0-1),builtin",
            Options(algorithms=("ring(segments=4,order=0-1)", "builtin")),
        ),
        (
            "--min-busbw 20@32M --plot p.png --mmap-threshold 1G",
            Options(floors=(Floor(20, 32 << 20),), plot_path="p.png", mmap_threshold=1 << 30),
        ),
    ],
)
def test_flags(text: str, wanted: Options) -> None:
    assert options(f"all_reduce {text}") == wanted


def test_a_comparison_has_sizes_and_algorithms_of_its_own() -> None:
    found = options("all_reduce --compare")
    assert (found.min_nbytes, found.max_nbytes, found.step_factor) == (1 << 10, 64 << 20, 4)
    assert found.algorithms == ("all",)
    given = options("all_reduce --compare -b 8 -e 8 --algorithms ring --baseline builtin")
    assert (list(given.sizes()), given.algorithms, given.baseline) == ([8], ("ring",), "builtin")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("all_reduce -g 2", "argument -g/--ngpus: only 1: a rank has one device"),
        ("all_reduce -G 5", "argument -G/--cudagraph: only 0: there is no graph to capture"),
        ("all_reduce -t 4", "argument -t/--nthreads: only 1"),
        ("all_reduce -b 8X", "argument -b/--minbytes: invalid size: found '8X'"),
        ("all_reduce -d f8e4m3", "unknown datatype: found 'f8e4m3', expected one of int8"),
        ("all_reduce -o mulsum", "unknown reduction: found 'mulsum'"),
        ("all_reduce -n 0", "expected at least 1"),
        ("all_reduce -a 4", "invalid choice"),
        ("all_reduce --algorithms ring(", "unbalanced parentheses"),
        ("all_reduce --min-busbw 20", "expected GBPS@SIZE as in 20@64M"),
        ("allreduce", "invalid choice: 'allreduce'"),
        ("", "the following arguments are required: COLLECTIVE"),
    ],
)
def test_wrong_flags(text: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        options(text)
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("-b 64M", "invalid sizes for 'minbytes' and 'maxbytes': 67108864 > 33554432"),
        ("--min-busbw 20@64M", "67108864 bytes is none of the measured sizes"),
        ("--compare -I", "per_iteration: has no meaning with --compare"),
        ("--baseline mpi", "baseline: has no meaning without --compare"),
    ],
)
def test_flags_that_do_not_go_together(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        options(f"all_reduce {text}")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_is_shown_on_a_terminal_only() -> None:
    terminal, file = Terminal(), io.StringIO()
    bench._progress(terminal)("ring: 8 B")
    bench._progress(file)("ring: 8 B")
    assert terminal.getvalue() == "\r\x1b[Kring: 8 B\r"
    assert file.getvalue() == ""

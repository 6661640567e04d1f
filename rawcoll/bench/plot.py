"""A picture of bus bandwidth over size, a line an algorithm. Imports matplotlib when drawing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

from rawcoll.errors import BackendUnavailable, InvalidArgument

Points = Sequence[tuple[int, float]]


def check_can_plot(path: str) -> None:
    """Raise BackendUnavailable or InvalidArgument now, rather than after the measurement."""
    if find_spec("matplotlib") is None:
        raise BackendUnavailable("plot: matplotlib is missing: pip install 'rawcoll[plot]'")
    if Path(path).suffix not in (".png", ".svg", ".pdf"):
        raise InvalidArgument(f"plot: unknown kind of file: found {path!r}, expected .png or .svg")
    if not Path(path).resolve().parent.is_dir():
        raise InvalidArgument(f"plot: no such folder: found {Path(path).parent}")


def draw(path: str, title: str, lines: Mapping[str, Points]) -> None:
    """Write the picture; the kind of file is its suffix.

    Args:
        path: the file.
        title: above the picture.
        lines: for each label, (bytes, GB/s) ascending.
    """
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter

    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.add_subplot()
    for label, points in lines.items():
        shown = [(size, rate) for size, rate in points if size > 0 and rate > 0]
        axes.plot(*zip(*shown, strict=True) if shown else ([], []), marker="o", label=label)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda size, _: size_text(int(size))))
    axes.set(title=title, xlabel="size", ylabel="bus bandwidth (GB/s)")
    axes.grid(visible=True, which="both", alpha=0.3)
    axes.legend()
    figure.savefig(path)


def size_text(nbytes: int) -> str:
    """A size in the largest 1024-based unit that keeps it whole."""
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if nbytes >= unit and nbytes % unit == 0:
            return f"{nbytes // unit} {name}"
    return f"{nbytes} B"

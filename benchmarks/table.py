"""The README's table and picture, from the committed results.

Usage: ``python benchmarks/table.py [--readme README.md] [--plot docs/all_reduce.svg]``

Prints the table as Markdown; with ``--readme`` replaces what stands in that file between the lines
``<!-- benchmarks: begin -->`` and ``<!-- benchmarks: end -->``. Sizes without a result are left out.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import common

from rawcoll.bench.plot import size_text

BEGIN, END = "<!-- benchmarks: begin -->", "<!-- benchmarks: end -->"
FAMILIES = {"mpich": "MPICH", "openmpi": "Open MPI"}
RANKS = (2, 4)
SHOWN = tuple(n * common.MIB for n in (1, 4, 16, 64))


def all_reduce_results(suffix: str = "") -> dict[tuple[str, int], dict[str, Any]]:
    """The documents of the all_reduce suite that exist, by MPI and ranks."""
    keys = [(family, nranks) for family in FAMILIES for nranks in RANKS]
    found = {key: common.read_result(f"all_reduce-{key[0]}-{key[1]}{suffix}") for key in keys}
    return {key: document for key, document in found.items() if document is not None}


def all_reduce_table(suffix: str = "") -> list[str]:
    """Best own algorithm at each large size, and the geometric mean."""
    lines = [
        "| MPI | ranks | " + " | ".join(map(size_text, SHOWN)) + " | geometric mean | `auto` |",
        "|---|---|" + "---|" * (len(SHOWN) + 2),
    ]
    for (family, nranks), document in all_reduce_results(suffix).items():
        best = document["best_own"]
        cells = [
            f"{best[str(size)]['ratio']:.2f} {best[str(size)]['label']}"
            if str(size) in best
            else ""
            for size in SHOWN
        ]
        means = [f"**{document['best_own_ratio']:.2f}**", f"{document['auto_ratio']:.2f}"]
        lines.append(f"| {FAMILIES[family]} | {nranks} | " + " | ".join([*cells, *means]) + " |")
    return lines


def latency_table() -> list[str]:
    """What 8 bytes cost above MPI's own call."""
    lines = [
        "| MPI | call | `plan.run()` | `plan.start().wait()` | MPI's own |",
        "|---|---|---|---|---|",
    ]
    for family, name in FAMILIES.items():
        document = common.read_result(f"latency-{family}-2")
        if document is None:
            continue
        above, times = document["above_mpi_us"], document["time_us"]
        cells = [
            f"+{above[key]['value']:.1f} us [{above[key]['low']:.1f}, {above[key]['high']:.1f}]"
            for key in ("call", "plan_run", "plan_start_wait")
        ]
        lines.append(f"| {name} | " + " | ".join(cells) + f" | {times['mpi']['value']:.1f} us |")
    return lines


def library_table() -> list[str]:
    """The best of each MPI's own algorithms, and Gloo, beside rawcoll's automatic choice."""
    lines = [
        "| compared with rawcoll's `auto` | ranks | its time over rawcoll's |",
        "|---|---|---|",
    ]
    for family, name in FAMILIES.items():
        for nranks in RANKS:
            document = common.read_result(f"mpi_algorithms-{family}-{nranks}")
            if document is not None:
                lines += [
                    f"| {name}: {label} | {nranks} | {ratio:.2f} |"
                    for label, ratio in best_algorithms(document)
                ]
            document = common.read_result(f"gloo-{family}-{nranks}")
            if document is not None:
                lines.append(
                    f"| Gloo (beside {name}) | {nranks} | {document['gloo_over_auto']:.2f} |"
                )
    return lines


def best_algorithms(document: dict[str, Any]) -> list[tuple[str, float]]:
    """The library's default and the best that it has, by geometric mean over the large sizes."""
    from rawcoll.bench.stats import geometric_mean

    means = {
        name: geometric_mean(
            [row["mpi_over_auto"]["median"] for row in found["rows"] if row["size"] in SHOWN]
        )
        for name, found in document["results"].items()
        if "rows" in found
    }
    best = min(means, key=lambda name: means[name])
    names = dict.fromkeys(name for name in ("default", best) if name in means)
    return [(name if name == "default" else f"its best, {name}", means[name]) for name in names]


def markdown() -> str:
    """All tables."""
    results = all_reduce_results()
    cpus = {document["environment"]["cpu"] for document in results.values()}
    cores = {len(document["environment"]["affinity"]) for document in results.values()}
    parts = [
        (
            "Time of `MPI_Allreduce(MPI_IN_PLACE)` over the time of the best of rawcoll's own "
            "algorithms, float32, in place "
            f"({', '.join(sorted(cpus))}; {', '.join(map(str, sorted(cores)))} cores):"
        ),
        "",
        *all_reduce_table(),
    ]
    if all_reduce_results("-shared"):
        parts += [
            "",
            (
                "The same on arrays made by `comm.empty`, which ranks of a node share (`-R 1`); MPI "
                "gets the same arrays:"
            ),
            "",
            *all_reduce_table("-shared"),
        ]
    if all_reduce_results("-mmap"):
        parts += [
            "",
            (
                "The first table with the allocator's mmap threshold raised, so that MPI's temporary "
                "buffers do not fault on each call:"
            ),
            "",
            *all_reduce_table("-mmap"),
        ]
    for title, table in (
        ("A warm 8-byte all-reduce, 2 ranks, above MPI's own call:", latency_table()),
        ("Other algorithms, geometric mean over 1 to 64 MiB:", library_table()),
    ):
        if len(table) > 2:
            parts += ["", title, "", *table]
    return "\n".join(parts)


def replace_section(readme: Path, text: str) -> None:
    """Put the tables between the two marks of the file."""
    before, begin, rest = readme.read_text().partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"{readme}: found no section between {BEGIN} and {END}")
    readme.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}")


def draw(path: str) -> None:
    """Bus bandwidth over size: one picture for each MPI and number of ranks."""
    from matplotlib.figure import Figure

    results = all_reduce_results()
    figure = Figure(figsize=(6 * max(1, len(results)), 4.5), layout="constrained")
    axes = figure.subplots(1, max(1, len(results)), squeeze=False, sharey=True)[0]
    for axis, ((family, nranks), document) in zip(axes, results.items(), strict=False):
        labels = dict.fromkeys(row["label"] for row in document["results"])
        for label in labels:
            rows = [r for r in document["results"] if r["label"] == label and r["size"] >= 1024]
            style = {"color": "black", "linewidth": 2} if label == "mpi" else {}
            axis.plot(
                [r["size"] for r in rows],
                [r["in_place"]["bus_bw"] for r in rows],
                marker="o",
                markersize=3,
                label=label,
                **style,
            )
        axis.set_xscale("log", base=2)
        axis.set_yscale("log")
        axis.xaxis.set_major_formatter(lambda size, _: size_text(int(size)))
        axis.set(title=f"{FAMILIES[family]}, {nranks} ranks", xlabel="size")
        axis.grid(visible=True, alpha=0.3)
    axes[0].set_ylabel("bus bandwidth (GB/s)")
    axes[-1].legend(fontsize="small")
    figure.savefig(path)


def main() -> None:
    """Print the tables, or put them where they belong."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--readme", type=Path)
    parser.add_argument("--plot")
    given = parser.parse_args()
    text = markdown()
    if given.readme:
        replace_section(given.readme, text)
    else:
        print(text)
    if given.plot:
        draw(given.plot)


if __name__ == "__main__":
    main()

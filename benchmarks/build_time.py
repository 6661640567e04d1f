"""How long it takes to build one rank of 4,096, and to prove every algorithm at 64 ranks.

Usage: ``python benchmarks/build_time.py [--nranks 4096] [--repeats 5]``. Needs no MPI. Writes
``results/build_time.json``.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import common

from rawcoll.algorithms.catalog import ALGORITHMS, algorithm_from
from rawcoll.algorithms.prove import prove
from rawcoll.errors import RawcollError
from rawcoll.schedule.program import Spec

PROVED_NRANKS = 64
# With one segment, like the limit that is stated for the ring.
TEXTS = {"ring": "ring(segments=1)", "two_shot": "two_shot(segments=1)", "tree": "tree(segments=1)"}


def texts(nranks: int) -> list[str]:
    """Every algorithm as it is built for ``nranks``; hierarchical as nodes of eight."""
    nodes = "/".join("-".join(map(str, range(n, n + 8))) for n in range(0, nranks, 8))
    texts = TEXTS | {"hierarchical": f"hierarchical(levels={nodes})"}
    return [texts.get(name, name) for name in ALGORITHMS if name != "builtin"]


def seconds(call: Callable[[], Any], repeats: int) -> list[float]:
    """How long each of the calls took."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return times


def build(text: str, nranks: int, repeats: int) -> dict[str, Any]:
    """Times of every collective that the algorithm offers, for ranks at the ends and the middle."""
    algorithm = algorithm_from(text)
    found: dict[str, Any] = {}
    for collective in sorted(algorithm.collectives):
        times, steps = [], 0
        try:
            for rank in (0, 1, nranks // 2 - 1, nranks - 1):
                spec = Spec(collective, rank, nranks)
                steps = max(steps, len(algorithm.program(spec).steps))
                times += seconds(lambda spec=spec: algorithm.program(spec), repeats)  # type: ignore[misc]
        except RawcollError as error:
            found[collective] = {"refused": str(error)}
            continue
        found[collective] = {
            "median_ms": round(statistics.median(times) * 1e3, 3),
            "max_ms": round(max(times) * 1e3, 3),
            "steps": steps,
        }
    return found


def prove_all(nranks: int) -> dict[str, float | str]:
    """Seconds that each proof takes, all collectives of an algorithm together."""
    found: dict[str, float | str] = {}
    for text in texts(nranks):
        algorithm = algorithm_from(text)
        start = time.perf_counter()
        try:
            for collective in sorted(algorithm.collectives):
                prove(algorithm, collective, nranks)
        except RawcollError as error:
            found[text.partition("(")[0]] = f"refused: {error}"
            continue
        found[text.partition("(")[0]] = round(time.perf_counter() - start, 3)
        print(f"proved {text.partition('(')[0]} at {nranks} ranks", flush=True)
    return found


def main() -> None:
    """Run the suite."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--nranks", type=int, default=4096)
    parser.add_argument("--repeats", type=int, default=5)
    given = parser.parse_args()
    built: dict[str, dict[str, Any]] = {}
    # Half as many ranks beside it: near-linear means about half the time.
    for nranks in (given.nranks // 2, given.nranks):
        for text in texts(nranks):
            name = text.partition("(")[0]
            built.setdefault(name, {})[str(nranks)] = found = build(text, nranks, given.repeats)
            for collective, row in found.items():
                print(f"{name:14} {collective:15} {nranks:>5} {row}", flush=True)
    proofs = prove_all(PROVED_NRANKS)
    document = {
        **common.describe_run(),
        "what": "building the program of one rank, milliseconds; proving all ranks, seconds",
        "build": built,
        f"prove_{PROVED_NRANKS}_ranks_s": proofs,
    }
    print("wrote", common.write_result("build_time", document))


if __name__ == "__main__":
    main()

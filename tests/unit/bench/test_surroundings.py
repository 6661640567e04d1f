from __future__ import annotations

from pathlib import Path

import pytest

from rawcoll.bench import allocator, environment, plot
from rawcoll.errors import InvalidArgument


def test_only_variables_that_matter_are_recorded() -> None:
    found = environment.settings(
        {"RAWCOLL_ALGO": "ring", "SECRET_TOKEN": "x", "OMPI_MCA_btl": "self", "HOME": "/"}
    )
    assert found == ["OMPI_MCA_btl=self", "RAWCOLL_ALGO=ring"]


def test_cpu_model(tmp_path: Path) -> None:
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text("processor\t: 0\nmodel name\t: Some CPU: fast\nmodel name\t: other\n")
    assert environment.cpu_model(cpuinfo) == "Some CPU: fast"
    assert environment.cpu_model(tmp_path / "missing")


def test_oversubscription_is_said() -> None:
    assert environment.cores_line(2, 2) == "2 ranks on 2 cores of the affinity mask"
    assert "oversubscribed" in environment.cores_line(4, 2)


def test_threshold_beyond_a_c_int() -> None:
    with pytest.raises(InvalidArgument, match="mmap_threshold: too large"):
        allocator.keep_freed_memory(1 << 31)


def test_plot(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    for suffix in ("png", "svg"):
        path = tmp_path / f"picture.{suffix}"
        plot.check_can_plot(str(path))
        plot.draw(str(path), "title", {"ring": [(8, 0.1), (1024, 2.0)], "none": [(0, 0.0)]})
        assert path.stat().st_size > 1000
    with pytest.raises(InvalidArgument, match="unknown kind of file"):
        plot.check_can_plot("picture.doc")
    with pytest.raises(InvalidArgument, match="no such folder"):
        plot.check_can_plot(str(tmp_path / "no" / "picture.png"))


def test_sizes_in_words() -> None:
    assert [plot.size_text(n) for n in (8, 1024, 1 << 20, 3 << 20, 1 << 30, 1500)] == [
        "8 B",
        "1 KiB",
        "1 MiB",
        "3 MiB",
        "1 GiB",
        "1500 B",
    ]

"""RAWCOLL_* variables, and the handshake's comparison of what ranks say."""

from __future__ import annotations

import pytest

from rawcoll.comm.handshake import check_launcher, describe, refuse_differences
from rawcoll.config import DEFAULT_TIMEOUT_S, Settings, debug_level, settings_from, timeout_from
from rawcoll.errors import BackendUnavailable, InvalidArgument, RankMismatch


def test_nothing_set() -> None:
    assert settings_from({"PATH": "x"}) == Settings()
    assert Settings().timeout_s == DEFAULT_TIMEOUT_S
    assert debug_level({}) is None


def test_everything_set() -> None:
    found = settings_from(
        {
            "RAWCOLL_ALGO": " ring ; broadcast:tree(segments=2);",
            "RAWCOLL_CHECK": "1",
            "RAWCOLL_SHM": "0",
            "RAWCOLL_TIMEOUT_S": "2.5",
        }
    )
    assert found == Settings(
        algorithms=("ring", "broadcast:tree(segments=2)"),
        check=True,
        shared_memory=False,
        timeout_s=2.5,
    )
    assert debug_level({"RAWCOLL_DEBUG": "info"}) == "INFO"


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        (
            {"RAWCOLL_ALGORITHM": "ring"},
            "environment: unknown name: found 'RAWCOLL_ALGORITHM', expected one of RAWCOLL_ALGO, ",
        ),
        ({"RAWCOLL_CHECK": "on"}, "RAWCOLL_CHECK: found 'on', expected 0 or 1"),
        (
            {"RAWCOLL_TIMEOUT_S": "-1"},
            "RAWCOLL_TIMEOUT_S: found '-1', expected a positive number of seconds",
        ),
        ({"RAWCOLL_TIMEOUT_S": "nan"}, "RAWCOLL_TIMEOUT_S: found 'nan'"),
    ],
)
def test_values_that_do_not_parse(variables: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        settings_from(variables)
    assert message in str(refused.value)


def test_debug_levels_are_known() -> None:
    with pytest.raises(
        InvalidArgument, match="RAWCOLL_DEBUG: unknown name: found 'LOUD', expected one of DEBUG"
    ):
        debug_level({"RAWCOLL_DEBUG": "loud"})


@pytest.mark.parametrize("value", [0, -3, "x", [], float("nan")])
def test_time_limits(value: object) -> None:
    with pytest.raises(InvalidArgument, match=r"timeout_s: found .* expected a positive number"):
        timeout_from("timeout_s", value)  # type: ignore[arg-type]
    assert timeout_from("timeout_s", None) == DEFAULT_TIMEOUT_S
    assert timeout_from("timeout_s", float("inf")) == float("inf")


def test_launchers_that_agree_or_say_nothing() -> None:
    check_launcher(4, "MPI", {})
    check_launcher(4, "MPI", {"PMI_SIZE": "4"})
    check_launcher(4, "MPI", {"PMI_SIZE": "4", "WORLD_SIZE": "8"})
    check_launcher(4, "MPI", {"PMI_SIZE": "many"})


def test_launchers_that_disagree() -> None:
    with pytest.raises(BackendUnavailable) as refused:
        check_launcher(1, "Some MPI 5", {"OMPI_COMM_WORLD_SIZE": "4"})
    assert "found 1 in MPI, expected OMPI_COMM_WORLD_SIZE=4 (Open MPI's mpirun)" in str(
        refused.value
    )
    assert "'Some MPI 5', which did not join that job" in str(refused.value)


def test_differences_name_field_ranks_and_values() -> None:
    with pytest.raises(RankMismatch) as refused:
        refuse_differences([{"a": 1, "b": 2}, {"a": 1, "b": 3}, {"a": 1, "b": 2}, {"a": 1}], "call")
    assert str(refused.value) == (
        "call: b differs: found 2 on ranks 0, 2, 3 on rank 1, unset on rank 3, expected the same on all ranks"
    )
    assert refused.value.peers == (0, 1, 2, 3)
    refuse_differences([{"a": 1}] * 3)


def test_ranks_side_by_side_are_a_range() -> None:
    assert describe([8, 8, 8, 9]) == "8 on ranks 0-2, 9 on rank 3"

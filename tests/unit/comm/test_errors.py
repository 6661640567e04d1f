"""The error tree: fields, messages, pickling."""

from __future__ import annotations

import copy
import pickle

import pytest

import rawcoll
from rawcoll import errors
from rawcoll.errors import RawcollError, unknown_name

KINDS = [
    kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, RawcollError)
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "clone", [lambda e: pickle.loads(pickle.dumps(e)), copy.copy, copy.deepcopy]
)
def test_errors_pickle_with_their_fields(kind: type[RawcollError], clone) -> None:
    error = kind(
        "x: found 1, expected 2", rank=3, collective="reduce", sequence=7, round=0, peers=[1, 2]
    )
    found = clone(error)
    assert type(found) is kind
    assert str(found) == "x: found 1, expected 2" == found.message
    assert (found.rank, found.collective, found.sequence, found.round, found.peers) == (
        3,
        "reduce",
        7,
        0,
        (1, 2),
    )


@pytest.mark.parametrize("kind", KINDS)
def test_errors_are_public(kind: type[RawcollError]) -> None:
    assert getattr(rawcoll, kind.__name__) is kind
    assert kind.__name__ in rawcoll.__all__


def test_bad_arguments_are_value_errors_and_lost_peers_transport_errors() -> None:
    assert issubclass(rawcoll.InvalidArgument, ValueError)
    assert issubclass(rawcoll.PeerLost, rawcoll.TransportError)


def test_unknown_names_list_the_known_ones_in_order() -> None:
    error = unknown_name("op", "mean", ["sum", "avg"])
    assert str(error) == "op: unknown name: found 'mean', expected one of avg, sum"

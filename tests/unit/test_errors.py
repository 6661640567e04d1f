"""Errors: what they carry, and that they survive a trip between processes."""

from __future__ import annotations

import pickle

import pytest

from rawcoll import errors
from rawcoll.errors import InvalidArgument, PeerLost, RawcollError, TransportError, unknown_name

KINDS = [
    kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, RawcollError)
]


@pytest.mark.parametrize("kind", KINDS)
def test_errors_pickle_with_their_fields_and_notes(kind):
    error = kind("what", rank=1, collective="barrier", sequence=7, round=2, peers=[3, 4])
    error.add_note("seen at start")
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is kind
    assert str(again) == "what"
    assert vars(again) == vars(error)


def test_the_tree():
    assert issubclass(PeerLost, TransportError)
    assert issubclass(InvalidArgument, ValueError)
    assert all(kind.__doc__ for kind in KINDS)


def test_unknown_names_list_the_known_ones():
    error = unknown_name("op", "sun", ["sum", "max"])
    assert isinstance(error, InvalidArgument)
    assert str(error) == "op: unknown name: found 'sun', expected one of max, sum"

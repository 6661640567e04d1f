"""Taking in arrays: numpy and DLPack."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from rawcoll.device.arrays import NUMPY_DTYPES, dtype_from, host_array, new_array
from rawcoll.errors import InvalidArgument
from rawcoll.types import DTYPES


class Exporter:
    """An array of some library: numpy's memory behind DLPack alone."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()

    def __dlpack__(self, **options: object) -> object:
        return self.array.__dlpack__(**options)


@pytest.mark.parametrize("name", [name for name in DTYPES if name != "bfloat16"])
@pytest.mark.parametrize("shape", [(), (0,), (5,), (2, 3, 4), (1, 1)])
def test_dlpack_says_what_numpy_says(name: str, shape: tuple[int, ...]) -> None:
    x = np.zeros(shape, NUMPY_DTYPES[name])
    ours, theirs = host_array("x", x), host_array("x", Exporter(x))
    assert (theirs.dtype, theirs.shape, theirs.count) == (ours.dtype, ours.shape, ours.count)
    assert theirs.address == ours.address or x.size == 0
    assert theirs.nbytes == x.nbytes


def test_bfloat16_of_ml_dtypes() -> None:
    assert host_array("x", np.zeros(3, ml_dtypes.bfloat16)).dtype.name == "bfloat16"


def test_the_memory_is_kept_by_the_owner() -> None:
    import gc
    import weakref

    x = np.ones(1000)
    reference = weakref.ref(x)
    found = host_array("x", Exporter(x))
    del x
    gc.collect()
    assert reference() is not None
    del found
    gc.collect()
    assert reference() is None


def test_capsules_are_given_back() -> None:
    """Many imports leave nothing behind: the producer's reference count is as before."""
    import sys

    x = np.ones(3)
    exporter, before = Exporter(x), sys.getrefcount(x)
    for _ in range(1000):
        host_array("x", exporter)
    assert sys.getrefcount(x) <= before + 1


@pytest.mark.parametrize("writeable", [True, False])
def test_read_only(writeable: bool) -> None:
    x = np.ones(3)
    x.flags.writeable = False
    assert not host_array("x", x).writeable
    if writeable:
        with pytest.raises(
            InvalidArgument, match="x: read-only memory: found a read-only array, expected"
        ):
            host_array("x", x, writeable=True)


@pytest.mark.parametrize(
    "array",
    [
        np.zeros((4, 4)).T[1:],
        np.zeros(10)[::2],
        np.zeros(10)[::-1],
        np.asfortranarray(np.zeros((2, 3))),
    ],
)
def test_not_contiguous(array: np.ndarray) -> None:
    for given in (array, Exporter(array)):
        with pytest.raises(InvalidArgument, match="out: not contiguous: found strides"):
            host_array("out", given)


@pytest.mark.parametrize("value", [None, 3, "x", [1.0], np.float32(3), object()])
def test_not_an_array(value: object) -> None:
    with pytest.raises(InvalidArgument, match="x: not an array: found"):
        host_array("x", value)


@pytest.mark.parametrize("error", [BufferError, RuntimeError, ValueError])
def test_producers_that_refuse(error: type[Exception]) -> None:
    class Refuses:
        def __dlpack_device__(self) -> tuple[int, int]:
            return 1, 0

        def __dlpack__(self, **options: object) -> object:
            raise error("no")

    class Nowhere(Refuses):
        def __dlpack_device__(self) -> tuple[int, int]:
            raise error("no")

    with pytest.raises(InvalidArgument, match="x: DLPack export refused: found Refuses: no"):
        host_array("x", Refuses())
    with pytest.raises(InvalidArgument, match="x: wrong device: found Nowhere: no"):
        host_array("x", Nowhere())


@pytest.mark.parametrize("given", ["float32", np.float32, np.dtype("f4"), "f4"])
def test_dtype_from(given: object) -> None:
    assert dtype_from("dtype", given).name == "float32"


def test_new_arrays_are_numpys_for_numpy() -> None:
    assert new_array(np.ones(2), (3, 4), DTYPES["bfloat16"]).dtype == NUMPY_DTYPES["bfloat16"]

"""copy, address, errors, and the choice of implementation."""

from __future__ import annotations

import array
import threading
import warnings
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from unit.kernels.tables import Implementation, Memory, _native, implementations

from rawcoll.kernels import NumpyKernels, host, host_kernels
from rawcoll.types import DTYPES, Op

each = pytest.mark.parametrize("tested", implementations(), ids=lambda one: one.name)
needs_native = pytest.mark.skipif(_native is None, reason="the extension is not installed")
FLOAT32 = DTYPES["float32"].code
INT32 = DTYPES["int32"].code


@each
@pytest.mark.parametrize("nbytes", [0, 1, 7, 64, 4097, 100_003])
def test_copy(tested: Implementation, nbytes: int) -> None:
    source = np.arange(nbytes).astype(np.uint8)
    memory = Memory([np.zeros_like(source), source], 3)
    tested.kernels.copy(*memory.addresses, nbytes)
    assert memory.read(0).tobytes() == source.tobytes()
    memory.check_untouched(except_for=0)
    tested.kernels.copy(memory.addresses[0], memory.addresses[0], nbytes)
    assert memory.read(0).tobytes() == source.tobytes()


@each
def test_address_of_whatever_has_a_buffer(tested: Implementation) -> None:
    address = tested.kernels.address
    for dtype in (np.float32, np.int8, ml_dtypes.bfloat16):
        numbers = np.ones((3, 5), dtype)
        assert address(numbers) == numbers.ctypes.data
        assert address(numbers[1:]) == numbers.ctypes.data + numbers.strides[0]
        numbers.flags.writeable = False
        assert address(numbers) == numbers.ctypes.data
    values = array.array("d", [1, 2])
    assert address(values) == values.buffer_info()[0]
    assert address(memoryview(values)) == values.buffer_info()[0]
    assert address(b"read-only") != 0
    assert isinstance(address(np.empty(0)), int)


@each
def test_address_refuses_the_rest(tested: Implementation) -> None:
    with pytest.raises(TypeError):
        tested.kernels.address(3)
    for strided in (np.ones((4, 4))[:, 1], np.ones((4, 4)).T, memoryview(b"abcdef")[::2]):
        with pytest.raises(BufferError):
            tested.kernels.address(strided)


BAD_CALLS: list[tuple[str, tuple[Any, ...], str]] = [
    ("reduce", (4, FLOAT32, "dst", ("src",), 4, 1), "op: unknown code: found 4, expected 0 to 3"),
    ("reduce", (-1, FLOAT32, "dst", ("src",), 4, 1), "op: unknown code: found -1"),
    ("reduce", (0, 12, "dst", ("src",), 4, 1), "dtype: unknown code: found 12, expected 0 to 11"),
    ("reduce", (0, -1, "dst", ("src",), 4, 1), "dtype: unknown code: found -1"),
    ("reduce", (0, FLOAT32, "dst", (), 4, 1), "srcs: empty: found 0"),
    ("reduce", (0, FLOAT32, "dst", ("src",), 4, 0), "divisor: not positive: found 0"),
    ("reduce", (0, FLOAT32, "dst", ("src",), 4, -2), "divisor: not positive: found -2"),
    ("reduce", (2, FLOAT32, "dst", ("src",), 4, 2), "divisor: only a sum is divided: found 2"),
    ("reduce", (0, FLOAT32, 0, ("src",), 4, 1), "address: null"),
    ("reduce", (0, FLOAT32, "dst", ("src", 0), 4, 1), "address: null"),
    ("copy", (0, "src", 4), "address: null"),
    ("copy", ("dst", 0, 4), "address: null"),
    ("scale", (INT32, "dst", "src", 4, 2.0), "dtype: not a float: found 2, expected 8 to 11"),
    ("scale", (99, "dst", "src", 4, 2.0), "dtype: unknown code: found 99"),
    ("scale", (FLOAT32, 0, "src", 4, 2.0), "address: null"),
    ("cast", (12, "dst", FLOAT32, "src", 4), "dtype: unknown code: found 12"),
    ("cast", (FLOAT32, "dst", 50, "src", 4), "dtype: unknown code: found 50"),
    ("cast", (FLOAT32, "dst", FLOAT32, 0, 4), "address: null"),
]


@each
@pytest.mark.parametrize(("method", "arguments", "message"), BAD_CALLS)
def test_bad_calls(
    tested: Implementation, method: str, arguments: tuple[Any, ...], message: str
) -> None:
    values = np.ones(4, np.float32)
    memory = Memory([values, values * 2], 0)
    names = dict(zip(("dst", "src"), memory.addresses, strict=True))

    def resolved(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(map(resolved, value))
        return names.get(value, value) if isinstance(value, str) else value

    with pytest.raises(ValueError, match=message):
        getattr(tested.kernels, method)(*map(resolved, arguments))
    assert memory.read(0).tolist() == [1, 1, 1, 1]


@each
def test_nothing_is_read_where_there_is_nothing(tested: Implementation) -> None:
    tested.kernels.reduce(Op.SUM, FLOAT32, 0, (0, 0), 0, 1)
    tested.kernels.copy(0, 0, 0)
    tested.kernels.scale(FLOAT32, 0, 0, 0, 1.0)
    tested.kernels.cast(FLOAT32, 0, INT32, 0, 0)


@each
def test_wrong_types_are_type_errors(tested: Implementation) -> None:
    if tested.simd_level is None:
        pytest.skip("numpy leaves this to the first use of a value")
    with pytest.raises(TypeError):
        tested.kernels.reduce(0, FLOAT32, 1, ("x",), 0, 1)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        tested.kernels.reduce(0, FLOAT32, 1, [1], 0, 1)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        tested.kernels.reduce(0, FLOAT32, 1, (1,), -1, 1)


@needs_native
def test_large_work_lets_other_threads_run() -> None:
    """A thread that needs the interpreter makes progress while one call is under way."""
    source = np.ones(1 << 23, np.float64)
    at = _native.address(source)
    ticks, stop = [0], threading.Event()

    def tick() -> None:
        while not stop.is_set():
            ticks[0] += 1

    thread = threading.Thread(target=tick)
    thread.start()
    try:
        before = ticks[0]
        _native.reduce(Op.PROD, DTYPES["float64"].code, at, (at,) * 40, source.size, 1)
        assert ticks[0] > before
    finally:
        stop.set()
        thread.join()


@needs_native
def test_instruction_sets() -> None:
    levels = _native.simd_levels()
    assert levels[0] == "baseline"
    assert _native.build_info()["simd"] == levels[-1]
    with pytest.raises(
        ValueError, match=r"name: unknown or unsupported .* found mmx, expected one"
    ):
        _native.set_simd_level("mmx")


@pytest.fixture
def fresh_choice() -> Any:
    host.host_kernels.cache_clear()
    yield
    host.host_kernels.cache_clear()


@needs_native
@pytest.mark.usefixtures("fresh_choice")
def test_the_extension_is_the_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RAWCOLL_NATIVE", raising=False)
    assert host_kernels().name == "native"
    assert host_kernels() is host_kernels()


@pytest.mark.usefixtures("fresh_choice")
def test_numpy_on_request_is_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAWCOLL_NATIVE", "0")
    assert isinstance(host_kernels(), NumpyKernels)


@pytest.mark.usefixtures("fresh_choice")
def test_a_missing_extension_is_said_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RAWCOLL_NATIVE", raising=False)
    monkeypatch.delattr("rawcoll.native._native", raising=False)
    monkeypatch.setitem(__import__("sys").modules, "rawcoll.native._native", None)
    with pytest.warns(RuntimeWarning, match="pip install"):
        assert host_kernels().name == "numpy"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert host_kernels().name == "numpy"

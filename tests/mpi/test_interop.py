"""Arrays of other libraries, and numpy arrays of unusual kinds."""

from __future__ import annotations

from support.cases import each, mpi_cases, skip


def torch_or_skip():
    try:
        import torch
    except ImportError:
        skip("torch is not installed")
    return torch


def refused(pattern, call):
    import re

    from support.expected import error_of

    import rawcoll

    error = error_of(call)
    assert isinstance(error, rawcoll.InvalidArgument), repr(error)
    assert re.search(pattern, str(error)), str(error)


@each(
    name=["int8", "int16", "int32", "int64", "uint8", "float16", "bfloat16", "float32", "float64"]
)
def case_torch_dtypes(comm, name):
    torch = torch_or_skip()
    dtype = getattr(torch, name)
    x = torch.full((3, 5), comm.rank + 1, dtype=dtype)
    for algorithm in ("auto", "builtin"):
        out = torch.zeros((3, 5), dtype=dtype)
        assert comm.all_reduce(x, out, algorithm=algorithm) is out
        assert (out == comm.nranks * (comm.nranks + 1) // 2).all()
    assert comm.all_reduce(x, async_op=True).wait() is x
    assert (x == comm.nranks * (comm.nranks + 1) // 2).all()


def case_torch_results_are_torch(comm):
    torch = torch_or_skip()
    x = torch.full((2, 3), comm.rank, dtype=torch.bfloat16)
    found = comm.all_gather(x)
    assert isinstance(found, torch.Tensor)
    assert (found.dtype, tuple(found.shape)) == (torch.bfloat16, (comm.nranks, 2, 3))
    assert found[:, 0, 0].tolist() == list(range(comm.nranks))
    part = comm.reduce_scatter(torch.ones(comm.nranks, 4))
    assert tuple(part.shape) == (4,)
    assert (part == comm.nranks).all()


def case_torch_and_numpy_mix(comm, mpi):
    import numpy as np

    torch = torch_or_skip()
    x = (
        torch.full((6,), comm.rank + 1.0, dtype=torch.float64)
        if comm.rank % 2
        else np.full(6, comm.rank + 1.0)
    )
    comm.all_reduce(x)
    assert [float(v) for v in x] == [comm.nranks * (comm.nranks + 1) / 2] * 6


def case_torch_views_and_scalars(comm):
    torch = torch_or_skip()
    big = torch.zeros(10, dtype=torch.float32)
    comm.all_reduce(big[3:7].fill_(1))
    assert big.tolist() == [0] * 3 + [comm.nranks] * 4 + [0] * 3
    scalar = torch.tensor(2.0)
    comm.all_reduce(scalar)
    assert float(scalar) == 2 * comm.nranks
    comm.all_reduce(torch.empty(0))
    comm.all_reduce(torch.empty((3, 0)))
    out = torch.zeros(4)
    peer = (comm.rank + 1) % comm.nranks, (comm.rank - 1) % comm.nranks
    comm.sendrecv(torch.full((4,), float(comm.rank)), out, *peer)
    assert (out == peer[1]).all()


def case_torch_refusals(comm):
    torch = torch_or_skip()
    refused("x: not contiguous", lambda: comm.all_reduce(torch.zeros(4, 5).t()))
    refused("x: not contiguous", lambda: comm.all_reduce(torch.zeros(10)[::2]))
    refused("x: .*refused", lambda: comm.all_reduce(torch.zeros(4, requires_grad=True)))
    refused("x: element type", lambda: comm.all_reduce(torch.zeros(4, dtype=torch.bool)))
    refused("x: element type", lambda: comm.all_reduce(torch.zeros(4, dtype=torch.complex64)))
    refused("x: ", lambda: comm.all_reduce(torch.zeros(4, device="meta")))
    refused("x: ", lambda: comm.all_reduce(torch.zeros(4).to_sparse()))
    # Its gradient and its data are plain.
    x = torch.ones(4, requires_grad=True)
    comm.all_reduce(x.detach())
    assert x.tolist() == [comm.nranks] * 4


def case_torch_parameter_gradients(comm):
    torch = torch_or_skip()
    weights = torch.ones(3, requires_grad=True)
    (weights * (comm.rank + 1)).sum().backward()
    comm.all_reduce(weights.grad, op="avg")
    assert weights.grad.tolist() == [(comm.nranks + 1) / 2] * 3


def case_memory_outlives_a_dropped_tensor(comm):
    import gc

    torch = torch_or_skip()
    works = [
        comm.all_gather(torch.full((20_000,), comm.rank, dtype=torch.int32), async_op=True)
        for _ in range(5)
    ]
    gc.collect()
    [torch.full((20_000,), -1, dtype=torch.int32) for _ in range(20)]
    for work in works:
        found = work.wait()
        assert all((found[r] == r).all() for r in range(comm.nranks))


def case_anything_with_dlpack(comm):
    import numpy as np

    class Wrapped:
        def __init__(self, array, device=None, old=False):
            self.array, self.device, self.old = array, device, old

        def __dlpack_device__(self):
            return self.device or self.array.__dlpack_device__()

        def __dlpack__(self, **options):
            if self.old and options:
                raise TypeError("unexpected keyword")
            return self.array.__dlpack__(**options)

    for old in (False, True):
        x = np.full((2, 3), comm.rank + 1.0, "f4")
        assert isinstance(comm.all_reduce(Wrapped(x, old=old)), Wrapped)
        assert (x == comm.nranks * (comm.nranks + 1) / 2).all()
    refused("wrong device: found DLPack device type 2, expected host memory",
            lambda: comm.all_reduce(Wrapped(x, device=(2, 0))))  # fmt: skip
    frozen = np.ones(3)
    frozen.flags.writeable = False
    refused("x: (read-only memory|DLPack export refused)", lambda: comm.all_reduce(Wrapped(frozen)))
    assert comm.all_reduce(Wrapped(frozen), np.empty(3)).tolist() == [comm.nranks] * 3


def case_numpy_of_unusual_kinds(comm):
    import numpy as np

    total = comm.nranks * (comm.nranks + 1) // 2
    for shape in ((), (0,), (3, 0, 2), (1, 1, 1), (2, 1, 3)):
        x = np.full(shape, comm.rank + 1)
        for _ in range(3):  # warm from the second on
            assert comm.all_reduce(x.copy()).shape == shape
            assert (comm.all_reduce(x.copy()) == total).all()
    unaligned = np.zeros(41, np.uint8)[1:].view("f8")
    unaligned[:] = comm.rank + 1
    comm.all_reduce(unaligned)
    assert unaligned.tolist() == [total] * 5
    mapped = np.memmap("/dev/zero", np.float32, "c", shape=10)
    mapped[:] = comm.rank + 1
    comm.all_reduce(mapped)
    assert mapped.tolist() == [total] * 10
    longlong = np.full(3, comm.rank + 1, np.longlong)
    assert comm.all_reduce(longlong).tolist() == [total] * 3
    fortran = np.asfortranarray(np.ones((3, 4)))
    refused("x: not contiguous", lambda: comm.all_reduce(fortran))
    assert (comm.all_reduce(np.asfortranarray(np.ones((1, 4)))) == comm.nranks).all()


def case_empty(comm):
    import numpy as np

    x = comm.empty((3, 5), "bfloat16")
    assert (x.shape, str(x.dtype), x.ctypes.data % 64) == ((3, 5), "bfloat16", 0)
    x[:] = 1
    assert (comm.all_reduce(x) == comm.nranks).all()
    assert comm.empty(7).dtype == np.float32
    assert comm.empty(0).shape == (0,)
    assert comm.empty((), "int8").shape == ()


test_interop = mpi_cases(globals(), nranks=(1, 3))

// The Python module: addresses in, kernels run, nothing else.
//
// Arguments are positional and addresses are integers, because these calls are made once per step
// of a schedule: parsing arrays would cost more than reducing small ones.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <cstring>
#include <stdexcept>

#include "dispatch.h"
#include "interpreter.h"
#include "modules.h"

namespace nb = nanobind;
using rawcoll::run;

namespace {

void* pointer(std::uintptr_t address, std::size_t count) {
    if (address == 0 && count != 0)
        throw std::invalid_argument("address: null: found 0, expected the address of an array");
    return reinterpret_cast<void*>(address);
}

// By hand: a caster would build a vector and check the same things more slowly.
std::vector<const void*> pointers(const nb::tuple& addresses, std::size_t count) {
    std::vector<const void*> out(static_cast<std::size_t>(PyTuple_GET_SIZE(addresses.ptr())));
    for (std::size_t k = 0; k < out.size(); ++k) {
        PyObject* item = PyTuple_GET_ITEM(addresses.ptr(), static_cast<Py_ssize_t>(k));
        const unsigned long long address = PyLong_AsUnsignedLongLong(item);
        if (address == static_cast<unsigned long long>(-1) && PyErr_Occurred())
            throw nb::python_error();
        out[k] = pointer(static_cast<std::uintptr_t>(address), count);
    }
    return out;
}

void reduce(int op, int dtype, std::uintptr_t dst, const nb::tuple& srcs, std::size_t count,
            int divisor) {
    void* const out = pointer(dst, count);
    const std::vector<const void*> in = pointers(srcs, count);
    run(in.size() * count * rawcoll::itemsize(dtype),
        [&] { rawcoll::reduce(op, dtype, out, in.data(), in.size(), count, divisor); });
}

void copy(std::uintptr_t dst, std::uintptr_t src, std::size_t nbytes) {
    void* const out = pointer(dst, nbytes);
    const void* const in = pointer(src, nbytes);
    if (dst != src && nbytes != 0)
        run(nbytes, [&] { std::memcpy(out, in, nbytes); });
}

void scale(int dtype, std::uintptr_t dst, std::uintptr_t src, std::size_t count, double factor) {
    void* const out = pointer(dst, count);
    const void* const in = pointer(src, count);
    run(count * rawcoll::itemsize(dtype), [&] { rawcoll::scale(dtype, out, in, count, factor); });
}

void cast(int dst_dtype, std::uintptr_t dst, int src_dtype, std::uintptr_t src, std::size_t count) {
    void* const out = pointer(dst, count);
    const void* const in = pointer(src, count);
    run(count * rawcoll::itemsize(dst_dtype),
        [&] { rawcoll::cast(dst_dtype, out, src_dtype, in, count); });
}

// numpy reports an array that is not contiguous as ValueError, other producers as BufferError.
[[noreturn]] void raise_buffer_error() {
    if (PyErr_ExceptionMatches(PyExc_ValueError)) {
        nb::python_error cause;
        nb::chain_error(PyExc_BufferError, "buffer: not contiguous: %s", cause.what());
    }
    throw nb::python_error();
}

// No format is asked for: numpy has none for bfloat16 and would refuse.
std::uintptr_t address(nb::handle buffer) {
    Py_buffer view;
    if (PyObject_GetBuffer(buffer.ptr(), &view, PyBUF_SIMPLE) != 0)
        raise_buffer_error();
    const auto at = reinterpret_cast<std::uintptr_t>(view.buf);
    PyBuffer_Release(&view);
    return at;
}

nb::dict build_info() {
    nb::dict info;
#if defined(__clang__)
    info["compiler"] = "clang " __clang_version__;
#else
    info["compiler"] = "gcc " __VERSION__;
#endif
    info["simd"] = rawcoll::simd_level();
    return info;
}

}  // namespace

NB_MODULE(_native, m) {
    // A communicator that is never closed lives until the process ends, and its wires with it.
    nb::set_leak_warnings(false);
    m.attr("name") = "native";
    m.def("reduce", &reduce);
    m.def("copy", &copy);
    m.def("scale", &scale);
    m.def("cast", &cast);
    m.def("address", &address);
    m.def("build_info", &build_info);
    m.def("simd_levels", &rawcoll::simd_levels);
    m.def("set_simd_level", &rawcoll::set_simd_level);
    rawcoll::bind_wires(m);
}

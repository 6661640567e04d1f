// Floats as bit patterns, and the one NaN that results may hold. Needs types.h.
#pragma once

namespace rawcoll {

#if defined(__CUDA_ARCH__)
RAWCOLL_FN u32 bits_of(float x) {
    return __float_as_uint(x);
}
RAWCOLL_FN u64 bits_of(double x) {
    return static_cast<u64>(__double_as_longlong(x));
}
RAWCOLL_FN float float_of(u32 bits) {
    return __uint_as_float(bits);
}
RAWCOLL_FN double double_of(u64 bits) {
    return __longlong_as_double(static_cast<i64>(bits));
}
#else
RAWCOLL_FN u32 bits_of(float x) {
    u32 bits;
    __builtin_memcpy(&bits, &x, sizeof bits);
    return bits;
}
RAWCOLL_FN u64 bits_of(double x) {
    u64 bits;
    __builtin_memcpy(&bits, &x, sizeof bits);
    return bits;
}
RAWCOLL_FN float float_of(u32 bits) {
    float x;
    __builtin_memcpy(&x, &bits, sizeof x);
    return x;
}
RAWCOLL_FN double double_of(u64 bits) {
    double x;
    __builtin_memcpy(&x, &bits, sizeof x);
    return x;
}
#endif

constexpr u32 kSign32 = 0x80000000u;
constexpr u32 kInfinity32 = 0x7f800000u;
constexpr u64 kSign64 = 0x8000000000000000ull;

// Which payload and sign an operation gives a NaN differs between processors and even between
// compilations (operand order); one canonical quiet NaN is what makes results comparable bit for
// bit.
RAWCOLL_FN float canonical(float x) {
    return x != x ? float_of(0x7fc00000u) : x;
}
RAWCOLL_FN double canonical(double x) {
    return x != x ? double_of(0x7ff8000000000000ull) : x;
}

}  // namespace rawcoll

// Element types, operation codes and the traits that the arithmetic is written over.
//
// Owns the codes (those of rawcoll/types.py) and the fixed-width names. Knows nothing of loops,
// memory or processors. Like its neighbours it includes nothing, because NVRTC has no standard
// headers; a user includes types.h, bits.h, convert.h, ops.h, cast.h in this order.
#pragma once

// Internal linkage: the host compiles these functions once per instruction set, and the linker must
// never replace a baseline copy by one that needs AVX-512.
#if defined(__CUDACC__)
#define RAWCOLL_FN static __host__ __device__ inline
#else
#define RAWCOLL_FN static inline
#endif

namespace rawcoll {

using i8 = signed char;
using i16 = short;
using i32 = int;
using i64 = long long;
using u8 = unsigned char;
using u16 = unsigned short;
using u32 = unsigned int;
using u64 = unsigned long long;

static_assert(sizeof(i16) == 2 && sizeof(i32) == 4 && sizeof(i64) == 8, "unexpected integer sizes");
static_assert(sizeof(float) == 4 && sizeof(double) == 8, "unexpected float sizes");

// IEEE 754 binary16, by its bits.
struct Half {
    u16 bits;
};

// The upper half of a float, by its bits.
struct BFloat16 {
    u16 bits;
};

enum class DType : int {
    Int8 = 0,
    Int16 = 1,
    Int32 = 2,
    Int64 = 3,
    UInt8 = 4,
    UInt16 = 5,
    UInt32 = 6,
    UInt64 = 7,
    Float16 = 8,
    BFloat16 = 9,
    Float32 = 10,
    Float64 = 11,
};

// An average is Sum with a divisor, so it has no code of its own here.
enum class Op : int { Sum = 0, Prod = 1, Min = 2, Max = 3 };

constexpr int kDTypes = 12;
constexpr int kOps = 4;

template <class A, class B>
constexpr bool kSame = false;
template <class A>
constexpr bool kSame<A, A> = true;

// Accumulator: the type that values are combined in before the one rounding to T.
// Wrapping: the unsigned type for sums and products of integers; never narrower than int, since two
// unsigned shorts would be promoted to int and their product could overflow it.
template <class T>
struct Traits {
    using Accumulator = T;
    using Wrapping = u32;
    static constexpr bool is_float = false;
};

template <>
struct Traits<i64> {
    using Accumulator = i64;
    using Wrapping = u64;
    static constexpr bool is_float = false;
};

template <>
struct Traits<u64> {
    using Accumulator = u64;
    using Wrapping = u64;
    static constexpr bool is_float = false;
};

template <>
struct Traits<Half> {
    using Accumulator = float;
    static constexpr bool is_float = true;
};

template <>
struct Traits<BFloat16> {
    using Accumulator = float;
    static constexpr bool is_float = true;
};

template <>
struct Traits<float> {
    using Accumulator = float;
    static constexpr bool is_float = true;
};

template <>
struct Traits<double> {
    using Accumulator = double;
    static constexpr bool is_float = true;
};

template <class T>
using Accumulator = typename Traits<T>::Accumulator;

}  // namespace rawcoll

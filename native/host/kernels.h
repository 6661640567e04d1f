// The kernels of one instruction set, as tables of functions.
//
// Owns the signatures between loops and dispatch. Addresses need no alignment. A destination may
// equal a source; it may not partly overlap one.
#pragma once

#include <cstddef>

#include "rawcoll/types.h"

namespace rawcoll {

using ReduceFn = void (*)(void* dst, const void* const* srcs, std::size_t nsrcs, std::size_t count,
                          i32 divisor);
using DivideFn = void (*)(void* values, std::size_t count, i32 divisor);
using ScaleFn = void (*)(void* dst, const void* src, std::size_t count, double factor);
using CastFn = void (*)(void* dst, const void* src, std::size_t count);

// Floats: sums are averaged by the divisor. Integers: the divisor is ignored.
struct ReduceTable {
    ReduceFn at[kOps][kDTypes];
};

// Null where the element type has no such kernel: floats are not divided, integers not scaled.
struct ElementwiseTable {
    DivideFn divide[kDTypes];
    ScaleFn scale[kDTypes];
};

struct CastTable {
    CastFn at[kDTypes][kDTypes];  // [destination][source]
};

// Each instruction set defines these three under its own name.
#define RAWCOLL_DECLARE_LEVEL(level)            \
    namespace level {                           \
    extern const ReduceTable kReduce;           \
    extern const ElementwiseTable kElementwise; \
    extern const CastTable kCast;               \
    }

RAWCOLL_DECLARE_LEVEL(baseline)
RAWCOLL_DECLARE_LEVEL(avx2)
RAWCOLL_DECLARE_LEVEL(avx512)

}  // namespace rawcoll

// Conversions between all pairs of element types.
#include "arithmetic.h"
#include "kernels.h"
#include "packed.h"
#include "half.h"

namespace rawcoll {
namespace {

template <class D, class S>
void cast_all(void* dst, const void* src, std::size_t count) {
    Packed<D>* const out = elements<D>(dst);
    const Packed<S>* const in = elements<S>(src);
#pragma GCC ivdep
    for (std::size_t i = 0; i < count; ++i)
        out[i].value = cast<D>(in[i].value);
}

template <>
void cast_all<float, Half>(void* dst, const void* src, std::size_t count) {
    for_half_blocks(count, [=](std::size_t begin, std::size_t block) {
        alignas(64) float wide[kHalfBlock];
        widen_all(wide, elements<Half>(src) + begin, block);
        cast_all<float, float>(elements<float>(dst) + begin, wide, block);
    });
}

template <>
void cast_all<Half, float>(void* dst, const void* src, std::size_t count) {
    for_half_blocks(count, [=](std::size_t begin, std::size_t block) {
        alignas(64) float wide[kHalfBlock];
        cast_all<float, float>(wide, elements<float>(src) + begin, block);
        narrow_all(elements<Half>(dst) + begin, wide, block);
    });
}

}  // namespace

namespace RAWCOLL_LEVEL {

#define RAWCOLL_CASTS_TO(D)                                                          \
    {cast_all<D, i8>,   cast_all<D, i16>,      cast_all<D, i32>,   cast_all<D, i64>, \
     cast_all<D, u8>,   cast_all<D, u16>,      cast_all<D, u32>,   cast_all<D, u64>, \
     cast_all<D, Half>, cast_all<D, BFloat16>, cast_all<D, float>, cast_all<D, double>}

extern const CastTable kCast = {{
    RAWCOLL_CASTS_TO(i8),
    RAWCOLL_CASTS_TO(i16),
    RAWCOLL_CASTS_TO(i32),
    RAWCOLL_CASTS_TO(i64),
    RAWCOLL_CASTS_TO(u8),
    RAWCOLL_CASTS_TO(u16),
    RAWCOLL_CASTS_TO(u32),
    RAWCOLL_CASTS_TO(u64),
    RAWCOLL_CASTS_TO(Half),
    RAWCOLL_CASTS_TO(BFloat16),
    RAWCOLL_CASTS_TO(float),
    RAWCOLL_CASTS_TO(double),
}};

}  // namespace RAWCOLL_LEVEL
}  // namespace rawcoll

// 16-bit floats to float and back, and element to accumulator and back. Needs types.h, bits.h.
//
// Branch-free selects only, so that compilers vectorise the loops around them. Rounding is to
// nearest, ties to even; subnormals are exact; a NaN that is stored is the canonical one, without a
// sign.
#pragma once

namespace rawcoll {

// A half's exponent and fraction, moved to where a float has them, need the exponent rebased by 127
// - 15.
constexpr u32 kHalfRebase = 112u << 23;

RAWCOLL_FN float widen(Half h) {
    const u32 magnitude = (h.bits & 0x7fffu) << 13;
    const u32 exponent = magnitude & 0x0f800000u;
    const u32 normal = magnitude + kHalfRebase;
    const u32 infinite = normal + kHalfRebase;
    // With an exponent of 1 instead of 0 the pattern reads 2^-14 too much; the difference is exact,
    // and no float subnormal occurs on the way, so it holds where those are flushed to zero.
    const u32 one = 1u << 23;
    const float subnormal = float_of(normal + one) - float_of(kHalfRebase + one);
    const u32 finite = exponent == 0 ? bits_of(subnormal) : normal;
    const u32 bits = exponent == 0x0f800000u ? infinite : finite;
    return float_of(bits | static_cast<u32>(h.bits & 0x8000u) << 16);
}

RAWCOLL_FN float widen(BFloat16 b) {
    return float_of(static_cast<u32>(b.bits) << 16);
}

RAWCOLL_FN Half narrow_half(float x) {
    const u32 bits = bits_of(x);
    // Signed, because SSE and AVX2 compare only signed integers; the sign bit is clear.
    const i32 magnitude = static_cast<i32>(bits & ~kSign32);
    const u32 pattern = static_cast<u32>(magnitude);
    // Half an ulp less one, plus the lowest kept bit, rounds ties to even; a carry moves the
    // exponent on, from 65520 upwards into infinity.
    const u32 normal = (pattern - kHalfRebase + 0xfffu + (pattern >> 13 & 1u)) >> 13;
    // The ulp of 0.5f is 2^-24, the smallest half: the addition rounds to a multiple of it.
    const u32 subnormal = bits_of(float_of(pattern) + 0.5f) - bits_of(0.5f);
    const u32 finite = magnitude < (113 << 23) ? subnormal : normal;
    const u32 ordered = magnitude >= (143 << 23) ? 0x7c00u : finite;
    const u32 with_sign = ordered | (bits & kSign32) >> 16;
    const bool is_nan = magnitude > static_cast<i32>(kInfinity32);
    return Half{static_cast<u16>(is_nan ? 0x7e00u : with_sign)};
}

RAWCOLL_FN BFloat16 narrow_bfloat16(float x) {
    const u32 bits = bits_of(x);
    const u32 rounded = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
    return BFloat16{static_cast<u16>(x != x ? 0x7fc0u : rounded)};
}

// Element -> accumulator.
template <class T>
RAWCOLL_FN Accumulator<T> load(T x) {
    if constexpr (sizeof(T) == 2 && Traits<T>::is_float) {
        return widen(x);
    } else {
        return x;
    }
}

// Accumulator -> element: the one rounding of a 16-bit float, and the one place where NaNs are
// settled.
template <class T>
RAWCOLL_FN T store(Accumulator<T> x) {
    if constexpr (kSame<T, Half>) {
        return narrow_half(x);
    } else if constexpr (kSame<T, BFloat16>) {
        return narrow_bfloat16(x);
    } else if constexpr (Traits<T>::is_float) {
        return canonical(x);
    } else {
        return x;
    }
}

}  // namespace rawcoll

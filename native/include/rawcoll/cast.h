// Conversion between any two element types. Needs types.h, bits.h, convert.h.
//
// Float to float and integer to float round once, to nearest, ties to even. Integer to integer
// wraps. Float to integer truncates, saturates, and makes 0 of NaN (C leaves the last two
// undefined).
#pragma once

namespace rawcoll {

// Float and integer rounded to odd: of the two floats around an inexact value, the one with an odd
// last bit. Rounding that to a 16-bit float gives what one direct rounding would; to-nearest twice
// would not.
RAWCOLL_FN float to_odd(float x) {
    return x;
}

RAWCOLL_FN float to_odd(double x) {
    const float nearest = static_cast<float>(x);
    const u32 bits = bits_of(nearest);
    const double magnitude = x < 0 ? -x : x;
    const double nearest_magnitude = static_cast<double>(float_of(bits & ~kSign32));
    const bool is_even = (bits & 1u) == 0;
    const u32 up = is_even && nearest_magnitude < magnitude ? 1u : 0u;
    const u32 down = is_even && nearest_magnitude > magnitude ? 1u : 0u;
    return float_of(bits + up - down);
}

// The 53 highest bits of 64, the lowest of them set if any below is: to odd again, so it composes.
RAWCOLL_FN float to_odd(u64 x) {
    const u64 below = x & 0x7ffull;
    const u64 sticky = (x & ~0x7ffull) | (below != 0 ? 0x800ull : 0ull);
    return to_odd(static_cast<double>(x >> 53 != 0 ? sticky : x));
}

RAWCOLL_FN float to_odd(i64 x) {
    const u64 magnitude = x < 0 ? 0ull - static_cast<u64>(x) : static_cast<u64>(x);
    const float rounded = to_odd(magnitude);
    return x < 0 ? -rounded : rounded;
}

RAWCOLL_FN float to_odd(i32 x) {
    return to_odd(static_cast<double>(x));
}
RAWCOLL_FN float to_odd(u32 x) {
    return to_odd(static_cast<double>(x));
}
RAWCOLL_FN float to_odd(i16 x) {
    return static_cast<float>(x);
}
RAWCOLL_FN float to_odd(u16 x) {
    return static_cast<float>(x);
}
RAWCOLL_FN float to_odd(i8 x) {
    return static_cast<float>(x);
}
RAWCOLL_FN float to_odd(u8 x) {
    return static_cast<float>(x);
}

// D's largest value is 2^bits - 1, which a float may not hold; 2^bits it does, and D's least value
// too.
template <class D, class F>
RAWCOLL_FN D saturate(F x) {
    constexpr bool is_signed = static_cast<D>(-1) < static_cast<D>(0);
    constexpr int bits = static_cast<int>(sizeof(D)) * 8 - (is_signed ? 1 : 0);
    constexpr D largest = static_cast<D>(~0ull >> (64 - bits));
    constexpr D least = is_signed ? static_cast<D>(-largest - 1) : static_cast<D>(0);
    constexpr F above = static_cast<F>(1ull << (bits - 1)) * F(2);
    constexpr F below = static_cast<F>(least);
    const bool fits = x > below && x < above;
    const D inside = static_cast<D>(fits ? x : F(0));
    const D at_most = x >= above ? largest : inside;
    return x <= below ? least : at_most;
}

template <class D, class S>
RAWCOLL_FN D cast(S source) {
    const Accumulator<S> x = load(source);
    if constexpr (Traits<D>::is_float && sizeof(D) == 2) {
        return store<D>(to_odd(x));
    } else if constexpr (Traits<D>::is_float) {
        return store<D>(static_cast<D>(x));
    } else if constexpr (Traits<S>::is_float) {
        return saturate<D>(x);
    } else {
        return static_cast<D>(x);
    }
}

}  // namespace rawcoll

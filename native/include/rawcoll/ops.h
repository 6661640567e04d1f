// The four reductions, the two ways of dividing, and scaling. Needs types.h, bits.h, convert.h.
//
// Works on accumulators. NaNs may hold any payload here; store() settles them.
#pragma once

namespace rawcoll {

// Flips the sign, of a NaN too.
RAWCOLL_FN float negated(float x) {
    return float_of(bits_of(x) ^ kSign32);
}
RAWCOLL_FN double negated(double x) {
    return double_of(bits_of(x) ^ kSign64);
}

RAWCOLL_FN float either_bit(float a, float b) {
    return float_of(bits_of(a) | bits_of(b));
}
RAWCOLL_FN double either_bit(double a, double b) {
    return double_of(bits_of(a) | bits_of(b));
}

// Where neither is less they are equal, zeros of either sign, or one is a NaN. The union of their
// bits is then the value itself, -0 if one of them is, and a NaN.
template <class A>
RAWCOLL_FN A float_min(A a, A b) {
    const A greater_or_neither = b < a ? b : either_bit(a, b);
    return a < b ? a : greater_or_neither;
}

template <Op O, class A>
RAWCOLL_FN A combine_floats(A a, A b) {
    if constexpr (O == Op::Sum) {
        return a + b;
    } else if constexpr (O == Op::Prod) {
        return a * b;
    } else if constexpr (O == Op::Min) {
        return float_min(a, b);
    } else {
        return negated(float_min(negated(a), negated(b)));
    }
}

template <Op O, class A>
RAWCOLL_FN A combine_integers(A a, A b) {
    using W = typename Traits<A>::Wrapping;
    if constexpr (O == Op::Sum) {
        return static_cast<A>(static_cast<W>(a) + static_cast<W>(b));
    } else if constexpr (O == Op::Prod) {
        return static_cast<A>(static_cast<W>(a) * static_cast<W>(b));
    } else if constexpr (O == Op::Min) {
        return b < a ? b : a;
    } else {
        return a < b ? b : a;
    }
}

template <Op O, class A>
RAWCOLL_FN A combine(A a, A b) {
    if constexpr (Traits<A>::is_float) {
        return combine_floats<O>(a, b);
    } else {
        return combine_integers<O>(a, b);
    }
}

// What an average of floats is multiplied by, once; 1 for a divisor of 1, which changes nothing.
template <class A>
RAWCOLL_FN A reciprocal(i32 divisor) {
    return A(1) / static_cast<A>(divisor);
}

// Truncating division of a wrapped sum. Up to 32 bits by way of double, which vectorises: where the
// quotient is not an integer it is at least 1/divisor away from one, a relative distance of at
// least 1/|x| > 2^-33, far more than a double's rounding could bridge.
template <class T>
RAWCOLL_FN T divide(T x, i32 divisor) {
    if constexpr (sizeof(T) == 8) {
        return static_cast<T>(x / static_cast<T>(divisor));
    } else {
        return static_cast<T>(static_cast<double>(x) / static_cast<double>(divisor));
    }
}

}  // namespace rawcoll

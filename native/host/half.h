// Arrays of half to float and back, by the processor's own conversion where it has one.
//
// The arithmetic is that of convert.h, which the compiler vectorises but at some fifteen
// instructions an element; with F16C it is one. Both round to nearest even and keep subnormals; the
// tests compare them over all patterns. Needs arithmetic.h, packed.h.
#pragma once

#include <cstddef>

#if defined(__F16C__)
#include <immintrin.h>
#endif

namespace rawcoll {

// Elements per block where arrays pass through floats in the first-level cache.
constexpr std::size_t kHalfBlock = 1024;

// A cache line of halves per iteration. The line fetched ahead is one block away: the processor's
// own prefetch stops where a block ends, and large arrays would wait for memory there.
constexpr std::size_t kLine = 32;

static inline void widen_all(float* out, const Packed<Half>* in, std::size_t count) {
    std::size_t i = 0;
#if defined(__F16C__)
    for (; i + kLine <= count; i += kLine) {
        __builtin_prefetch(in + i + kHalfBlock);
        for (std::size_t j = i; j < i + kLine; j += 8) {
            const __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i*>(in + j));
            _mm256_storeu_ps(out + j, _mm256_cvtph_ps(halves));
        }
    }
#endif
    for (; i < count; ++i)
        out[i] = widen(in[i].value);
}

// Takes no NaN but the canonical one: the processor would keep a payload.
static inline void narrow_all(Packed<Half>* out, const float* in, std::size_t count) {
    std::size_t i = 0;
#if defined(__F16C__)
    for (; i + 8 <= count; i += 8) {
        const __m256 floats = _mm256_loadu_ps(in + i);
        const __m128i halves = _mm256_cvtps_ph(floats, _MM_FROUND_TO_NEAREST_INT);
        _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i), halves);
    }
#endif
    for (; i < count; ++i)
        out[i].value = narrow_half(in[i]);
}

// Calls body(begin, count) for every block.
template <class Body>
static inline void for_half_blocks(std::size_t count, const Body& body) {
    for (std::size_t begin = 0; begin < count; begin += kHalfBlock)
        body(begin, count - begin < kHalfBlock ? count - begin : kHalfBlock);
}

}  // namespace rawcoll

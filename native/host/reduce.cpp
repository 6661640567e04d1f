// Reductions of any number of sources in one pass over memory.
//
// Up to four sources are combined element by element. More are combined four at a time, block by
// block, with the accumulators of one block waiting in the first-level cache: every source is still
// read once and the destination written once, whatever their number. Accumulators wait outside the
// destination, because that may be one of the sources still to come.
#include "arithmetic.h"
#include "kernels.h"
#include "packed.h"
#include "half.h"

namespace rawcoll {
namespace {

constexpr std::size_t kGroup = 4;
// Accumulators per block: at most 8 KiB, a sixth of the smallest first-level cache in use.
constexpr std::size_t kBlock = 1024;

template <class T>
inline Accumulator<T> get(const Packed<T>& element) {
    return load(element.value);
}
template <class T, class A>
inline A get(const A& accumulator) {
    return accumulator;
}

template <Op O, class T>
inline void put(Packed<T>& element, Accumulator<T> x, Accumulator<T> factor) {
    if constexpr (O == Op::Sum && Traits<T>::is_float) {
        element.value = store<T>(x * factor);
    } else {
        element.value = store<T>(x);
    }
}
template <Op O, class T>
inline void put(Accumulator<T>& accumulator, Accumulator<T> x, Accumulator<T>) {
    accumulator = x;
}

// out = first, combined with K more sources from element `begin` on.
template <Op O, class T, std::size_t K, class Out, class First>
void sweep(Out* out, const First* first, const void* const* rest, std::size_t begin,
           std::size_t count, Accumulator<T> factor) {
    const Packed<T>* more[K + 1] = {};
    for (std::size_t k = 0; k < K; ++k)
        more[k] = elements<T>(rest[k]) + begin;
// Without the pragma the compiler tests for overlap and takes the scalar loop when reducing in
// place; an element is read from every source before it is written, so equal addresses are no
// dependence.
#pragma GCC ivdep
    for (std::size_t i = 0; i < count; ++i) {
        Accumulator<T> x = get<T>(first[i]);
#pragma GCC unroll 4
        for (std::size_t k = 0; k < K; ++k)
            x = combine<O>(x, get<T>(more[k][i]));
        put<O, T>(out[i], x, factor);
    }
}

// The last sweep of a reduction: 0 to 4 sources after `first`.
template <Op O, class T, class First>
void sweep_last(Packed<T>* out, const First* first, const void* const* rest, std::size_t nrest,
                std::size_t begin, std::size_t count, Accumulator<T> factor) {
    switch (nrest) {
        case 0:
            return sweep<O, T, 0>(out, first, rest, begin, count, factor);
        case 1:
            return sweep<O, T, 1>(out, first, rest, begin, count, factor);
        case 2:
            return sweep<O, T, 2>(out, first, rest, begin, count, factor);
        case 3:
            return sweep<O, T, 3>(out, first, rest, begin, count, factor);
        default:
            return sweep<O, T, 4>(out, first, rest, begin, count, factor);
    }
}

template <Op O, class T>
void reduce_block(void* dst, const void* const* srcs, std::size_t nsrcs, std::size_t begin,
                  std::size_t count, Accumulator<T> factor) {
    alignas(64) Accumulator<T> held[kBlock];
    sweep<O, T, kGroup - 1>(held, elements<T>(srcs[0]) + begin, srcs + 1, begin, count, factor);
    std::size_t done = kGroup;
    for (; nsrcs - done > kGroup; done += kGroup)
        sweep<O, T, kGroup>(held, held, srcs + done, begin, count, factor);
    sweep_last<O, T>(elements<T>(dst) + begin, held, srcs + done, nsrcs - done, begin, count,
                     factor);
}

// Halves are converted a block at a time, so that the loops between are those of float.
template <Op O>
void reduce_halves(void* dst, const void* const* srcs, std::size_t nsrcs, std::size_t count,
                   float factor) {
    for_half_blocks(count, [=](std::size_t begin, std::size_t block) {
        alignas(64) float held[kHalfBlock];
        alignas(64) float next[kHalfBlock];
        const void* const rest[] = {next};
        widen_all(held, elements<Half>(srcs[0]) + begin, block);
        for (std::size_t k = 1; k < nsrcs; ++k) {
            widen_all(next, elements<Half>(srcs[k]) + begin, block);
            sweep<O, float, 1>(held, held, rest, 0, block, 1);
        }
        sweep<O, float, 0>(elements<float>(static_cast<void*>(held)), held, rest, 0, block, factor);
        narrow_all(elements<Half>(dst) + begin, held, block);
    });
}

template <Op O, class T>
void reduce_blocks(void* dst, const void* const* srcs, std::size_t nsrcs, std::size_t count,
                   Accumulator<T> factor) {
    for (std::size_t begin = 0; begin < count; begin += kBlock) {
        const std::size_t left = count - begin;
        reduce_block<O, T>(dst, srcs, nsrcs, begin, left < kBlock ? left : kBlock, factor);
    }
}

template <Op O, class T>
void reduce(void* dst, const void* const* srcs, std::size_t nsrcs, std::size_t count, i32 divisor) {
    Accumulator<T> factor = 1;
    if constexpr (Traits<T>::is_float)
        factor = reciprocal<Accumulator<T>>(divisor);
    if constexpr (kSame<T, Half>)
        reduce_halves<O>(dst, srcs, nsrcs, count, factor);
    else if (nsrcs > kGroup)
        reduce_blocks<O, T>(dst, srcs, nsrcs, count, factor);
    else
        sweep_last<O, T>(elements<T>(dst), elements<T>(srcs[0]), srcs + 1, nsrcs - 1, 0, count,
                         factor);
}

}  // namespace

namespace RAWCOLL_LEVEL {

// Wrapping sums and products are the same for both kinds of integer.
#define RAWCOLL_FLOATS(op) \
    reduce<op, Half>, reduce<op, BFloat16>, reduce<op, float>, reduce<op, double>
#define RAWCOLL_UNSIGNED(op) reduce<op, u8>, reduce<op, u16>, reduce<op, u32>, reduce<op, u64>
#define RAWCOLL_SIGNED(op) reduce<op, i8>, reduce<op, i16>, reduce<op, i32>, reduce<op, i64>

extern const ReduceTable kReduce = {{
    {RAWCOLL_UNSIGNED(Op::Sum), RAWCOLL_UNSIGNED(Op::Sum), RAWCOLL_FLOATS(Op::Sum)},
    {RAWCOLL_UNSIGNED(Op::Prod), RAWCOLL_UNSIGNED(Op::Prod), RAWCOLL_FLOATS(Op::Prod)},
    {RAWCOLL_SIGNED(Op::Min), RAWCOLL_UNSIGNED(Op::Min), RAWCOLL_FLOATS(Op::Min)},
    {RAWCOLL_SIGNED(Op::Max), RAWCOLL_UNSIGNED(Op::Max), RAWCOLL_FLOATS(Op::Max)},
}};

}  // namespace RAWCOLL_LEVEL
}  // namespace rawcoll

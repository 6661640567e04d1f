// Division in place and scaling.
#include "arithmetic.h"
#include "kernels.h"
#include "packed.h"

namespace rawcoll {
namespace {

template <class T>
void divide_all(void* values, std::size_t count, i32 divisor) {
    Packed<T>* const out = elements<T>(values);
    for (std::size_t i = 0; i < count; ++i)
        out[i].value = divide<T>(out[i].value, divisor);
}

template <class T>
void scale_all(void* dst, const void* src, std::size_t count, double factor) {
    Packed<T>* const out = elements<T>(dst);
    const Packed<T>* const in = elements<T>(src);
    const auto by = static_cast<Accumulator<T>>(factor);
#pragma GCC ivdep
    for (std::size_t i = 0; i < count; ++i)
        out[i].value = store<T>(load(in[i].value) * by);
}

}  // namespace

namespace RAWCOLL_LEVEL {

extern const ElementwiseTable kElementwise = {
    {divide_all<i8>, divide_all<i16>, divide_all<i32>, divide_all<i64>, divide_all<u8>,
     divide_all<u16>, divide_all<u32>, divide_all<u64>, nullptr, nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, scale_all<Half>,
     scale_all<BFloat16>, scale_all<float>, scale_all<double>},
};

}  // namespace RAWCOLL_LEVEL
}  // namespace rawcoll

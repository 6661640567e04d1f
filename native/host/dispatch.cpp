#include "dispatch.h"

#include <algorithm>
#include <atomic>
#include <stdexcept>

#include "kernels.h"

namespace rawcoll {
namespace {

struct Level {
    const char* name;
    const ReduceTable* reduce;
    const ElementwiseTable* elementwise;
    const CastTable* cast;
};

#define RAWCOLL_LEVEL_ENTRY(level)                                   \
    Level {                                                          \
        #level, &level::kReduce, &level::kElementwise, &level::kCast \
    }

std::vector<Level> find_levels() {
    std::vector<Level> levels = {RAWCOLL_LEVEL_ENTRY(baseline)};
#ifdef RAWCOLL_HAS_AVX2
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("f16c"))
        levels.push_back(RAWCOLL_LEVEL_ENTRY(avx2));
#endif
#ifdef RAWCOLL_HAS_AVX512
    if (levels.size() == 2 && __builtin_cpu_supports("avx512f") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl"))
        levels.push_back(RAWCOLL_LEVEL_ENTRY(avx512));
#endif
    return levels;
}

const std::vector<Level>& levels() {
    static const std::vector<Level> found = find_levels();
    return found;
}

std::atomic<const Level*>& current() {
    static std::atomic<const Level*> level{&levels().back()};
    return level;
}

const Level& level() {
    return *current().load(std::memory_order_relaxed);
}

[[noreturn]] void refuse(const std::string& argument, const std::string& fact, long long found,
                         const std::string& expected) {
    throw std::invalid_argument(argument + ": " + fact + ": found " + std::to_string(found) +
                                ", expected " + expected);
}

int checked(const char* argument, int code, int ncodes) {
    if (code < 0 || code >= ncodes)
        refuse(argument, "unknown code", code, "0 to " + std::to_string(ncodes - 1));
    return code;
}

bool is_float(int dtype) {
    return dtype >= static_cast<int>(DType::Float16);
}

// Division of integers is a second loop over a block that the first has just left in the cache.
constexpr std::size_t kDivideBlockNbytes = 16384;

void reduce_and_divide(ReduceFn reduce, DivideFn divide, std::size_t size, char* dst,
                       const void* const* srcs, std::size_t nsrcs, std::size_t count, i32 divisor) {
    std::vector<const void*> at(srcs, srcs + nsrcs);
    const std::size_t block = kDivideBlockNbytes / size;
    for (std::size_t begin = 0; begin < count; begin += block) {
        const std::size_t part = std::min(block, count - begin);
        for (std::size_t k = 0; k < nsrcs; ++k)
            at[k] = static_cast<const char*>(srcs[k]) + begin * size;
        reduce(dst + begin * size, at.data(), nsrcs, part, 1);
        divide(dst + begin * size, part, divisor);
    }
}

}  // namespace

std::vector<std::string> simd_levels() {
    std::vector<std::string> names;
    for (const Level& one : levels())
        names.emplace_back(one.name);
    return names;
}

std::string simd_level() {
    return level().name;
}

void set_simd_level(const std::string& name) {
    std::string known;
    for (const Level& one : levels()) {
        if (name == one.name)
            return current().store(&one);
        known += (known.empty() ? "" : ", ") + std::string(one.name);
    }
    throw std::invalid_argument("name: unknown or unsupported instruction set: found " + name +
                                ", expected one of " + known);
}

std::size_t itemsize(int dtype) {
    static constexpr std::size_t sizes[kDTypes] = {1, 2, 4, 8, 1, 2, 4, 8, 2, 2, 4, 8};
    return sizes[checked("dtype", dtype, kDTypes)];
}

void reduce(int op, int dtype, void* dst, const void* const* srcs, std::size_t nsrcs,
            std::size_t count, i32 divisor) {
    const std::size_t size = itemsize(dtype);
    const ReduceFn kernel = level().reduce->at[checked("op", op, kOps)][dtype];
    if (divisor < 1)
        refuse("divisor", "not positive", divisor, "at least 1");
    if (divisor != 1 && op != static_cast<int>(Op::Sum))
        refuse("divisor", "only a sum is divided", divisor, "1");
    if (nsrcs == 0)
        refuse("srcs", "empty", 0, "at least one address");
    if (divisor == 1 || is_float(dtype))
        return kernel(dst, srcs, nsrcs, count, divisor);
    reduce_and_divide(kernel, level().elementwise->divide[dtype], size, static_cast<char*>(dst),
                      srcs, nsrcs, count, divisor);
}

void scale(int dtype, void* dst, const void* src, std::size_t count, double factor) {
    const ScaleFn kernel = level().elementwise->scale[checked("dtype", dtype, kDTypes)];
    if (kernel == nullptr)
        refuse("dtype", "not a float", dtype, "8 to 11");
    kernel(dst, src, count, factor);
}

void cast(int dst_dtype, void* dst, int src_dtype, const void* src, std::size_t count) {
    checked("dst_dtype", dst_dtype, kDTypes);
    checked("src_dtype", src_dtype, kDTypes);
    level().cast->at[dst_dtype][src_dtype](dst, src, count);
}

}  // namespace rawcoll

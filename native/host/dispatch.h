// Chooses the instruction set and the kernel; checks codes.
//
// Owns what a call means for every element type. Knows nothing of Python. Throws
// std::invalid_argument for a code or a combination that no kernel serves, before anything is
// written.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "rawcoll/types.h"

namespace rawcoll {

// The instruction sets that this processor and this build have, the best last; that one is in use
// until another is set.
std::vector<std::string> simd_levels();
std::string simd_level();
void set_simd_level(const std::string& name);

std::size_t itemsize(int dtype);

void reduce(int op, int dtype, void* dst, const void* const* srcs, std::size_t nsrcs,
            std::size_t count, i32 divisor);
void scale(int dtype, void* dst, const void* src, std::size_t count, double factor);
void cast(int dst_dtype, void* dst, int src_dtype, const void* src, std::size_t count);

}  // namespace rawcoll

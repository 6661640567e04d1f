// Work on memory without the interpreter lock, where giving it up pays.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>

namespace rawcoll {

// Below this work takes less than giving up the interpreter lock and waiting to get it back.
constexpr std::size_t kReleaseNbytes = 32768;

template <class Work>
void run(std::size_t nbytes, const Work& work) {
    if (nbytes <= kReleaseNbytes)
        return work();
    nanobind::gil_scoped_release release;
    work();
}

}  // namespace rawcoll

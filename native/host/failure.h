// What went wrong with a message; becomes rawcoll.errors.TransportError in Python.
#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>

namespace rawcoll {

struct TransportFailure : std::runtime_error {
    TransportFailure(const std::string& text, std::size_t with)
        : std::runtime_error(text), peer(with) {}
    std::size_t peer;  // a rank
};

}  // namespace rawcoll

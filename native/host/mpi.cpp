#include "mpi.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>

#include "failure.h"

namespace rawcoll {
namespace {

// Room for a status of any library: 20 to 32 bytes.
struct alignas(16) Status {
    char room[256];
};

constexpr std::size_t kErrorText = 4096;  // MPI_MAX_ERROR_STRING is at most 1024 anywhere

template <class Function>
Function* as(std::uintptr_t address) {
    return reinterpret_cast<Function*>(address);
}

// A handle as the library's functions take it, from and to the 64 bits that hold any.
template <class Handle>
Handle unpack(std::uint64_t bits) {
    Handle handle;
    std::memcpy(&handle, &bits, sizeof handle);
    return handle;
}

template <class Handle>
std::uint64_t pack(Handle handle) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, &handle, sizeof handle);
    return bits;
}

template <class Handle, class Data>
int start(std::uintptr_t function, Data* data, std::size_t nbytes, std::size_t peer,
          std::uint64_t tag, const Mpi::Handles& handles, std::uint64_t* request) {
    using Start = int(Data*, int, Handle, int, int, Handle, Handle*);
    Handle made{};
    const int code = as<Start>(function)(
        data, static_cast<int>(nbytes), unpack<Handle>(handles.byte), static_cast<int>(peer),
        static_cast<int>(tag), unpack<Handle>(handles.comm), &made);
    *request = pack(made);
    return code;
}

template <class Handle>
int test_one(std::uintptr_t function, std::uint64_t* request, int* is_complete) {
    using Test = int(Handle*, int*, Status*);
    Handle handle = unpack<Handle>(*request);
    Status status;
    const int code = as<Test>(function)(&handle, is_complete, &status);
    *request = pack(handle);
    return code;
}

}  // namespace

Mpi::Mpi(Functions functions, Handles handles, std::size_t max_nbytes)
    : functions_(functions), handles_(handles), max_nbytes_(max_nbytes) {
    if (handles_.nbytes != sizeof(int) && handles_.nbytes != sizeof(void*))
        throw std::invalid_argument("mpi: handle of an unknown size");
    if (!functions.isend || !functions.irecv || !functions.test || !functions.error_string)
        throw std::invalid_argument("mpi: a function is missing");
}

template <class Start>
void Mpi::start_pieces(std::uintptr_t address, std::size_t nbytes, std::size_t peer,
                       std::vector<Request>& requests, const Start& start) const {
    while (nbytes != 0) {
        const std::size_t piece = std::min(nbytes, max_nbytes_);
        Request request{0, peer};
        check("post", peer, start(address, piece, &request.handle));
        requests.push_back(request);
        address += piece;
        nbytes -= piece;
    }
}

void Mpi::isend(const void* data, std::size_t nbytes, std::size_t peer, std::uint64_t tag,
                std::vector<Request>& requests) const {
    const auto one = [&](std::uintptr_t address, std::size_t piece, std::uint64_t* request) {
        const auto* const at = reinterpret_cast<const void*>(address);
        return handles_.nbytes == sizeof(int)
                   ? start<int>(functions_.isend, at, piece, peer, tag, handles_, request)
                   : start<void*>(functions_.isend, at, piece, peer, tag, handles_, request);
    };
    start_pieces(reinterpret_cast<std::uintptr_t>(data), nbytes, peer, requests, one);
}

void Mpi::irecv(void* data, std::size_t nbytes, std::size_t peer, std::uint64_t tag,
                std::vector<Request>& requests) const {
    const auto one = [&](std::uintptr_t address, std::size_t piece, std::uint64_t* request) {
        auto* const at = reinterpret_cast<void*>(address);
        return handles_.nbytes == sizeof(int)
                   ? start<int>(functions_.irecv, at, piece, peer, tag, handles_, request)
                   : start<void*>(functions_.irecv, at, piece, peer, tag, handles_, request);
    };
    start_pieces(reinterpret_cast<std::uintptr_t>(data), nbytes, peer, requests, one);
}

bool Mpi::test(Request& request) const {
    int is_complete = 0;
    const int code = handles_.nbytes == sizeof(int)
                         ? test_one<int>(functions_.test, &request.handle, &is_complete)
                         : test_one<void*>(functions_.test, &request.handle, &is_complete);
    check("message", request.peer, code);
    return is_complete != 0;
}

void Mpi::check(const char* what, std::size_t peer, int code) const {
    if (code == 0)
        return;
    char text[kErrorText] = {};
    int length = 0;
    as<int(int, char*, int*)>(functions_.error_string)(code, text, &length);
    throw TransportFailure(
        std::string(what) + ": MPI reported an error: found " + text + ", expected success", peer);
}

}  // namespace rawcoll

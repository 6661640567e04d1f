// MPI's point-to-point messages, by the functions of the library that the process has loaded.
//
// Owns what differs between MPI libraries: handles are integers in some and pointers in others.
// Knows nothing of Python; whoever makes one looks the functions up. Built against no MPI.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace rawcoll {

class Mpi {
  public:
    // Addresses of MPI_Isend, MPI_Irecv, MPI_Test and MPI_Error_string.
    struct Functions {
        std::uintptr_t isend;
        std::uintptr_t irecv;
        std::uintptr_t test;
        std::uintptr_t error_string;
    };

    // The values of the handles of the communicator and of MPI_BYTE, and the size of a handle, 4
    // or 8.
    struct Handles {
        std::uint64_t comm;
        std::uint64_t byte;
        std::size_t nbytes;
    };

    struct Request {
        std::uint64_t handle;
        std::size_t peer;
    };

    // Messages of more than `max_nbytes` travel in pieces, which match in order.
    Mpi(Functions functions, Handles handles, std::size_t max_nbytes);

    // Starts a message and appends its requests. These and `test` throw TransportFailure.
    void isend(const void* data, std::size_t nbytes, std::size_t peer, std::uint64_t tag,
               std::vector<Request>& requests) const;
    void irecv(void* data, std::size_t nbytes, std::size_t peer, std::uint64_t tag,
               std::vector<Request>& requests) const;

    // Whether the request is complete; then it must not be used again. Makes progress on all.
    bool test(Request& request) const;

  private:
    template <class Start>
    void start_pieces(std::uintptr_t address, std::size_t nbytes, std::size_t peer,
                      std::vector<Request>& requests, const Start& start) const;
    void check(const char* what, std::size_t peer, int code) const;

    Functions functions_;
    Handles handles_;
    std::size_t max_nbytes_;
};

}  // namespace rawcoll

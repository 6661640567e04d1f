// One rank's connection to all others: shared memory to its neighbours on the node, MPI to the
// rest.
//
// Owns the way that each message takes. Every message between neighbours is announced in the
// receiver's mailbox. It is then read where it stands, when the sender's array is shared memory; or
// staged by the sender, once for all its receivers on the node; or, too large for that, sent by
// MPI. A receiver copies what it reads or, where the slot is lent, leaves it there for the kernels.
// Knows nothing of Python, of kernels and of rounds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "mailbox.h"
#include "mpi.h"

namespace rawcoll {

// A row of the operation table: the address is the slot's base plus the offset.
struct Message {
    std::size_t slot;
    std::size_t offset;
    std::size_t nbytes;
    std::size_t peer;  // a rank
};

// The address of each slot.
using Bases = std::vector<std::uintptr_t>;

// Messages that progress together.
struct Transfer {
    std::vector<Message> sends;
    std::vector<Message> recvs;
    std::vector<std::size_t> lent;  // slots whose base may be replaced by the message's own address
    bool early;  // the receiver goes on when all has arrived: only then may a send wait for a
                 // receiver
};

class Wires {
  public:
    static constexpr std::size_t kFar = static_cast<std::size_t>(-1);
    // Larger messages go by MPI, which copies once where staging copies twice.
    static constexpr std::size_t kMostStaged = std::size_t{1} << 20;
    // Smaller messages are staged: a copy costs less than waiting for the receiver to have read
    // them.
    static constexpr std::size_t kLeastInPlace = std::size_t{16} << 10;

    // `numbers`: by rank, its number on this node or kFar. Without `box` all must be far, without
    // `mpi` none may be.
    Wires(std::vector<std::size_t> numbers, std::shared_ptr<Mailbox> box, std::shared_ptr<Mpi> mpi);

    // Memory of this rank that its neighbours have mapped, each where `addresses` says by number.
    void add_region(std::uintptr_t start, std::size_t nbytes,
                    std::vector<std::uintptr_t> addresses);

    bool is_near(std::size_t peer) const { return number(peer) != kFar; }
    std::size_t number(std::size_t peer) const { return numbers_.at(peer); }
    Mailbox& box() { return *box_; }
    const Mpi& mpi() const;

    struct Region {
        std::uintptr_t start;
        std::uintptr_t stop;
        std::uint64_t number;
    };
    // The shared memory that holds all of a message, or null.
    const Region* region_of(std::uintptr_t address, std::size_t nbytes) const;

  private:
    std::vector<std::size_t> numbers_;
    std::shared_ptr<Mailbox> box_;
    std::shared_ptr<Mpi> mpi_;
    std::vector<Region> regions_;
};

// Memory of a peer's that stands in for a slot, and the slot's own base.
struct Loan {
    std::size_t number;
    std::uint64_t ticket;
    std::size_t slot;
    std::uintptr_t base;
};

// A transfer under way; used again for the next one when it is complete.
class Flight {
  public:
    explicit Flight(std::shared_ptr<Wires> wires);

    // Starts all messages of a transfer, which must outlive them, as must the bases. Never blocks.
    void begin(const Transfer& transfer, Bases& bases, std::uint64_t tag);

    // Whether all that is received is here, or lent. Makes progress, as does `is_complete`.
    bool has_arrived();

    // Whether all messages are complete and their memory may be used again.
    bool is_complete();

    // The ranks whose messages are not complete, in order.
    std::vector<std::size_t> missing() const;

    // Moves what the transfer has been lent to the end of `loans`.
    void take_loans(std::vector<Loan>& loans);

    // Gives a loan back, and the slot its own base.
    void give_back(const Loan& loan, Bases& bases);

  private:
    struct Read {
        std::size_t peer;
        std::uint64_t ticket;
    };

    void announce();
    bool announce_to(const Message& first, const std::vector<std::size_t>& ranks);
    void receive();
    bool take(const Message& message);
    bool is_lent(std::size_t slot) const;
    void drain(std::vector<Mpi::Request>& requests);
    void* at(const Message& message) const;

    std::shared_ptr<Wires> wires_;
    const Transfer* transfer_ = nullptr;
    Bases* bases_ = nullptr;
    std::uint64_t tag_ = 0;
    std::vector<Message> sends_;        // not announced yet
    std::vector<Message> recvs_;        // not announced to us yet
    std::vector<Mpi::Request> going_;   // sends by MPI
    std::vector<Mpi::Request> coming_;  // receives by MPI
    std::vector<Read> read_;            // sends that are read where they stand
    std::vector<Loan> loans_;
    std::vector<std::size_t> ranks_;    // whom a message is announced to; kept to allocate nothing
    std::vector<std::size_t> numbers_;  // the same by their numbers
};

}  // namespace rawcoll

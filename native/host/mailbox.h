// Messages between ranks that share memory: read in place or copied by the receiver, from where the
// sender has staged them, or from the sender's own array where that is shared.
//
// Owns the layout of the shared segments and the order of loads and stores on them. Knows nothing
// of Python, of schedules or of MPI; whoever makes the segments zeroes them first.
//
// Each rank has one segment, which it alone allocates in: a channel for each receiver, and an
// arena. A channel is a ring of entries, filled by the sender in order; the receiver takes them in
// the order of its receives for each tag, which may differ. An entry is free again when the
// receiver has marked it done; a block of the arena when all its entries are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

namespace rawcoll {

constexpr std::size_t kLine = 64;

struct alignas(kLine) Entry {
    std::uint64_t tag;
    std::uint64_t nbytes;
    std::uint64_t region;  // what `offset` is in, kElsewhere for a message that travels otherwise
    std::uint64_t offset;  // in the sender's memory of that region
    std::uint64_t state;   // kFree, or one more than the number of the message it holds
};

constexpr std::uint64_t kFree = 0;
constexpr std::uint64_t kElsewhere = ~std::uint64_t{0};

class Mailbox {
  public:
    // `segments`: the address of every rank's segment, in this process. `nentries`: of a channel.
    Mailbox(std::vector<std::uintptr_t> segments, std::size_t rank, std::size_t nentries,
            std::size_t arena_nbytes);

    static std::size_t segment_nbytes(std::size_t nranks, std::size_t nentries,
                                      std::size_t arena_nbytes);

    // A region: memory that every rank has mapped; the segments are region 0. Returns its number.
    std::uint64_t add_region(std::vector<std::uintptr_t> addresses);

    // Copies the bytes into the arena once and posts them to every peer; false, and nothing done,
    // where there is no room now.
    bool send(const std::vector<std::size_t>& peers, std::uint64_t tag, const void* data,
              std::size_t nbytes);

    // Posts bytes where they stand. They must stay as they are until `is_done` of every ticket.
    // Empty, and nothing done, where there is no room now.
    std::vector<std::uint64_t> send_in_place(const std::vector<std::size_t>& peers,
                                             std::uint64_t tag, std::uint64_t region,
                                             std::size_t offset, std::size_t nbytes);

    // Whether the receiver has released the message that was posted with this ticket.
    bool is_done(std::size_t peer, std::uint64_t ticket) const;

    // The next message of `tag` from `peer`. It stays the receiver's until `release`. Throws
    // std::length_error where its size is not `nbytes`.
    struct Claim {
        enum Kind { kNone, kHere, kElsewhere } kind;
        std::uintptr_t address;
        std::uint64_t ticket;
    };
    Claim claim(std::size_t peer, std::uint64_t tag, std::size_t nbytes);

    // The memory of a claimed message may be used again.
    void release(std::size_t peer, std::uint64_t ticket);

  private:
    struct Block {
        std::size_t offset;
        std::size_t nbytes;
        std::vector<Entry*> entries;
    };
    struct Incoming {
        std::uint64_t next = 0;              // the first entry that has not been claimed
        std::vector<std::uint64_t> claimed;  // later entries that have
    };

    Entry* entry(std::size_t from, std::size_t to, std::uint64_t number) const;
    bool has_room(const std::vector<std::size_t>& peers) const;
    bool reserve(std::size_t nbytes, std::size_t* offset);

    std::uint64_t post(std::size_t peer, std::uint64_t tag, std::size_t nbytes,
                       std::uint64_t region, std::size_t offset);

    std::vector<std::vector<std::uintptr_t>> regions_;  // by number, then by rank
    std::vector<std::uintptr_t> segments_;
    std::size_t rank_;
    std::size_t nentries_;
    std::size_t arena_;  // offset of the arena in a segment
    std::size_t arena_nbytes_;
    std::vector<std::uint64_t> posted_;  // entries posted to each peer so far
    std::vector<Incoming> incoming_;
    std::vector<Block> blocks_;  // in use, by offset
    std::mutex mutex_;           // of this process's threads
};

}  // namespace rawcoll

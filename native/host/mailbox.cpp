#include "mailbox.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>

namespace rawcoll {
namespace {

std::size_t padded(std::size_t nbytes) {
    return (nbytes + kLine - 1) / kLine * kLine;
}

std::uint64_t acquire(const std::uint64_t& word) {
    return __atomic_load_n(&word, __ATOMIC_ACQUIRE);
}

void publish(std::uint64_t& word, std::uint64_t value) {
    __atomic_store_n(&word, value, __ATOMIC_RELEASE);
}

}  // namespace

Mailbox::Mailbox(std::vector<std::uintptr_t> segments, std::size_t rank, std::size_t nentries,
                 std::size_t arena_nbytes)
    : segments_(std::move(segments)),
      rank_(rank),
      nentries_(nentries),
      arena_(segments_.size() * nentries * sizeof(Entry)),
      arena_nbytes_(arena_nbytes),
      posted_(segments_.size()),
      incoming_(segments_.size()) {
    if (rank_ >= segments_.size() || nentries_ == 0)
        throw std::invalid_argument("mailbox: rank or entries out of range");
    regions_.push_back(segments_);
    for (const std::uintptr_t segment : segments_)
        if (segment == 0 || segment % kLine != 0)
            throw std::invalid_argument("mailbox: segment: not aligned to a cache line");
}

std::size_t Mailbox::segment_nbytes(std::size_t nranks, std::size_t nentries,
                                    std::size_t arena_nbytes) {
    return nranks * nentries * sizeof(Entry) + arena_nbytes;
}

Entry* Mailbox::entry(std::size_t from, std::size_t to, std::uint64_t number) const {
    auto* const first = reinterpret_cast<Entry*>(segments_[from]);
    return first + to * nentries_ + number % nentries_;
}

bool Mailbox::has_room(const std::vector<std::size_t>& peers) const {
    return std::all_of(peers.begin(), peers.end(), [this](std::size_t peer) {
        return acquire(entry(rank_, peer, posted_[peer])->state) == kFree;
    });
}

// The lowest gap: what was in use last is used again, while it is still in the caches.
bool Mailbox::reserve(std::size_t nbytes, std::size_t* offset) {
    const auto is_done = [](const Block& block) {
        return std::all_of(block.entries.begin(), block.entries.end(),
                           [](const Entry* entry) { return acquire(entry->state) == kFree; });
    };
    blocks_.erase(std::remove_if(blocks_.begin(), blocks_.end(), is_done), blocks_.end());
    std::size_t at = 0;
    auto place = blocks_.begin();
    while (place != blocks_.end() && place->offset - at < nbytes) {
        at = place->offset + place->nbytes;
        ++place;
    }
    if (arena_nbytes_ - at < nbytes)
        return false;
    blocks_.insert(place, Block{at, nbytes, {}});
    *offset = at;
    return true;
}

bool Mailbox::send(const std::vector<std::size_t>& peers, std::uint64_t tag, const void* data,
                   std::size_t nbytes) {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::size_t offset = 0;
    if (!has_room(peers) || !reserve(padded(nbytes), &offset))
        return false;
    std::memcpy(reinterpret_cast<void*>(segments_[rank_] + arena_ + offset), data, nbytes);
    auto block = std::find_if(blocks_.begin(), blocks_.end(),
                              [offset](const Block& one) { return one.offset == offset; });
    for (const std::size_t peer : peers) {
        const std::uint64_t number = post(peer, tag, nbytes, 0, arena_ + offset);
        block->entries.push_back(entry(rank_, peer, number));
    }
    return true;
}

std::vector<std::uint64_t> Mailbox::send_in_place(const std::vector<std::size_t>& peers,
                                                  std::uint64_t tag, std::uint64_t region,
                                                  std::size_t offset, std::size_t nbytes) {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::vector<std::uint64_t> tickets;
    if (has_room(peers))
        for (const std::size_t peer : peers)
            tickets.push_back(post(peer, tag, nbytes, region, offset));
    return tickets;
}

std::uint64_t Mailbox::add_region(std::vector<std::uintptr_t> addresses) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (addresses.size() != segments_.size())
        throw std::invalid_argument("region: not as many addresses as ranks");
    regions_.push_back(std::move(addresses));
    return regions_.size() - 1;
}

bool Mailbox::is_done(std::size_t peer, std::uint64_t ticket) const {
    return acquire(entry(rank_, peer, ticket)->state) != ticket + 1;
}

std::uint64_t Mailbox::post(std::size_t peer, std::uint64_t tag, std::size_t nbytes,
                            std::uint64_t region, std::size_t offset) {
    const std::uint64_t number = posted_[peer]++;
    Entry* const posted = entry(rank_, peer, number);
    posted->tag = tag;
    posted->nbytes = nbytes;
    posted->region = region;
    posted->offset = offset;
    publish(posted->state, number + 1);
    return number;
}

Mailbox::Claim Mailbox::claim(std::size_t peer, std::uint64_t tag, std::size_t nbytes) {
    const std::lock_guard<std::mutex> lock(mutex_);
    Incoming& incoming = incoming_[peer];
    auto& claimed = incoming.claimed;
    for (std::uint64_t number = incoming.next; number - incoming.next < nentries_; ++number) {
        if (std::find(claimed.begin(), claimed.end(), number) != claimed.end())
            continue;
        const Entry* const found = entry(peer, rank_, number);
        if (acquire(found->state) != number + 1)
            break;
        if (found->tag != tag)
            continue;
        if (found->nbytes != nbytes)
            throw std::length_error("found " + std::to_string(found->nbytes) +
                                    " bytes sent, expected " + std::to_string(nbytes));
        claimed.push_back(number);
        for (auto at = claimed.begin();
             (at = std::find(claimed.begin(), claimed.end(), incoming.next)) != claimed.end();
             ++incoming.next)
            claimed.erase(at);
        if (found->region == kElsewhere)
            return {Claim::kElsewhere, 0, number};
        return {Claim::kHere, regions_.at(found->region)[peer] + found->offset, number};
    }
    return {Claim::kNone, 0, 0};
}

void Mailbox::release(std::size_t peer, std::uint64_t ticket) {
    publish(entry(peer, rank_, ticket)->state, kFree);
}

}  // namespace rawcoll

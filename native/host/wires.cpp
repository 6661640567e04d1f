#include "wires.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>

#include "failure.h"

namespace rawcoll {
namespace {

bool is_same_data(const Message& one, const Message& other) {
    return one.slot == other.slot && one.offset == other.offset && one.nbytes == other.nbytes;
}

}  // namespace

Wires::Wires(std::vector<std::size_t> numbers, std::shared_ptr<Mailbox> box,
             std::shared_ptr<Mpi> mpi)
    : numbers_(std::move(numbers)), box_(std::move(box)), mpi_(std::move(mpi)) {
    for (const std::size_t number : numbers_)
        if (number != kFar && box_ == nullptr)
            throw std::invalid_argument("wires: neighbours without a mailbox");
}

const Mpi& Wires::mpi() const {
    if (mpi_ == nullptr)
        throw std::logic_error("wires: a message that needs MPI: found none");
    return *mpi_;
}

void Wires::add_region(std::uintptr_t start, std::size_t nbytes,
                       std::vector<std::uintptr_t> addresses) {
    regions_.push_back({start, start + nbytes, box_->add_region(std::move(addresses))});
}

const Wires::Region* Wires::region_of(std::uintptr_t address, std::size_t nbytes) const {
    for (const Region& region : regions_)
        if (region.start <= address && address + nbytes <= region.stop)
            return &region;
    return nullptr;
}

Flight::Flight(std::shared_ptr<Wires> wires) : wires_(std::move(wires)) {}

void* Flight::at(const Message& message) const {
    return reinterpret_cast<void*>(bases_->at(message.slot) + message.offset);
}

void Flight::begin(const Transfer& transfer, Bases& bases, std::uint64_t tag) {
    transfer_ = &transfer;
    bases_ = &bases;
    tag_ = tag;
    for (const Message& message : transfer.recvs) {
        if (wires_->is_near(message.peer))
            recvs_.push_back(message);
        else
            wires_->mpi().irecv(at(message), message.nbytes, message.peer, tag, coming_);
    }
    for (const Message& message : transfer.sends) {
        if (wires_->is_near(message.peer))
            sends_.push_back(message);
        else
            wires_->mpi().isend(at(message), message.nbytes, message.peer, tag, going_);
    }
    announce();
}

bool Flight::has_arrived() {
    if (!sends_.empty())
        announce();
    if (!recvs_.empty())
        receive();
    if (!coming_.empty())
        drain(coming_);
    return recvs_.empty() && coming_.empty();
}

bool Flight::is_complete() {
    if (!has_arrived() || !sends_.empty())
        return false;
    if (!read_.empty()) {
        const auto is_done = [this](const Read& read) {
            return wires_->box().is_done(wires_->number(read.peer), read.ticket);
        };
        read_.erase(std::remove_if(read_.begin(), read_.end(), is_done), read_.end());
    }
    if (!going_.empty())
        drain(going_);
    return read_.empty() && going_.empty();
}

std::vector<std::size_t> Flight::missing() const {
    std::vector<std::size_t> peers;
    for (const Message& message : sends_)
        peers.push_back(message.peer);
    for (const Message& message : recvs_)
        peers.push_back(message.peer);
    for (const Read& read : read_)
        peers.push_back(read.peer);
    for (const Mpi::Request& request : coming_)
        peers.push_back(request.peer);
    for (const Mpi::Request& request : going_)
        peers.push_back(request.peer);
    std::sort(peers.begin(), peers.end());
    peers.erase(std::unique(peers.begin(), peers.end()), peers.end());
    return peers;
}

void Flight::take_loans(std::vector<Loan>& loans) {
    loans.insert(loans.end(), loans_.begin(), loans_.end());
    loans_.clear();
}

void Flight::give_back(const Loan& loan, Bases& bases) {
    bases.at(loan.slot) = loan.base;
    wires_->box().release(loan.number, loan.ticket);
}

// Announces what there is room for: the same bytes once, whoever gets them.
void Flight::announce() {
    while (!sends_.empty()) {
        const Message first = sends_.front();
        ranks_.clear();
        for (const Message& message : sends_)
            if (is_same_data(message, first))
                ranks_.push_back(message.peer);
        if (!announce_to(first, ranks_))
            return;
        const auto is_announced = [&first](const Message& message) {
            return is_same_data(message, first);
        };
        sends_.erase(std::remove_if(sends_.begin(), sends_.end(), is_announced), sends_.end());
    }
}

bool Flight::announce_to(const Message& message, const std::vector<std::size_t>& ranks) {
    Mailbox& box = wires_->box();
    numbers_.clear();
    for (const std::size_t rank : ranks)
        numbers_.push_back(wires_->number(rank));
    void* const data = at(message);
    if (transfer_->early && message.nbytes >= Wires::kLeastInPlace) {
        const auto address = reinterpret_cast<std::uintptr_t>(data);
        const Wires::Region* const region = wires_->region_of(address, message.nbytes);
        if (region != nullptr) {
            const auto tickets = box.send_in_place(numbers_, tag_, region->number,
                                                   address - region->start, message.nbytes);
            for (std::size_t k = 0; k < tickets.size(); ++k)
                read_.push_back({ranks[k], tickets[k]});
            return !tickets.empty();
        }
    }
    if (message.nbytes <= Wires::kMostStaged && box.send(numbers_, tag_, data, message.nbytes))
        return true;
    if (box.send_in_place(numbers_, tag_, kElsewhere, 0, message.nbytes).empty())
        return false;
    for (const std::size_t rank : ranks)
        wires_->mpi().isend(data, message.nbytes, rank, tag_, going_);
    return true;
}

// Messages of one peer match in order: behind one that is not there none is taken.
void Flight::receive() {
    std::size_t left = 0;
    for (std::size_t k = 0; k < recvs_.size(); ++k) {
        const Message message = recvs_[k];
        const bool is_behind =
            std::any_of(recvs_.begin(), recvs_.begin() + left,
                        [&](const Message& one) { return one.peer == message.peer; });
        if (is_behind || !take(message))
            recvs_[left++] = message;
    }
    recvs_.resize(left);
}

bool Flight::is_lent(std::size_t slot) const {
    const auto& lent = transfer_->lent;
    return std::find(lent.begin(), lent.end(), slot) != lent.end();
}

// Takes a message that is announced; one that comes by MPI is now expected there.
bool Flight::take(const Message& message) {
    Mailbox& box = wires_->box();
    const std::size_t number = wires_->number(message.peer);
    Mailbox::Claim claim;
    try {
        claim = box.claim(number, tag_, message.nbytes);
    } catch (const std::length_error& error) {
        throw TransportFailure(
            "message from rank " + std::to_string(message.peer) + ": sizes differ: " + error.what(),
            message.peer);
    }
    switch (claim.kind) {
        case Mailbox::Claim::kNone:
            return false;
        case Mailbox::Claim::kElsewhere:
            box.release(number, claim.ticket);
            wires_->mpi().irecv(at(message), message.nbytes, message.peer, tag_, coming_);
            return true;
        case Mailbox::Claim::kHere:
            break;
    }
    if (is_lent(message.slot)) {
        std::uintptr_t& base = bases_->at(message.slot);
        loans_.push_back({number, claim.ticket, message.slot, base});
        base = claim.address;
        return true;
    }
    std::memcpy(at(message), reinterpret_cast<const void*>(claim.address), message.nbytes);
    box.release(number, claim.ticket);
    return true;
}

void Flight::drain(std::vector<Mpi::Request>& requests) {
    const auto is_done = [this](Mpi::Request& request) { return wires_->mpi().test(request); };
    requests.erase(std::remove_if(requests.begin(), requests.end(), is_done), requests.end());
}

}  // namespace rawcoll

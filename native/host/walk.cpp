#include "walk.h"

#include <sched.h>

#include <cstring>
#include <stdexcept>
#include <utility>

#include "dispatch.h"

namespace rawcoll {
namespace {

constexpr std::size_t kSmallNbytes = 32768;
// About ten microseconds: longer than a small message takes, shorter than anybody else notices.
constexpr int kSpins = 200;
constexpr int kYields = 20;

void pause() {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

bool is_small(const Table& table) {
    std::size_t nbytes = 0;
    for (const WireRow& row : table.wire) {
        for (const Message& message : row.transfer.sends)
            nbytes += message.nbytes;
        for (const Message& message : row.transfer.recvs)
            nbytes += message.nbytes;
    }
    for (const LocalRow& row : table.local)
        nbytes += row.count * row.srcs.size() * itemsize(table.dtype);
    return nbytes <= kSmallNbytes;
}

}  // namespace

Walk::Walk(std::shared_ptr<Wires> wires, std::shared_ptr<const Table> table)
    : wires_(wires),
      table_(std::move(table)),
      flight_(std::move(wires)),
      is_small_(rawcoll::is_small(*table_)) {}

void Walk::place(Bases bases) {
    bases_ = std::move(bases);
}

void Walk::place_array(std::uintptr_t address) {
    bases_.at(0) = bases_.at(1) = address;
}

void Walk::restart(std::uint64_t tag) {
    tag_ = tag;
    wire_ = local_ = 0;
}

bool Walk::is_empty() const {
    return table_->wire.empty() && table_->local.empty();
}

long long Walk::round() const {
    const std::size_t row = in_flight_ && has_arrived_ ? wire_ - 1 : wire_;
    return row < table_->wire.size() ? table_->wire[row].round : -1;
}

std::vector<std::size_t> Walk::missing() const {
    return in_flight_ ? flight_.missing() : std::vector<std::size_t>{};
}

Progress Walk::step(Patience patience) {
    const int asks = patience == Patience::None ? 0 : patience == Patience::Spin ? kSpins : kYields;
    bool moved = false;
    for (int idle = 0;;) {
        if (advance()) {
            moved = true;
            idle = 0;
            continue;
        }
        if (!in_flight_)
            return Progress::Finished;
        if (idle++ == asks)
            return moved ? Progress::Moved : Progress::Still;
        if (patience == Patience::Yield)
            sched_yield();
        else
            pause();
    }
}

// One round of everything that may move; false where nothing did.
bool Walk::advance() {
    bool moved = false;
    const auto& wire = table_->wire;
    if (!in_flight_ && wire_ < wire.size() && wire[wire_].need <= local_) {
        flight_.begin(wire[wire_].transfer, bases_, tag_);
        in_flight_ = moved = true;
        has_arrived_ = false;
    }
    const auto& local = table_->local;
    if (local_ < local.size() && local[local_].need <= wire_) {
        run(local[local_]);
        ++local_;
        give_back();
        moved = true;
    }
    return in_flight_ ? advance_wire() || moved : moved;
}

bool Walk::advance_wire() {
    if (has_arrived_) {
        in_flight_ = !flight_.is_complete();
        return !in_flight_;
    }
    const WireRow& row = table_->wire[wire_];
    has_arrived_ = row.transfer.early ? flight_.has_arrived() : flight_.is_complete();
    if (!has_arrived_)
        return false;
    ++wire_;
    if (!row.transfer.lent.empty()) {
        lent_.push_back({row.release, {}});
        flight_.take_loans(lent_.back().loans);
        give_back();
    }
    return true;
}

void Walk::run(const LocalRow& row) {
    const auto at = [this](const Place& place) {
        return reinterpret_cast<void*>(bases_.at(place.slot) + place.offset);
    };
    void* const dst = at(row.dst);
    if (row.kernel == Kernel::Copy) {
        const void* const src = at(row.srcs.front());
        if (dst != src)
            std::memcpy(dst, src, row.count * itemsize(table_->dtype));
        return;
    }
    srcs_.clear();
    for (const Place& place : row.srcs)
        srcs_.push_back(at(place));
    reduce(table_->op, table_->dtype, dst, srcs_.data(), srcs_.size(), row.count,
           row.kernel == Kernel::ReduceLast ? table_->divisor : 1);
}

// What was lent to kernels that have all run.
void Walk::give_back() {
    while (!lent_.empty() && lent_.front().release <= local_) {
        for (const Loan& loan : lent_.front().loans)
            flight_.give_back(loan, bases_);
        lent_.erase(lent_.begin());
    }
}

}  // namespace rawcoll

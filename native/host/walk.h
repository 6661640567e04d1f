// The walk over a table of operations without the interpreter: one execution of one rank's part.
//
// Owns the order of messages and kernels: two positions advance independently, the wire with one
// transfer in flight at a time, and the kernels. A transfer is posted before the reduction of the
// segment before it, and goes on beside it. rawcoll/executor/walk.py does the same in Python, on
// any transport. Knows nothing of Python.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "wires.h"

namespace rawcoll {

enum class Kernel { Copy = 0, Reduce = 1, ReduceLast = 2 };

struct Place {
    std::size_t slot;
    std::size_t offset;
};

struct WireRow {
    std::size_t need;  // local rows that must be finished before
    long long round;
    Transfer transfer;
    std::size_t release;  // local rows that must be finished before what was lent is given back
};

struct LocalRow {
    std::size_t need;  // wire rows that must be finished before
    Kernel kernel;
    Place dst;
    std::vector<Place> srcs;
    std::size_t count;  // elements
};

struct Table {
    std::vector<WireRow> wire;
    std::vector<LocalRow> local;
    int op;
    int dtype;
    int divisor;  // of the last reduction
};

enum class Progress { Still = 0, Moved = 1, Finished = 2 };
// How a step waits: not at all, spinning for some ten microseconds, or giving up the core each
// time.
enum class Patience { None = 0, Spin = 1, Yield = 2 };

class Walk {
  public:
    Walk(std::shared_ptr<Wires> wires, std::shared_ptr<const Table> table);
    Walk(const Walk&) = delete;
    Walk& operator=(const Walk&) = delete;

    // The addresses of all slots, or of the first two alone. Only between executions.
    void place(Bases bases);
    void place_array(std::uintptr_t address);

    // Be at the beginning again. Only after an execution that has finished well.
    void restart(std::uint64_t tag);

    // Does all that can be done; where nothing moves, asks again as long as the caller has
    // patience.
    Progress step(Patience patience);

    bool is_empty() const;
    // Whether it moves so few bytes that giving up the interpreter lock would take longer.
    bool is_small() const { return is_small_; }
    // The round under way, or -1 after the last.
    long long round() const;
    std::vector<std::size_t> missing() const;

  private:
    struct Lent {
        std::size_t release;
        std::vector<Loan> loans;
    };

    bool advance();
    bool advance_wire();
    void run(const LocalRow& row);
    void give_back();

    std::shared_ptr<Wires> wires_;
    std::shared_ptr<const Table> table_;
    Flight flight_;
    Bases bases_;
    std::uint64_t tag_ = 0;
    std::size_t wire_ = 0;   // rows whose messages have arrived
    std::size_t local_ = 0;  // rows that have run
    bool in_flight_ = false;
    bool has_arrived_ =
        false;  // all that the transfer in flight brings; only its sends are under way
    bool is_small_;
    std::vector<Lent> lent_;  // by transfer, the earliest first
    std::vector<const void*> srcs_;
};

}  // namespace rawcoll

// The Python module of the mailbox: addresses in, nothing else.
#include <nanobind/nanobind.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <cstring>

#include "interpreter.h"
#include "mailbox.h"

namespace nb = nanobind;
using rawcoll::Mailbox;
using rawcoll::run;

namespace {

bool send(Mailbox& box, const std::vector<std::size_t>& peers, std::uint64_t tag,
          std::uintptr_t address, std::size_t nbytes) {
    bool sent = false;
    run(nbytes, [&] { sent = box.send(peers, tag, reinterpret_cast<void*>(address), nbytes); });
    return sent;
}

// Answers of `receive`.
constexpr int kNothing = 0;
constexpr int kReceived = 1;
constexpr int kComesElsewhere = 2;

int receive(Mailbox& box, std::size_t peer, std::uint64_t tag, std::uintptr_t address,
            std::size_t nbytes) {
    const Mailbox::Claim claim = box.claim(peer, tag, nbytes);
    if (claim.kind == Mailbox::Claim::kNone)
        return kNothing;
    const bool is_here = claim.kind == Mailbox::Claim::kHere;
    if (is_here)
        run(nbytes, [&] {
            std::memcpy(reinterpret_cast<void*>(address), reinterpret_cast<void*>(claim.address),
                        nbytes);
        });
    box.release(peer, claim.ticket);
    return is_here ? kReceived : kComesElsewhere;
}

nb::object borrow(Mailbox& box, std::size_t peer, std::uint64_t tag, std::size_t nbytes) {
    const Mailbox::Claim claim = box.claim(peer, tag, nbytes);
    if (claim.kind == Mailbox::Claim::kNone)
        return nb::none();
    if (claim.kind == Mailbox::Claim::kElsewhere)
        box.release(peer, claim.ticket);
    return nb::make_tuple(claim.address, claim.ticket);
}

}  // namespace

NB_MODULE(_mailbox, m) {
    // A communicator that is never closed lives until the process ends, and its mailbox with it.
    nb::set_leak_warnings(false);
    m.def("segment_nbytes", &Mailbox::segment_nbytes);
    m.attr("ELSEWHERE") = rawcoll::kElsewhere;
    m.attr("RECEIVED") = kReceived;
    m.attr("COMES_ELSEWHERE") = kComesElsewhere;
    nb::class_<Mailbox>(m, "Mailbox")
        .def(nb::init<std::vector<std::uintptr_t>, std::size_t, std::size_t, std::size_t>())
        .def("add_region", &Mailbox::add_region)
        .def("send", &send)
        .def("send_in_place", &Mailbox::send_in_place)
        .def("is_done", &Mailbox::is_done)
        .def("receive", &receive)
        .def("borrow", &borrow)
        .def("release", &Mailbox::release);
}

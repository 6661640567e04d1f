// Messages and the walk over a table, for Python: numbers and addresses in, nothing else.
#include <nanobind/nanobind.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <tuple>
#include <utility>

#include "failure.h"
#include "modules.h"
#include "walk.h"

namespace nb = nanobind;
using namespace nb::literals;
using rawcoll::Flight;
using rawcoll::Mailbox;
using rawcoll::Message;
using rawcoll::Mpi;
using rawcoll::Place;
using rawcoll::Table;
using rawcoll::Walk;
using rawcoll::Wires;

namespace {

using MessageFields = std::tuple<std::size_t, std::size_t, std::size_t, std::size_t>;
using PlaceFields = std::tuple<std::size_t, std::size_t>;
// need, round, sends, recvs, lent, early, release
using WireFields =
    std::tuple<std::size_t, long long, std::vector<MessageFields>, std::vector<MessageFields>,
               std::vector<std::size_t>, bool, std::size_t>;
// need, kernel, dst, srcs, count
using LocalFields =
    std::tuple<std::size_t, int, PlaceFields, std::vector<PlaceFields>, std::size_t>;

std::vector<Message> messages(const std::vector<MessageFields>& fields) {
    std::vector<Message> made;
    for (const auto& [slot, offset, nbytes, peer] : fields)
        made.push_back({slot, offset, nbytes, peer});
    return made;
}

Place place(const PlaceFields& fields) {
    return {std::get<0>(fields), std::get<1>(fields)};
}

std::shared_ptr<Table> table(const std::vector<WireFields>& wire,
                             const std::vector<LocalFields>& local, int op, int dtype,
                             int divisor) {
    auto made = std::make_shared<Table>();
    for (const auto& [need, round, sends, recvs, lent, early, release] : wire)
        made->wire.push_back(
            {need, round, {messages(sends), messages(recvs), lent, early}, release});
    for (const auto& [need, kernel, dst, srcs, count] : local) {
        std::vector<Place> places;
        for (const PlaceFields& src : srcs)
            places.push_back(place(src));
        made->local.push_back(
            {need, static_cast<rawcoll::Kernel>(kernel), place(dst), std::move(places), count});
    }
    made->op = op;
    made->dtype = dtype;
    made->divisor = divisor;
    return made;
}

// One transfer on its own, with everything that it needs.
class Posted {
  public:
    Posted(std::shared_ptr<Wires> wires, const std::vector<MessageFields>& sends,
           const std::vector<MessageFields>& recvs, rawcoll::Bases bases, std::uint64_t tag)
        : flight_(std::move(wires)),
          transfer_{messages(sends), messages(recvs), {}, false},
          bases_(std::move(bases)) {
        const nb::gil_scoped_release release;
        flight_.begin(transfer_, bases_, tag);
    }
    Posted(const Posted&) = delete;
    Posted& operator=(const Posted&) = delete;

    bool test() {
        const nb::gil_scoped_release release;
        return flight_.is_complete();
    }
    nb::tuple missing() const { return nb::tuple(nb::cast(flight_.missing())); }

  private:
    Flight flight_;
    rawcoll::Transfer transfer_;
    rawcoll::Bases bases_;
};

int step(Walk& walk, int patience) {
    const auto how = static_cast<rawcoll::Patience>(patience);
    if (walk.is_small())
        return static_cast<int>(walk.step(how));
    const nb::gil_scoped_release release;
    return static_cast<int>(walk.step(how));
}

void raise_transport_error(const std::exception_ptr& thrown, void* /*payload*/) {
    try {
        std::rethrow_exception(thrown);
    } catch (const rawcoll::TransportFailure& failure) {
        const nb::object error = nb::module_::import_("rawcoll.errors").attr("TransportError");
        const nb::object made =
            error(failure.what(), nb::arg("peers") = nb::make_tuple(failure.peer));
        PyErr_SetObject(error.ptr(), made.ptr());
    }
}

}  // namespace

void rawcoll::bind_wires(nb::module_& m) {
    nb::register_exception_translator(raise_transport_error);
    m.def("mailbox_nbytes", &Mailbox::segment_nbytes, "nranks"_a, "nentries"_a, "arena_nbytes"_a);
    nb::class_<Mailbox>(m, "Mailbox")
        .def(nb::init<std::vector<std::uintptr_t>, std::size_t, std::size_t, std::size_t>(),
             "segments"_a, "number"_a, "nentries"_a, "arena_nbytes"_a);
    nb::class_<Mpi>(m, "Mpi").def(
        "__init__",
        [](Mpi* self,
           const std::tuple<std::uintptr_t, std::uintptr_t, std::uintptr_t, std::uintptr_t>&
               functions,
           std::uint64_t comm, std::uint64_t byte, std::size_t handle_nbytes,
           std::size_t max_nbytes) {
            const auto& [isend, irecv, test, error_string] = functions;
            new (self)
                Mpi({isend, irecv, test, error_string}, {comm, byte, handle_nbytes}, max_nbytes);
        },
        "functions"_a, "comm"_a, "byte"_a, "handle_nbytes"_a, "max_nbytes"_a);
    nb::class_<Wires>(m, "Wires")
        .def(nb::init<std::vector<std::size_t>, std::shared_ptr<Mailbox>, std::shared_ptr<Mpi>>(),
             "numbers"_a, "box"_a.none(), "mpi"_a.none())
        .def("add_region", &Wires::add_region, "start"_a, "nbytes"_a, "addresses"_a);
    m.attr("FAR") = Wires::kFar;
    nb::class_<Posted>(m, "Posted")
        .def(nb::init<std::shared_ptr<Wires>, const std::vector<MessageFields>&,
                      const std::vector<MessageFields>&, rawcoll::Bases, std::uint64_t>(),
             "wires"_a, "sends"_a, "recvs"_a, "bases"_a, "tag"_a)
        .def("test", &Posted::test)
        .def("missing", &Posted::missing);
    nb::class_<Table>(m, "Table");
    m.def("table", &table, "wire"_a, "local"_a, "op"_a, "dtype"_a, "divisor"_a);
    nb::class_<Walk>(m, "Walk")
        .def(nb::init<std::shared_ptr<Wires>, std::shared_ptr<const Table>>(), "wires"_a, "table"_a)
        .def("place", &Walk::place, "bases"_a)
        .def("place_array", &Walk::place_array, "address"_a)
        .def("restart", &Walk::restart, "tag"_a)
        .def("step", &step, "patience"_a)
        .def_prop_ro("is_empty", &Walk::is_empty)
        .def_prop_ro("round",
                     [](const Walk& walk) -> nb::object {
                         const long long round = walk.round();
                         return round < 0 ? nb::none() : nb::cast(round);
                     })
        .def_prop_ro("missing",
                     [](const Walk& walk) { return nb::tuple(nb::cast(walk.missing())); });
}

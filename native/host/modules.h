// The parts of the extension module, one function each.
#pragma once

#include <nanobind/nanobind.h>

namespace rawcoll {

void bind_wires(nanobind::module_& m);

}  // namespace rawcoll

// From Python arguments to an ArgumentPack: which kind of thing each one is. Whether it fits is the pack's to
// say.
#pragma once

#include <pybind11/pybind11.h>

#include <bascule/interface/argument.hpp>
#include <bascule/runtime/device.hpp>

#include "owners.hpp"

namespace bascule::python {

/// bascule.raw_pointer(address).
struct RawPointerObject {
    std::uint64_t address = 0;
};

/// Reads one argument for parameter `index`; arrays join `owners`. Throws: ArgumentError naming the
/// parameter; a producer's own exception unchanged.
void set_argument(ArgumentPack& pack, int index, PyObject* argument, Device device, OwnerList& owners);

/// The arguments in the order of the parameters, keywords included: borrowed references. `slots` has one
/// entry a parameter. Throws: ArgumentError for a wrong count, an unknown or a repeated keyword; the message
/// shows the signature.
void order_arguments(const Signature& signature, PyObject* const* arguments, Py_ssize_t positional,
                     PyObject* keywords, std::span<PyObject*> slots);

void bind_arguments(pybind11::module_& module);

}  // namespace bascule::python

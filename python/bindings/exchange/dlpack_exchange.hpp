// Arguments by DLPack's exchange table: from a type's C functions to an array view, without a Python object.
#pragma once

#include <pybind11/pybind11.h>

#include <bascule/interface/arguments/signature.hpp>
#include <bascule/interface/arrays/dlpack.hpp>
#include <bascule/runtime/driver/home_device.hpp>

#include "exchange/type_profile.hpp"
#include "launch/owners.hpp"

namespace bascule::python {

/// Reads the object by its type's table and keeps it for the launch. False when the table is not the way:
/// for host memory, for what DLPack cannot describe and the array interface may, and for the case below.
/// Throws: ArgumentError; the producer's own exception unchanged.
///
/// A borrowed tensor cannot say that it is read-only. So where the kernel may write and the type is not known
/// to have writable objects only, the object's `__cuda_array_interface__` is read instead, or, when the type
/// has none, a managed tensor, whose flags say it.
bool read_exchange(PyObject* object, const TypeProfile& profile, bool may_write, Home& home,
                   OwnerList& owners, ArrayView& view);

/// The same for what most tensors are: plain arrays that lie where the launch goes, and that the parameter takes. False
/// for all others, which read_exchange decides about; then nothing is kept. Throws: what the library raised when it was
/// asked for its stream.
bool read_exchange_plainly(PyObject* object, const TypeProfile& profile, const Parameter& parameter,
                           Home& home, OwnerList& owners, PlainArray& array);

/// An array of `device`, read by an interface that could not name a stream (versions 0 to 2): where its type
/// has a table too, the library's work stream is the array's. False where it has none. Throws: what the
/// library raised.
bool order_by_table(const TypeProfile& profile, Device device, ArrayView& view);

}  // namespace bascule::python

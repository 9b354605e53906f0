// Arguments by DLPack's exchange table: from a type's C functions to an array view, without a Python object.
#pragma once

#include <bascule/interface/arguments/signature.hpp>
#include <bascule/interface/arrays/dlpack.hpp>
#include <bascule/runtime/driver/home_device.hpp>

#include "support/owners.hpp"
#include "support/pybind.hpp"
#include "types/tensor_state.hpp"
#include "types/type_profile.hpp"

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

namespace detail {

[[noreturn]] void fail_work_stream();

/// The stream on which the table's library works on this device now.
inline std::uint64_t work_stream_of(const dlpack::ExchangeTable& table, dlpack::DeviceId device) {
    void* stream = nullptr;
    if (table.current_work_stream(device.type, device.id, &stream) != 0) [[unlikely]]
        fail_work_stream();
    const auto handle = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(stream));
    return handle == 0 ? 1 : handle;  // NULL is the default stream
}

}  // namespace detail

/// The stream on which a table's library works on one device, as it said last.
struct WorkStream {
    const dlpack::ExchangeTable* table = nullptr;  ///< null: none was called
    std::int32_t device = 0;
    std::uint64_t handle = 0;
};

/// The same for what most tensors are: plain arrays that lie where the launch goes, and that the parameter takes. False
/// for all others, which read_exchange decides about; then nothing is kept. The library is asked for its stream once, and
/// again for another device. Throws: what the library raised then.
[[gnu::always_inline]] inline bool read_plain_tensor(PyObject* object, const TypeProfile& profile,
                                                     const Parameter& parameter, Home& home,
                                                     OwnerList& owners, WorkStream& known,
                                                     PlainArray& array) {
    const dlpack::ExchangeTable& table = *profile.table;
    if (table.tensor_from_object == nullptr || !(parameter.type.constant || profile.never_readonly)) {
        return false;
    }
    dlpack::Tensor tensor;
    if (table.tensor_from_object(object, &tensor) != 0) [[unlikely]] {
        PyErr_Clear();  // it is asked again
        return false;
    }
    array.traits = dlpack::traits_of(tensor.dtype);
    if (tensor.device.type != BASCULE_DL_CUDA || !fits(array.traits, parameter.plain) ||
        !dlpack::read_plain_elements(tensor, array, nullptr) || !array.is_aligned() ||
        !is_known_at_home(array.pointer, home, tensor.device.id) ||
        !is_plain_state(object, profile.state, tensor.dtype.code, !parameter.type.constant)) {
        return false;
    }
    if (known.table != &table || known.device != tensor.device.id) {
        known = {&table, tensor.device.id, detail::work_stream_of(table, tensor.device)};
    }
    array.stream = known.handle;
    owners.keep(object, array.bytes);
    return true;
}

/// An array of `device`, read by an interface that could not name a stream (versions 0 to 2): where its type
/// has a table too, the library's work stream is the array's. False where it has none. Throws: what the
/// library raised.
bool order_by_table(const TypeProfile& profile, Device device, ArrayView& view);

}  // namespace bascule::python

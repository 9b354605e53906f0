// Reads array arguments by DLPack's exchange table: C functions of the object's type, which need no Python object.
#pragma once

#include <bascule/interface/arguments/signature.hpp>
#include <bascule/interface/arrays/dlpack.hpp>
#include <bascule/runtime/driver/home_device.hpp>

#include "support/owners.hpp"
#include "types/type_profile.hpp"

namespace bascule::python {

/// Reads an array by its type's table and keeps it alive for the launch. Returns false if another protocol must be
/// tried: for host memory, for tensors that DLPack cannot describe but the array interface may, and in the case below.
/// Throws: ArgumentError; the producer's own exception unchanged.
///
/// A borrowed tensor cannot express that it is read-only. So if the kernel may write, and the type may have read-only
/// objects, the object's `__cuda_array_interface__` is read instead. For types without that attribute, the table's
/// managed tensor is read, which has flags.
bool read_exchange(PyObject* object, const TypeProfile& profile, bool may_write, Home& home,
                   OwnerList& owners, ArrayView& view);

namespace detail {

[[noreturn]] void fail_work_stream();

/// The stream that the table's library now uses on this device.
inline std::uint64_t work_stream_of(const dlpack::ExchangeTable& table, dlpack::DeviceId device) {
    void* stream = nullptr;
    if (table.current_work_stream(device.type, device.id, &stream) != 0) [[unlikely]]
        fail_work_stream();
    const auto handle = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(stream));
    return handle == 0 ? 1 : handle;  // NULL is the default stream
}

}  // namespace detail

/// The stream that a table's library used on one device when it was last asked.
struct WorkStream {
    const dlpack::ExchangeTable* table = nullptr;  ///< null: none was asked yet
    std::int32_t device = 0;
    std::uint64_t handle = 0;
};

/// The fast path of read_exchange, for plain arrays on the launch's device that the parameter takes. Returns false for
/// all others, and keeps nothing; read_exchange then decides. Asks the library for its stream only if `known` belongs
/// to another table or device. Stores the extents in `shape`, unless it is null. Throws: exceptions of that query.
[[gnu::always_inline]] inline bool read_plain_tensor(PyObject* object, const TypeProfile& profile,
                                                     const Parameter& parameter, Home& home,
                                                     OwnerList& owners, WorkStream& known, PlainArray& array,
                                                     Dimensions* shape = nullptr) {
    const dlpack::ExchangeTable& table = *profile.table;
    if (table.tensor_from_object == nullptr || !(parameter.type.constant || profile.never_readonly)) {
        return false;
    }
    dlpack::Tensor tensor;
    if (table.tensor_from_object(object, &tensor) != 0) [[unlikely]] {
        clear_exception();  // read_exchange asks again
        return false;
    }
    array.traits = dlpack::traits_of(tensor.dtype);
    if (tensor.device.type != BASCULE_DL_CUDA || !accepts(parameter.plain, array.traits) ||
        !dlpack::read_plain_elements(tensor, array, shape) || !array.is_aligned() ||
        !is_known_at_home(array.pointer, home, tensor.device.id) ||
        !is_plain_state(object, profile.state, tensor.dtype.code, !parameter.type.constant)) {
        return false;
    }
    if (known.table != &table || known.device != tensor.device.id) {
        known = {&table, tensor.device.id, detail::work_stream_of(table, tensor.device)};
    }
    array.stream = {known.handle, -1, StreamSource::table};
    owners.keep(object, array.bytes);
    return true;
}

/// Orders an array that names no stream: its stream becomes the one that its library now uses on `device`, by the
/// type's table. Returns false if the type has no table. Throws: exceptions of the library.
bool order_by_table(const TypeProfile& profile, Device device, ArrayView& view);

}  // namespace bascule::python

// bascule.TensorMap.
#pragma once

#include <mutex>
#include <optional>
#include <string>

#include <bascule/runtime/textures/tensor_map.hpp>

#include "classes/collected.hpp"
#include "classes/simple_value.hpp"
#include "support/pybind.hpp"
#include "support/without_gil.hpp"

namespace bascule::python {

/// A TensorMap that Python objects own together: a capsule. A launch that uses the map's copy in device memory keeps it.
class SharedTensorMap {
  public:
    /// Encodes the map without the GIL. Throws: as TensorMap.
    SharedTensorMap(const ArrayView& array, const TensorMapOptions& options, Device device);
    const TensorMap& operator*() const noexcept { return *map_; }
    const TensorMap* operator->() const noexcept { return map_; }
    PyObject* owner() const noexcept { return capsule_.ptr(); }

  private:
    const TensorMap* map_;  // in the capsule
    py::object capsule_;
};

/// The value of a bascule.TensorMap.
class TensorMapObject {
  public:
    /// `view` is `array` as it is now. Throws: as TensorMap.
    TensorMapObject(py::object array, const ArrayView& view, TensorMapOptions options, Device device);

    /// The map of `view`, the same array as it is now: encoded again if address, shape or strides have changed. Throws:
    /// ArgumentError if the array has other elements or another number of dimensions; as TensorMap.
    SharedTensorMap current(const ArrayView& view) const;
    SharedTensorMap newest() const;
    /// Calls `look` with the newest map, which is not replaced during the call. `look` runs no Python code.
    template <class Look>
    [[gnu::always_inline]] bool look(const Look& look) const {
        const std::lock_guard lock(mutex_);
        return look(*map_);
    }
    /// The map, for one of Bascule's arrays: it is never encoded again, because the array stays where it is.
    const TensorMap& first() const noexcept { return *map_; }
    /// "a float16 array of shape (512, 512), box (64, 64)".
    std::string describe() const;

    /// A parameter that takes plain arrays of the map's element type.
    const Parameter& parameter() const noexcept { return parameter_; }

    void visit_references(ReferenceVisitor& each) { each.only_look_at(array.ptr()); }

    const py::object array;  ///< any array, kept alive
    const TensorMapOptions options;

  private:
    mutable GilMutex mutex_;
    mutable SharedTensorMap map_;  // guarded by `mutex_`
    Parameter parameter_;
};

/// Reads an array outside of a launch, in the way in which launches read arguments. `device` is the current device at
/// the call and the array's device afterwards. Empty if the object is not a device array. Defined in
/// launch/arguments.cpp. Throws: as read_arguments.
std::optional<ArrayView> read_array_alone(PyObject* object, Device& device);

namespace detail {
inline PyTypeObject* tensor_map_type = nullptr;  // set once by bind_tensor_maps; the module owns it
}

/// Null for all other objects.
inline const TensorMapObject* as_tensor_map(PyObject* object) noexcept {
    return exact_value<TensorMapObject>(object, detail::tensor_map_type);
}

}  // namespace bascule::python

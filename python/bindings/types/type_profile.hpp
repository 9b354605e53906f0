// Cached facts about argument types: how to read and order their objects. Profiles are found by comparing the type's pointer.
// Of some classes the functions' code is known exactly: a launch computes their results without calling them.
#pragma once

#include <array>

#include <bascule/interface/arrays/dlpack.hpp>

#include "support/cpython.hpp"
#include "types/tensor_state.hpp"

namespace bascule::python {

/// The role of a Numba class in a launch.
enum class KnownClass : std::uint8_t {
    none,
    array,    ///< its interface is made of shape, strides, dtype, stream and gpu_data's address
    pointer,  ///< its address is int(device_pointer)
    stream,   ///< its handle is int(handle), if that is not 0
};

/// The known functions of a class, and their code objects, to detect replacement. A small value type.
struct KnownCode {
    KnownClass what = KnownClass::none;
    PyObject* kept = nullptr;  ///< keeps the other objects; owned by the RememberedType
    std::array<PyObject*, 2> functions{};
    std::array<PyObject*, 2> codes{};

    bool is(KnownClass wanted) const noexcept {
        if (what != wanted) return false;
        for (std::size_t i = 0; i < functions.size() && functions[i] != nullptr; ++i) {
            if (PyFunction_GET_CODE(functions[i]) != codes[i]) return false;
        }
        return true;
    }
};

/// Looks the class up in bascule._known_code. `kept` keeps the objects that the result borrows. Runs Python code.
/// Throws: the error of importing that module.
KnownCode find_known_code(PyTypeObject* type, py::object& kept);

/// The name of the capsule in a type's `__dlpack_c_exchange_api__`.
inline constexpr const char* exchange_capsule = "dlpack_exchange_api";

struct ProducerPolicy;

/// The positions that the interface's keys had in the last dict of a type.
struct KeyPlaces {
    static constexpr std::uint8_t nowhere = 0xFF;

    std::uint8_t entries = 0;  ///< number of entries of that dict, more than each position; 0: unknown
    std::array<std::uint8_t, 8> places{};  ///< by the key's number in plain_interface.hpp
};

/// Facts about reading and ordering objects of one type. A small value type.
struct TypeProfile {
    const dlpack::ExchangeTable* table = nullptr;  ///< null if the type offers none that Bascule supports
    /// The type's descriptor of `__cuda_array_interface__` if reading the attribute only calls the descriptor; else
    /// null. Owned by the RememberedType.
    PyObject* interface = nullptr;
    /// How to order the type's arrays that name no stream; null if not looked up yet. Valid while `policy_generation`
    /// equals the number of registrations.
    const ProducerPolicy* policy = nullptr;
    std::uint32_t policy_generation = 0;
    TensorState state;
    KnownCode code;               ///< functions whose results can be computed without calling them
    bool has_interface = false;   ///< the type has `__cuda_array_interface__`
    bool never_readonly = false;  ///< no object of the type is ever read-only
    bool was_array = false;       ///< an object of it was read by its interface, so this is tried first
};

/// The profile of a type in one state. If the type changes, or another type gets its address, the tag differs. Owns the
/// profile's descriptors, because Python releases a replaced descriptor before it changes the tag.
struct RememberedType {
    PyTypeObject* type = nullptr;
    unsigned int tag = 0;
    TypeProfile profile;
    KeyPlaces keys;
};

namespace detail {

// Free-threaded Python has a table per thread, so that launches need no lock.
#ifdef Py_GIL_DISABLED
inline constinit thread_local std::array<RememberedType, 256> remembered_types;
#else
inline std::array<RememberedType, 256> remembered_types;
#endif

inline RememberedType& place_of(PyTypeObject* type) noexcept {
    const auto address = reinterpret_cast<std::uintptr_t>(type);
    return remembered_types[(address >> 4 ^ address >> 12) % remembered_types.size()];
}

TypeProfile look_up_profile(PyTypeObject* type);

}  // namespace detail

/// The remembered type; null if it must be looked up. Python code that runs may replace it with another type.
inline RememberedType* remembered_type(PyTypeObject* type) noexcept {
    RememberedType& known = detail::place_of(type);
    return known.type == type && known.tag == version_tag(type) ? &known : nullptr;
}

/// The profile, looked up once for each state of a type. Valid until Python code runs. Throws: exceptions of a metaclass.
inline TypeProfile profile_of(PyTypeObject* type) {
    const RememberedType* known = remembered_type(type);
    return known != nullptr ? known->profile : detail::look_up_profile(type);
}

/// The positions may belong to another type in the same slot, so the user checks them.
inline KeyPlaces& key_places_of(PyTypeObject* type) noexcept { return detail::place_of(type).keys; }

/// Stores a fact about a type's objects. If Python code has run since the profile was read, it may be lost and will be
/// found again.
void remember_array(PyTypeObject* type) noexcept;
void remember_policy(PyTypeObject* type, unsigned int tag, const ProducerPolicy* policy,
                     std::uint32_t generation) noexcept;

}  // namespace bascule::python

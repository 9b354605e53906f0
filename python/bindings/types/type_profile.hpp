// What is known of the types of arguments: how their objects are read and ordered, found by comparing a type pointer.
#pragma once

#include <array>
#include <cstdint>

#include <bascule/interface/arrays/dlpack.hpp>

#include "support/cpython.hpp"
#include "support/pybind.hpp"
#include "types/known_code.hpp"
#include "types/tensor_state.hpp"

namespace bascule::python {

/// The name of the capsule that a type's `__dlpack_c_exchange_api__` holds.
inline constexpr const char* exchange_capsule = "dlpack_exchange_api";

struct ProducerPolicy;

/// Where a type's dicts had which key last.
struct KeyPlaces {
    static constexpr std::uint8_t nowhere = 0xFF;

    std::uint8_t entries = 0;              ///< that the dict had, each of them below; 0: nothing is known
    std::array<std::uint8_t, 8> places{};  ///< by the key's number in plain_interface.hpp
};

/// How objects of one type are read and ordered. A small value.
struct TypeProfile {
    const dlpack::ExchangeTable* table = nullptr;  ///< null: the type offers none that this Bascule knows
    /// The type's own descriptor for `__cuda_array_interface__`, where getting the attribute means calling it and nothing
    /// else; else null. What is remembered of the type owns it.
    PyObject* interface = nullptr;
    /// How the type's arrays are ordered where they name no stream; null: not asked for. Good while
    /// `policy_generation` is the number of the registrations.
    const ProducerPolicy* policy = nullptr;
    std::uint32_t policy_generation = 0;
    TensorState state;
    KnownCode code;               ///< what need not be called to read its arrays
    bool has_interface = false;   ///< the type has `__cuda_array_interface__`
    bool never_readonly = false;  ///< no object of the type is ever read-only
    bool was_array = false;  ///< an object of it was read by its interface: nothing else need be tried first
};

/// What was found for a type in one state of it: a change of the type, or another type in its place in memory, has
/// another tag. Owns the descriptors of the profile: while Python replaces one in the type's dict, the old one is
/// released before the tag changes.
struct RememberedType {
    PyTypeObject* type = nullptr;
    unsigned int tag = 0;
    TypeProfile profile;
    KeyPlaces keys;
};

namespace detail {

// Without a GIL each thread asks for itself, so that no launch takes a lock.
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

/// What is remembered of a type; null where it must be looked up. Python code that runs may replace it by what is
/// remembered of another type.
inline RememberedType* remembered_type(PyTypeObject* type) noexcept {
    RememberedType& known = detail::place_of(type);
    return known.type == type && known.tag == version_tag(type) ? &known : nullptr;
}

/// Looked up once a type and state of it. Good until Python code runs. Throws: what a metaclass raised.
inline TypeProfile profile_of(PyTypeObject* type) {
    const RememberedType* known = remembered_type(type);
    return known != nullptr ? known->profile : detail::look_up_profile(type);
}

/// Another type's where two types share a place: its user checks it.
inline KeyPlaces& key_places_of(PyTypeObject* type) noexcept { return detail::place_of(type).keys; }

/// Notes what was found out about objects of a type. Python code may have run since its profile was taken: then
/// what is noted may be lost, and is found out again.
void remember_array(PyTypeObject* type) noexcept;
void remember_policy(PyTypeObject* type, unsigned int tag, const ProducerPolicy* policy,
                     std::uint32_t generation) noexcept;

}  // namespace bascule::python

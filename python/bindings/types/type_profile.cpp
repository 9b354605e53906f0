#include "types/type_profile.hpp"

#include <utility>

#include "support/names.hpp"

namespace bascule::python {
namespace {

/// Types of libraries without read-only arrays, by module and class name. Includes their subclasses.
struct ClassName {
    std::string_view module;
    std::string_view name;
};
constexpr std::array never_readonly = {
    ClassName{"torch", "Tensor"},  // it warns: "PyTorch does not support non-writable tensors"
    ClassName{"cupy", "ndarray"},  // its flags have no `writeable`
};

bool is_never_readonly(PyTypeObject* type) {
    for (const py::handle base : py::tuple(py::handle(reinterpret_cast<PyObject*>(type)).attr("__mro__"))) {
        const std::string module = py::str(py::getattr(base, "__module__", py::str()));
        const std::string name = py::str(py::getattr(base, "__qualname__", py::str()));
        for (const ClassName& known : never_readonly) {
            if (known.module == module && known.name == name) return true;
        }
    }
    return false;
}

/// The newest table of the supported major version in the chain; null if the chain has no usable table.
const dlpack::ExchangeTable* find_table(void* pointer) noexcept {
    static constexpr int longest_chain = 16;  // limits cyclic chains
    const auto* header = static_cast<const dlpack::ExchangeHeader*>(pointer);
    for (int i = 0; header != nullptr && i < longest_chain; ++i, header = header->previous) {
        if (header->version.major != dlpack::version.major) continue;
        const auto* table = reinterpret_cast<const dlpack::ExchangeTable*>(header);
        const bool usable = table->managed_from_object != nullptr && table->current_work_stream != nullptr;
        return usable ? table : nullptr;
    }
    return nullptr;
}

/// Whether `object.name` only calls the getter of `descriptor`: it is a property or getset of the type, which have
/// precedence over instance attributes, and the type uses object's attribute look-up. False for metaclasses.
bool is_whole_lookup(PyTypeObject* type, PyObject* descriptor) noexcept {
    return type->tp_getattro == PyObject_GenericGetAttr &&
           !PyType_FastSubclass(type, Py_TPFLAGS_TYPE_SUBCLASS) &&
           (Py_TYPE(descriptor) == &PyProperty_Type || Py_TYPE(descriptor) == &PyGetSetDescr_Type);
}

/// The descriptors that a profile borrows.
struct Descriptors {
    py::object interface;
    py::object requires_grad;
    py::object known_code;
};

TypeProfile look_up(PyTypeObject* type, Descriptors& descriptors) {
    auto* object = reinterpret_cast<PyObject*>(type);
    TypeProfile profile;
    const py::object value = find_attribute(object, names().dlpack_exchange);
    if (value && PyCapsule_IsValid(value.ptr(), exchange_capsule) != 0) {
        profile.table = find_table(PyCapsule_GetPointer(value.ptr(), exchange_capsule));
        if (profile.table != nullptr) profile.never_readonly = is_never_readonly(type);
    }
    // getattr(type, ...) would return the descriptor's result for the class, not the descriptor.
    descriptors.interface = class_attribute(type, names().cuda_array_interface);
    profile.has_interface = static_cast<bool>(descriptors.interface);
    if (profile.has_interface && is_whole_lookup(type, descriptors.interface.ptr()))
        profile.interface = descriptors.interface.ptr();
    if (profile.interface != nullptr) profile.code = find_known_code(type, descriptors.known_code);
    if (profile.table != nullptr || profile.has_interface)
        profile.state = find_tensor_state(type, descriptors.requires_grad);
    return profile;
}

/// Releasing the descriptors may run Python code, which may remember another type in this slot.
void forget(RememberedType& known) {
    while (known.type != nullptr) {
        known.type = nullptr;
        const Descriptors released{
            py::reinterpret_steal<py::object>(std::exchange(known.profile.interface, nullptr)),
            py::reinterpret_steal<py::object>(
                std::exchange(known.profile.state.requires_grad_getter, nullptr)),
            py::reinterpret_steal<py::object>(std::exchange(known.profile.code.kept, nullptr))};
    }
}

}  // namespace

KnownCode find_known_code(PyTypeObject* type, py::object& kept) {
    // The known functions read attributes by the default look-up, so the class must not override it.
    if (type->tp_getattro != PyObject_GenericGetAttr) return {};
    const py::handle cls(reinterpret_cast<PyObject*>(type));
    const py::object module = py::getattr(cls, "__module__", py::none());
    if (!py::isinstance<py::str>(module) || !std::string(py::str(module)).starts_with("numba.")) return {};
    const py::object found = py::module_::import("bascule._known_code").attr("known_functions")(cls);
    if (found.is_none()) return {};
    const auto [what, functions] = found.cast<std::pair<std::string, py::tuple>>();
    KnownCode known;
    known.what = what == "array"     ? KnownClass::array
                 : what == "pointer" ? KnownClass::pointer
                                     : KnownClass::stream;
    py::list codes;
    for (std::size_t i = 0; i < functions.size(); ++i) {
        known.functions.at(i) = functions[i].ptr();
        known.codes.at(i) = PyFunction_GET_CODE(functions[i].ptr());
        codes.append(py::handle(known.codes[i]));
    }
    kept = py::make_tuple(functions, codes);
    known.kept = kept.ptr();
    return known;
}

TypeProfile detail::look_up_profile(PyTypeObject* type) {
    const unsigned int before = version_tag(type);
    Descriptors descriptors;
    TypeProfile profile = look_up(type, descriptors);
    RememberedType& place = place_of(type);
    forget(place);
    // A tag of 0 identifies no state. The look-up assigns a tag to the type, so the next call can be cached.
    if (before != 0 && version_tag(type) == before) {
        place = {type, before, profile, {}};
        Py_XINCREF(profile.interface);
        Py_XINCREF(profile.state.requires_grad_getter);
        Py_XINCREF(profile.code.kept);
    } else {  // not cached, so nothing keeps the descriptors alive
        profile.interface = nullptr;
        profile.state.requires_grad_getter = nullptr;
        profile.code = {};
    }
    return profile;
}

void remember_array(PyTypeObject* type) noexcept {
    RememberedType& known = detail::place_of(type);
    if (known.type == type) known.profile.was_array = true;
}

void remember_policy(PyTypeObject* type, unsigned int tag, const ProducerPolicy* policy,
                     std::uint32_t generation) noexcept {
    RememberedType& known = detail::place_of(type);
    if (known.type != type || known.tag != tag || version_tag(type) != tag) return;
    known.profile.policy = policy;
    known.profile.policy_generation = generation;
}

}  // namespace bascule::python

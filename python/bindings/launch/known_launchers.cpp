#include "launch/known_launchers.hpp"

#include <mutex>
#include <unordered_set>
#include <utility>

#include <bascule/runtime/driver/home_device.hpp>

#include "classes/callable_object.hpp"
#include "classes/simple_value.hpp"
#include "context/device_object.hpp"
#include "context/stream_object.hpp"
#include "launch/prepared_launch.hpp"
#include "parts.hpp"

namespace bascule::python {
namespace {

[[gnu::always_inline]] inline std::uint64_t hash_of(const LauncherKey& key) noexcept {
    return key.place + 3 * key.grid_xy + 5 * key.grid_z_block_x +
           reinterpret_cast<std::uintptr_t>(key.stream);
}

/// Returns the bit that makes the place of a key odd, so that the fast path does not find the launcher. It is set if there are
/// several devices and no stream: the launcher remembers its first device, but a new one would use the current device.
CodePlace odd_place(const LauncherKey& key) noexcept {
    return key.stream == nullptr && several_devices() ? 1 : 0;
}

[[gnu::noinline]] bool is_of_current_device(PyObject* launcher) noexcept {
    const ResolvedLaunch* resolved = held_by<LaunchState>(launcher).resolved();
    try {
        return resolved == nullptr || resolved->device == current_device();
    } catch (const std::exception&) {  // a new launcher raises the error
        return false;
    }
}

[[gnu::always_inline]] inline PyObject* find_same(const KernelObject& kernel,
                                                  const LauncherKey& key) noexcept {
    return kernel.launchers->find(
        hash_of(key), [&](PyObject* launcher) { return held_by<LaunchState>(launcher).key == key; });
}

/// Sets the key's place, and returns a new reference to the launcher of the key; null, without an error, if there is none.
[[gnu::noinline]] PyObject* find_any(const KernelObject& kernel, LauncherKey& key) noexcept {
    key.place = current_place() | odd_place(key);
    PyObject* const launcher = find_same(kernel, key);
    if (launcher == nullptr || key.place % 2 == 0 || is_of_current_device(launcher)) return launcher;
    Py_DECREF(launcher);
    return nullptr;
}

// --- Streams

/// The caches with launchers that borrow a stream. Never destroyed.
auto& borrowers = *new std::unordered_set<KnownLaunchers*>;
GilMutex mutex_of_borrowers;

/// Called before a launcher leaves the cache. The launcher takes ownership of its stream, because it may outlive the
/// bascule.Stream.
void keep_stream(PyObject* launcher) noexcept { held_by<LaunchState>(launcher).keep_stream(); }

/// The value of a bascule.Stream; null for other objects, and if another library's object owns the stream.
StreamObject* lendable(PyObject* stream) {
    if (!py::isinstance<StreamObject>(stream)) return nullptr;
    auto& object = py::handle(stream).cast<StreamObject&>();
    return !object.foreign || object.foreign.is_none() ? &object : nullptr;
}

void end_loan(const StreamObject& stream) noexcept {
    const std::lock_guard lock(mutex_of_borrowers);
    for (KnownLaunchers* launchers : borrowers) {
        launchers->remove([&](PyObject* launcher) {
            if (held_by<LaunchState>(launcher).plan.stream != stream.ref) return false;
            keep_stream(launcher);
            return true;
        });
    }
}

// --- Functions that are called before pybind11's

binaryfunc general_subscript = nullptr;
PyObject* general_forall = nullptr;

[[gnu::noinline]] PyObject* any_subscript(PyObject* self, PyObject* in_brackets) noexcept {
    const auto* kernel = simple_value<KernelObject>(self);
    LauncherKey key;
    if (kernel != nullptr && read_subscript(in_brackets, key)) {
        if (PyObject* const known = find_any(*kernel, key)) return known;
    }
    return general_subscript(self, in_brackets);
}

PyObject* subscript(PyObject* self, PyObject* in_brackets) noexcept {
    const auto* kernel = simple_value<KernelObject>(self);
    LauncherKey key;
    key.place = current_place();
    if (kernel != nullptr && read_plain_subscript(in_brackets, key)) [[likely]] {
        if (PyObject* const known = find_same(*kernel, key)) return known;
    }
    return any_subscript(self, in_brackets);
}

[[gnu::noinline]] PyObject* any_forall(PyObject* self, PyObject* const* arguments, Py_ssize_t count,
                                       PyObject* names) noexcept {
    const auto* kernel = simple_value<KernelObject>(self);
    LauncherKey key;
    if (kernel != nullptr && count == 1 && names == nullptr && read_work(arguments[0], key)) {
        if (PyObject* const known = find_any(*kernel, key)) return known;
    }
    return guarded([&] {
        const py::object method = owned(PyMethod_New(general_forall, self));
        return owned(PyObject_Vectorcall(method.ptr(), arguments, static_cast<std::size_t>(count), names));
    });
}

PyObject* forall(PyObject* self, PyObject* const* arguments, Py_ssize_t count, PyObject* names) noexcept {
    const auto* kernel = simple_value<KernelObject>(self);
    if (kernel != nullptr && count == 1 && names == nullptr) [[likely]] {
        LauncherKey key;
        key.grid_xy = one_digit(arguments[0]);
        key.place = current_place();
        if (PyObject* const known = find_same(*kernel, key)) return known;
    }
    return any_forall(self, arguments, count, names);
}

// --- Kernels as attributes of a module

getattrofunc general_attribute = nullptr;

std::uint64_t hash_of_name(PyObject* name) noexcept { return reinterpret_cast<std::uintptr_t>(name) >> 4; }

/// Caches a kernel, unless the class has an attribute of that name.
void remember_kernel(KnownObjects& kernels, PyObject* self, PyObject* name, PyObject* found) {
    if (Py_TYPE(found) != detail::kernel_type || PyUnicode_CHECK_INTERNED(name) == 0) return;
    if (class_attribute(Py_TYPE(self), name)) return;
    auto& kernel = *simple_value<KernelObject>(found);
    kernel.attribute = py::reinterpret_borrow<py::object>(name);
    kernel.module_version = version_tag(Py_TYPE(self));
    if (kernel.module_version == 0) return;  // version 0 would not reveal changes of the class
    kernels.put(hash_of_name(name), py::reinterpret_borrow<py::object>(found), [](PyObject*) {});
}

PyObject* module_attribute(PyObject* self, PyObject* name) noexcept {
    const auto* holder = simple_holder<ModuleHolder<Module>>(self);
    if (holder == nullptr) return general_attribute(self, name);
    const auto is_it = [&](PyObject* known) {
        const auto& kernel = *simple_value<KernelObject>(known);
        return kernel.attribute.ptr() == name && kernel.module_version == version_tag(Py_TYPE(self));
    };
    if (PyObject* const known = holder->kernels().find(hash_of_name(name), is_it)) return known;
    PyObject* const found = general_attribute(self, name);
    if (found != nullptr) remember_kernel(holder->kernels(), self, name, found);
    return found;
}

}  // namespace

LauncherKey lend_stream(const KernelObject& kernel, LaunchPlan& plan, LauncherKey key) {
    StreamObject* const stream = key.stream == nullptr ? nullptr : lendable(key.stream);
    const bool is_innermost = key.place != 0 && key.place == current_place();
    if (!is_innermost || (key.stream != nullptr && stream == nullptr)) return {};
    if (stream != nullptr) {
        StreamObject::end_loan = &end_loan;
        stream->lent = true;
        plan.lent_stream = stream->owned;
        plan.stream_object = {};
        const std::lock_guard lock(mutex_of_borrowers);
        borrowers.insert(kernel.launchers.get());
    }
    key.place |= odd_place(key);
    return key;
}

void remember_launcher(const KernelObject& kernel, const py::object& launcher) {
    kernel.launchers->put(hash_of(held_by<LaunchState>(launcher.ptr()).key), launcher, &keep_stream);
}

KnownLaunchers::~KnownLaunchers() {
    {
        const std::lock_guard lock(mutex_of_borrowers);
        borrowers.erase(this);
    }
    remove([](PyObject* launcher) {
        keep_stream(launcher);
        return true;
    });
}

void find_known_objects_first(const py::module_& module) {
    detail::kernel_type = reinterpret_cast<PyTypeObject*>(module.attr("Kernel").ptr());
    general_subscript = std::exchange(detail::kernel_type->tp_as_mapping->mp_subscript, &subscript);
    const py::object general = module.attr("Kernel").attr("forall");
    general_forall = general.ptr();
    const std::string signature_and_text = general.attr("__doc__").cast<std::string>();
    static const std::string documentation = "forall($self, /, work, *, stream=None, shared_bytes=0)\n--\n" +
                                             signature_and_text.substr(signature_and_text.find('\n'));
    static PyMethodDef method = {"forall", as_method(&forall), METH_FASTCALL | METH_KEYWORDS,
                                 documentation.c_str()};
    general.inc_ref();
    module.attr("Kernel").attr("forall") = owned(PyDescr_NewMethod(detail::kernel_type, &method));
    auto* const module_type = reinterpret_cast<PyTypeObject*>(module.attr("Module").ptr());
    general_attribute = std::exchange(module_type->tp_getattro, &module_attribute);
}

}  // namespace bascule::python

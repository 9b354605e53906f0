#include "launch/arguments.hpp"

#include <cstddef>
#include <span>
#include <utility>

#include <bascule/interface/errors/rejection.hpp>
#include <bascule/runtime/driver/home_device.hpp>
#include <bascule/runtime/driver/peer_access.hpp>
#include <bascule/runtime/faults/failure_details.hpp>

#include "arrays/array_object.hpp"
#include "arrays/mask.hpp"
#include "context/device_object.hpp"
#include "context/stream_object.hpp"
#include "dlpack/dlpack_import.hpp"
#include "exchange/dlpack_exchange.hpp"
#include "exchange/interface_reader.hpp"
#include "exchange/numba_arrays.hpp"
#include "exchange/plain_interface.hpp"
#include "exchange/producer_streams.hpp"
#include "launch/scalars.hpp"
#include "parts.hpp"
#include "support/attributes.hpp"
#include "support/cpython.hpp"
#include "support/gil.hpp"
#include "support/names.hpp"
#include "textures/texture_object.hpp"
#include "types/tensor_state.hpp"
#include "values/numpy_values.hpp"

namespace py = pybind11;
using namespace py::literals;

namespace bascule::python {
namespace {

// Compared by pointer: a lookup among all bound types would be a good part of a launch.
PyTypeObject* raw_pointer_type = nullptr;
PyTypeObject* raw_bytes_type = nullptr;

bool is_host_array(PyObject* object) {
    return !PyType_Check(object) && has_attribute(object, names().array_interface);
}

/// Whether what is a NumPy scalar, or an array of NumPy's, is a numpy.void or an array of no dimensions of
/// it.
bool is_void(PyObject* object) {
    const py::handle value(object);
    if (value.attr("ndim").cast<int>() != 0) return false;
    return std::string(py::str(value.attr("dtype").attr("kind"))) == "V";
}

bool is_ctypes_structure(PyObject* object) {
    return PyObject_CheckBuffer(object) != 0 &&
           has_attribute(reinterpret_cast<PyObject*>(Py_TYPE(object)), "_fields_");
}

/// Appended to a message: the object's own words for why it has no interface.
std::string describe_absence(const std::string& absence) {
    return absence.empty() ? std::string()
                           : fmt::format(" (Its __cuda_array_interface__ says: {}.)", absence);
}

/// `absence` is why the object has no interface, where it was asked for one.
[[noreturn]] void fail_host_array(PyObject* object, const Parameter& parameter,
                                  const std::string& absence = {}) {
    const std::string got = fmt::format("a host array ({})", Py_TYPE(object)->tp_name);
    if (takes_images(parameter.type)) {
        reject(ErrorKind::type, {.expected = parameter.spelling, .got = got},
               "the kernel declares `{}`, got {}. Pass {}.", parameter.spelling, got,
               what_to_pass(parameter));
    }
    if (parameter.type.kind == ParameterType::Kind::scalar) {
        reject(ErrorKind::type, {.expected = parameter.spelling, .got = got},
               "the kernel declares `{}`, got {}. Pass a scalar: x.item() for an array of one element.",
               parameter.spelling, got);
    }
    if (parameter.bytes > 0 && !takes_arrays(parameter.type)) {
        reject(ErrorKind::type, {.expected = parameter.spelling, .got = got},
               "the kernel declares `{}`, got {}. It is passed by value: pass {}.", parameter.spelling, got,
               what_to_pass(parameter));
    }
    reject(ErrorKind::type, {.expected = parameter.spelling, .got = got},
           "the kernel declares `{}`, got {}, which lies in host memory. Move it to the device first: "
           "bascule.to_device(x).{}",
           parameter.spelling, got, describe_absence(absence));
}

/// `unread` says what is wrong with a tuple or a list.
[[noreturn]] void fail_unknown(PyObject* object, const Parameter& parameter, const std::string& absence,
                               const std::string& unread) {
    const std::string got =
        !unread.empty() ? unread : fmt::format("an object of type {}", Py_TYPE(object)->tp_name);
    std::string wanted = what_to_pass(parameter);
    const std::string why = takes_arrays(parameter.type) ? describe_absence(absence) : "";
    const bool is_array_like =
        (PySequence_Check(object) != 0 && PyUnicode_Check(object) == 0) || has_attribute(object, "__array__");
    if (wanted == "a device array") {
        wanted +=
            is_array_like ? ": bascule.to_device(x) makes one" : " (anything with __cuda_array_interface__)";
    }
    if (wanted == "a number") wanted = "a Python or NumPy scalar";
    reject(ErrorKind::type, {.expected = parameter.spelling, .got = got},
           "the kernel declares `{}`, got {}. Pass {}.{}", parameter.spelling, got, wanted, why);
}

/// A pointer to any elements in the place of a parameter: for arrays that are a part of its value.
Parameter any_pointer(const Parameter& parameter) {
    Parameter any;
    any.name = parameter.name;
    any.spelling = parameter.spelling;
    any.bytes = sizeof(std::uint64_t);
    any.type.kind = ParameterType::Kind::pointer;
    any.type.element_kind = ParameterType::Element::any;
    return any;
}

}  // namespace

/// The bytes of a struct that is passed by value: bytes, numpy.void, anything that lends a contiguous buffer.
bool ArgumentReader::read_bytes(PyObject* argument, RawBytes& bytes) {
    if (PyObject_CheckBuffer(argument) == 0) return false;
    Py_buffer buffer{};
    if (PyObject_GetBuffer(argument, &buffer, PyBUF_SIMPLE) != 0) {
        PyErr_Clear();
        return false;
    }
    if (buffers_ == nullptr) buffers_ = std::make_unique<Buffers>();
    buffers_->all.push_back(buffer);
    bytes.bytes = {static_cast<const std::byte*>(buffer.buf), static_cast<std::size_t>(buffer.len)};
    return true;
}

/// A structured scalar, or bytes without a meaning.
ArgumentValue ArgumentReader::read_void(PyObject* argument) {
    return read_structure(argument, py::handle(argument).attr("dtype"), LayoutSource::dtype);
}

ArgumentValue ArgumentReader::read_ctypes(PyObject* argument) {
    return read_structure(argument, ctypes_dtype(py::type::handle_of(argument)), LayoutSource::ctypes);
}

ArgumentValue ArgumentReader::read_structure(PyObject* argument, const py::object& dtype,
                                             LayoutSource source) {
    RawBytes bytes;
    if (!read_bytes(argument, bytes)) throw py::error_already_set();
    if (dtype.attr("names").is_none()) return bytes;
    const std::shared_ptr<const StructLayout> layout = numpy_layout(dtype);
    if (layout == nullptr) {
        reject(ErrorKind::type,
               "the fields of this structured scalar overlap or are out of order, so they cannot be compared "
               "with the kernel's struct. Pass bascule.raw_bytes(x).");
    }
    return StructuredScalar{bytes.bytes, layout, source};
}

/// What a tuple may hold for a pointer. Tuples and host arrays are read by their elements.
std::optional<TupleArgument::Element> ArgumentReader::read_element(PyObject* element,
                                                                   const Parameter& parameter) {
    if (element == Py_None) return std::monostate{};
    if (Py_TYPE(element) == raw_pointer_type) return RawPointer{py::cast<RawPointerObject&>(element).address};
    const bool is_array = as_array(element) != nullptr ||
                          has_attribute(element, names().cuda_array_interface) ||
                          (has_attribute(element, names().dlpack) && !is_host_array(element));
    if (!is_array || PyType_Check(element)) return std::nullopt;
    const ArgumentValue value = read_any(element, any_pointer(parameter));
    const auto* view = std::get_if<ArrayView>(&value);
    if (view == nullptr) return std::nullopt;
    return std::make_shared<const ArrayView>(*view);
}

std::optional<TupleArgument> ArgumentReader::read_tuple_for(PyObject* argument, const Parameter& parameter,
                                                            std::string& unread) {
    return read_tuple(
        argument, [&](PyObject* element) { return read_element(element, parameter); }, unread);
}

/// What is passed by value and is not a number.
std::optional<ArgumentValue> ArgumentReader::read_value(PyObject* argument, const Parameter& parameter,
                                                        std::string& unread) {
    if (Py_TYPE(argument) == raw_pointer_type) {
        return RawPointer{py::cast<RawPointerObject&>(argument).address};
    }
    RawBytes bytes;
    if (Py_TYPE(argument) == raw_bytes_type) {
        if (read_bytes(py::cast<RawBytesObject&>(argument).bytes.ptr(), bytes)) return bytes;
    }
    if (PyBytes_Check(argument) || PyByteArray_Check(argument) || PyMemoryView_Check(argument)) {
        if (read_bytes(argument, bytes)) return bytes;
    }
    if (is_numpy_scalar(argument) && is_void(argument)) return read_void(argument);
    if (is_ctypes_structure(argument)) return read_ctypes(argument);
    if (auto number = read_ctypes_number(argument)) return number;
    if (PyTuple_Check(argument) || PyList_CheckExact(argument)) {
        if (auto tuple = read_tuple_for(argument, parameter, unread)) return *std::move(tuple);
    }
    return std::nullopt;
}

/// By the C functions of the object's type. Whatever its kind, nothing is written to what is passed by value.
bool ArgumentReader::read_by_table(PyObject* argument, const TypeProfile& profile, const Parameter& parameter,
                                   ArrayView& view) {
    const bool may_write = !parameter.type.constant;
    if (profile.table == nullptr || !read_exchange(argument, profile, may_write, home_, *owners_, view))
        return false;
    // What the text alone tells of a parameter is too little to say that the kernel writes. The table may have run
    // Python code.
    require_plain_state(argument, profile_of(Py_TYPE(argument)).state, view,
                        may_write && parameter.bytes > 0);
    return true;
}

void ArgumentReader::read_mask_for(PyObject* argument, const Parameter& parameter, const py::object& mask,
                                   ArrayView& view) {
    // A parameter that takes no masks refuses any, readable or not. What the text alone tells of a parameter,
    // which has no size, is too little to say so.
    if (parameter.bytes > 0 && parameter.type.kind != ParameterType::Kind::masked_view) {
        view.mask = std::make_shared<const MaskView>();
        return;
    }
    view.mask = read_mask(mask.ptr(), argument, view, home_);
    owners_->keep(mask.ptr(), view.size);
}

/// Where the launch goes, as far as it is known: what producers are asked to be ready for.
StreamRef ArgumentReader::consumer() const {
    if (stream_ != nullptr) return *stream_;
    return stream_or_current(py::none(), home_.device, "array");
}

/// What decides besides the interface which stream an array is ordered with.
void ArgumentReader::find_order(PyObject* argument, const Parameter& parameter, ArrayView& view) {
    if (!interface_sync() || (options_ != nullptr && !options_->sync)) {
        view.has_stream = false;
        view.stream_source = StreamSource::ignored;
        return;
    }
    const StreamRef* named = options_ == nullptr ? nullptr : options_->stream_of(parameter.name);
    if (named != nullptr && !view.has_stream) {
        view.has_stream = true;
        view.stream = named->handle();
        view.device = named->device() == home_.device ? -1 : named->device().ordinal();
        view.stream_source = StreamSource::call;
    } else if (needs_stream(view)) {
        const Device home = view.device < 0 ? home_.device : Device(view.device);
        if (const py::object kept = find_stream(argument, home, consumer(), view))
            owners_->keep(kept.ptr(), 0);
        if (view.stream_source == StreamSource::dlpack) {
            view.device = consumer().device() == home_.device ? -1 : consumer().device().ordinal();
        }
    }
}

/// An object that has an array interface, which is `descriptor`.
ArrayView ArgumentReader::read_array(PyObject* argument, PyObject* descriptor, const Parameter& parameter) {
    py::object mask;
    ArrayView view = read_view(argument, descriptor, mask);
    // The interface itself is refused where a gradient is required.
    require_plain_state(argument, profile_of(Py_TYPE(argument)).state, view, false);
    find_home(view, home_);
    if (mask) read_mask_for(argument, parameter, mask, view);
    if (needs_stream(view) || options_ != nullptr || !interface_sync()) find_order(argument, parameter, view);
    owners_->keep(argument, view);
    return view;
}

/// Everything that is neither a number nor an array of ours. The first of these that the object has: DLPack's
/// exchange table, `__cuda_array_interface__`, `__dlpack__`. `absence` is why it has no interface, where that was asked
/// already.
ArgumentValue ArgumentReader::read_foreign(PyObject* argument, const Parameter& parameter,
                                           const std::string* absence) {
    std::string unread;
    if (auto value = read_value(argument, parameter, unread)) return *std::move(value);
    ArrayView view;
    if (read_by_table(argument, profile_of(Py_TYPE(argument)), parameter, view)) return view;
    std::string why;
    if (absence == nullptr) {
        const TypeProfile profile = profile_of(Py_TYPE(argument));  // Python code may have run
        if (const py::object descriptor = get_interface(argument, profile.interface, why)) {
            view = read_array(argument, descriptor.ptr(), parameter);
            if (!PyTuple_Check(argument)) remember_array(Py_TYPE(argument));  // a tuple may be a vector
            return view;
        }
        absence = &why;
    }
    if (is_host_array(argument)) {
        if (has_attribute(argument, "ndim") && is_void(argument)) return read_void(argument);
        if (!takes_arrays(parameter.type) && parameter.type.kind != ParameterType::Kind::scalar) {
            if (auto tuple = read_tuple_for(argument, parameter, unread)) return *std::move(tuple);
        }
        fail_host_array(argument, parameter);
    }
    ImportedTensor tensor;
    const StreamRef ready_for = consumer();
    switch (read_dlpack(argument, ready_for, tensor)) {
        case DlpackMemory::device:
            owners_->keep(tensor.owner.ptr(), tensor.view);
            find_home(tensor.view, home_);
            tensor.view.device = ready_for.device() == home_.device ? -1 : ready_for.device().ordinal();
            tensor.view.stream_source = StreamSource::dlpack;
            return tensor.view;
        case DlpackMemory::host:
            fail_host_array(argument, parameter, *absence);
        case DlpackMemory::none:
            break;
    }
    fail_unknown(argument, parameter, *absence, unread);
}

/// An array of ours. Where the launch is not ordered with its stream, it may be the first that uses the memory.
[[gnu::always_inline]] inline void ArgumentReader::keep_own(PyObject* argument, const ArrayObject& own) {
    if (options_ == nullptr || options_->sync) [[likely]]
        return keep_array(*owners_, argument, own);
    owners_->keep(argument, own.view);
    settle(own);
}

/// An array of ours, where it is not known to lie where the launch goes.
ArrayView ArgumentReader::own_view(const ArrayObject& own) {
    ArrayView view = own.view;
    if (view.stream_source == StreamSource::interface) view.stream_source = StreamSource::own;
    if (home_.decided && !(own.device == home_.device)) {
        if (!home_.peer) {
            reject(ErrorKind::value, "the array lies on {}, but {}. {}", to_string(own.device),
                   bascule::describe(home_), advice_for_elsewhere(home_.device));
        }
        without_gil([&] {
            if (own.buffer != nullptr && own.buffer->owned() != nullptr) {
                enable_peer_access(home_.device, own.device);
            } else if (!view.empty()) {
                open_peer_memory(home_.device, own.device, view.pointer);
            }
        });
        set_stream_device(view, own.device);
        return view;
    }
    home_.device = own.device;
    home_.decided = true;
    return view;
}

/// A texture or surface: its array is read as any other, each time, so that it is ordered as one.
ImageArgument ArgumentReader::read_image(PyObject* argument, const Parameter& parameter) {
    const ImageReference image = as_image(argument);
    ImageArgument made = *image.argument;
    owners_->keep(argument, 0);
    if (const CudaArrayObject* own = as_cuda_array_object(image.array)) {
        made.array = own->array->view();
        if (home_.decided && !(image.device == home_.device)) set_stream_device(made.array, image.device);
        if (!interface_sync() || (options_ != nullptr && !options_->sync)) {
            made.array.has_stream = false;
            made.array.stream_source = StreamSource::ignored;
        }
    } else {
        Parameter any = any_pointer(parameter);
        any.type.constant = !made.is_surface;
        const ArgumentValue value = read_any(image.array, any);
        const auto* view = std::get_if<ArrayView>(&value);
        if (view == nullptr || view->pointer != image.source->pointer) {
            reject(ErrorKind::value, "the texture was made of {}, which has other memory now: make it again.",
                   image.source->description);
        }
        made.array = *view;
    }
    if (!home_.decided) {
        home_.device = image.device;
        home_.decided = true;
    } else if (!(home_.device == image.device)) {
        reject(ErrorKind::value,
               "the {} is of {}, and the launch goes to {}: textures and surfaces are of one device.",
               made.is_surface ? "surface" : "texture", to_string(image.device), to_string(home_.device));
    }
    return made;
}

ArgumentValue ArgumentReader::read_any(PyObject* argument, const Parameter& parameter,
                                       const std::string* absence) {
    if (const ArrayObject* own = as_array(argument)) {
        keep_own(argument, *own);
        return own_view(*own);
    }
    if (argument == Py_None) return std::monostate{};
    if (is_image(argument)) return read_image(argument, parameter);
    if (const auto scalar = read_scalar(argument)) return *scalar;
    return read_foreign(argument, parameter, absence);
}

void ArgumentReader::check_chosen(PyObject* argument, int index, const Parameter& parameter) {
    const TypeProfile profile = profile_of(Py_TYPE(argument));
    if (parameter.type.constant || profile.table == nullptr) return;
    naming_argument(index, parameter.name, [&] { require_writable_state(argument, profile.state); });
}

ArgumentValue ArgumentReader::read(PyObject* argument, int index, const Parameter& parameter) {
    return naming_argument(index, parameter.name, [&] { return read_any(argument, parameter); });
}

/// By all rules.
[[gnu::noinline]] void ArgumentReader::set_by_rules(ArgumentPack& pack, int index, const Parameter& parameter,
                                                    PyObject* argument) {
    if (const ArrayObject* own = as_array(argument)) {
        const bool named_here = own->view.has_stream && own->view.device < 0;
        own->plain.set(named_here ? plain_traits(own->view) : not_plain);
    }
    pack.set(index, read(argument, index, parameter));
    if (argument == Py_None) note_null_argument(pack.signature(), index);
}

/// Python's error says why.
void ArgumentReader::set_without_interface(ArgumentPack& pack, int index, const Parameter& parameter,
                                           PyObject* argument) {
    const std::string absence = take_absence();
    pack.set(index, read_any(argument, parameter, &absence));
}

/// A null descriptor is one that call_interface did not find.
[[gnu::noinline]] void ArgumentReader::set_by_descriptor(ArgumentPack& pack, int index,
                                                         const Parameter& parameter, PyObject* argument,
                                                         PyObject* descriptor) {
    if (descriptor == nullptr) return set_without_interface(pack, index, parameter, argument);
    pack.set(index, read_array(argument, descriptor, parameter));
}

/// Whether a plain array of the interface is one that this launch takes without a question.
[[gnu::always_inline]] inline bool ArgumentReader::takes_plainly(const PlainArray& plain,
                                                                 const Parameter& parameter) {
    return (plain.stream != 0 || plain.version == 3) && fits(plain.traits, parameter.plain) &&
           plain.is_aligned() && is_known_at_home(plain.pointer, home_);
}

/// The argument is an array that this launch takes without a question.
[[gnu::always_inline]] inline void ArgumentReader::set_taken(ArgumentPack& pack, int index,
                                                             const Parameter& parameter, PyObject* argument,
                                                             const PlainArray& plain) {
    owners_->keep(argument, plain.bytes);
    pack.set_fitting(index, parameter, plain.pointer, plain.stream);
    pack.note_interface_stream(index, plain.stream);
}

/// An array of Numba's, without asking for its interface. False where that must be asked.
[[gnu::noinline]] bool ArgumentReader::set_by_attributes(ArgumentPack& pack, int index,
                                                         const Parameter& parameter, PyObject* argument) {
    PlainArray plain;
    if (options_ != nullptr || !interface_sync() || !read_numba_plainly(argument, plain) ||
        !takes_plainly(plain, parameter)) {
        return false;
    }
    set_taken(pack, index, parameter, argument, plain);
    return true;
}

/// An object of a type whose objects were arrays before.
[[gnu::always_inline]] inline void ArgumentReader::set_by_interface(ArgumentPack& pack, int index,
                                                                    const Parameter& parameter,
                                                                    PyObject* argument,
                                                                    RememberedType& known) {
    const bool usual = options_ == nullptr && interface_sync() && !known.profile.state.any;
    PlainArray plain;
    const auto descriptor =
        py::reinterpret_steal<py::object>(call_interface(argument, known.profile.interface));
    if (descriptor && usual && read_plainly(descriptor.ptr(), known.keys, plain, nullptr) &&
        takes_plainly(plain, parameter)) [[likely]] {
        set_taken(pack, index, parameter, argument, plain);
    } else {
        set_by_descriptor(pack, index, parameter, argument, descriptor.ptr());
    }
}

[[gnu::noinline]] void ArgumentReader::set_int(ArgumentPack& pack, int index, const Parameter& parameter,
                                               PyObject* argument) {
    if (const auto integer = short_integer(argument)) {
        pack.set_integer(index, parameter, *integer);
    } else {
        set_by_rules(pack, index, parameter, argument);
    }
}

/// By what is known of the type.
[[gnu::always_inline]] inline void ArgumentReader::set_other(ArgumentPack& pack, int index,
                                                             const Parameter& parameter, PyObject* argument,
                                                             WorkStream& work_stream) {
    if (RememberedType* known = remembered_type(Py_TYPE(argument))) [[likely]] {
        if (known->profile.table != nullptr) {
            PlainArray plain;
            if (read_exchange_plainly(argument, known->profile, parameter, home_, *owners_, work_stream,
                                      plain)) [[likely]] {
                pack.set_fitting(index, parameter, plain.pointer, plain.stream);
                return;
            }
        } else if (known->profile.was_array) {
            if (known->profile.code.is(KnownClass::array)) {
                if (set_by_attributes(pack, index, parameter, argument)) return;
                known = remembered_type(Py_TYPE(argument));  // Python code may have run
            }
            if (known != nullptr) return set_by_interface(pack, index, parameter, argument, *known);
        }
    }
    set_by_rules(pack, index, parameter, argument);
}

/// Arrays of ours that lie where the launch goes, floats and ints are taken here.
[[gnu::always_inline]] inline void ArgumentReader::read_into(ArgumentPack& pack, int index,
                                                             const Parameter& parameter, PyObject* argument,
                                                             WorkStream& work_stream) {
    if (const ArrayObject* own = as_array(argument)) {
        if (own->device == home_.device && pack.set_plain(index, parameter, own->plain.get(),
                                                          own->view.pointer, own->view.stream)) [[likely]] {
            home_.decided = true;
            keep_own(argument, *own);
        } else {
            set_by_rules(pack, index, parameter, argument);
        }
    } else if (PyFloat_CheckExact(argument)) {
        pack.set_double(index, parameter, PyFloat_AS_DOUBLE(argument));
    } else if (PyLong_CheckExact(argument)) {
        set_int(pack, index, parameter, argument);
    } else {
        set_other(pack, index, parameter, argument, work_stream);
    }
}

void ArgumentReader::read_all(ArgumentPack& pack, PyObject* const* arguments) {
    const std::span<const Parameter> parameters = pack.signature().parameters;
    WorkStream work_stream;
    std::size_t i = 0;
    try {
        for (; i < parameters.size(); ++i)
            read_into(pack, static_cast<int>(i), parameters[i], arguments[i], work_stream);
    } catch (const ArgumentError& error) {
        if (error.details().index >= 0) throw;
        throw error.with_argument(static_cast<int>(i), parameters[i].name);
    }
}

void bind_arguments(py::module_& module) {
    py::class_<RawPointerObject>(module, "RawPointer", "A device address that the caller vouches for.")
        .def_readonly("address", &RawPointerObject::address)
        .def("__repr__", [](const RawPointerObject& self) {
            return fmt::format("bascule.raw_pointer({:#x})", self.address);
        });
    py::class_<RawBytesObject>(module, "RawBytes", collected<RawBytesObject>(),
                               "The bytes of a struct that is passed by value.")
        .def("__bytes__", [](const RawBytesObject& self) { return self.bytes; })
        .def("__len__", [](const RawBytesObject& self) { return py::len(self.bytes); })
        .def("__repr__", [](const RawBytesObject& self) {
            return fmt::format("<bascule.RawBytes, {} bytes>", py::len(self.bytes));
        });
    module.def(
        "raw_bytes",
        [](const py::object& buffer) {
            if (PyObject_CheckBuffer(buffer.ptr()) == 0) {
                reject(ErrorKind::type,
                       "raw_bytes takes bytes, or an object that lends its memory (a NumPy array or scalar, "
                       "a ctypes structure), got an object of type {}.",
                       Py_TYPE(buffer.ptr())->tp_name);
            }
            return RawBytesObject{py::bytes(owned(PyMemoryView_FromObject(buffer.ptr())).attr("tobytes")())};
        },
        "buffer"_a,
        "Pass the bytes of a struct by value; their number is checked and nothing else. They are copied "
        "now.");
    module.def(
        "raw_pointer", [](std::uint64_t address) { return RawPointerObject{address}; }, "address"_a,
        "Pass an integer device address for a pointer parameter; nothing about it is checked.");
    raw_pointer_type = reinterpret_cast<PyTypeObject*>(py::type::of<RawPointerObject>().ptr());
    raw_bytes_type = reinterpret_cast<PyTypeObject*>(py::type::of<RawBytesObject>().ptr());
}

}  // namespace bascule::python

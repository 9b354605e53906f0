#include "launch/arguments.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include <bascule/interface/arguments/refusals.hpp>
#include <bascule/runtime/driver/peer_access.hpp>
#include <bascule/runtime/faults/failure_details.hpp>

#include "arrays/array_object.hpp"
#include "arrays/mask.hpp"
#include "context/device_object.hpp"
#include "context/stream_object.hpp"
#include "dlpack/dlpack_import.hpp"
#include "exchange/interface_reader.hpp"
#include "exchange/numba_arrays.hpp"
#include "exchange/plain_interface.hpp"
#include "exchange/producer_streams.hpp"
#include "launch/raw_arguments.hpp"
#include "launch/scalars.hpp"
#include "support/attributes.hpp"
#include "support/cpython.hpp"
#include "support/gil.hpp"
#include "support/names.hpp"
#include "textures/tensor_map_object.hpp"
#include "textures/texture_object.hpp"
#include "types/tensor_state.hpp"
#include "values/numpy_values.hpp"

namespace bascule::python {
namespace {

/// One argument, its parameter, and its place in the pack.
struct Slot {
    ArgumentPack& pack;
    int index;
    const Parameter& parameter;
    PyObject* argument;
};

/// Reasons why the kinds of arguments that were tried so far did not accept this one.
struct Attempt {
    std::optional<std::string> absence{};  ///< its own reason for having no array interface; empty: not asked
    std::string unread{};                  ///< why a tuple or a list was not read
};

using Value = std::optional<ArgumentValue>;

// Each kind of argument has a general path, which checks every rule and throws if the parameter does not take the argument; for
// an argument of another kind it returns an empty value. The most frequent kinds also have a fast path, which writes usual
// arguments into the pack and refuses nothing: all others take the general path.

bool accept_own(Reading& reading, Slot slot, const ArrayObject& own);
bool accept_int(Slot slot);
bool accept_tensor_map(Reading& reading, Slot slot);
bool accept_tensor(Reading& reading, Slot slot, const TypeProfile& profile);
bool accept_numba_array(Reading& reading, Slot slot);
void set_interface(Reading& reading, Slot slot, RememberedType& known);
bool accept_map_of_interface(Reading& reading, const Slot& slot, const TensorMapObject& map,
                             RememberedType* known);
std::optional<ArrayView> read_array(Reading& reading, PyObject* object, const Parameter& parameter,
                                    Attempt& attempt);

using General = Value(Reading& reading, PyObject* argument, const Parameter& parameter, Attempt& attempt);
General read_own, read_null, read_image, read_tensor_map, read_number, read_raw, read_structure, read_tuple,
    read_tensor, read_interface, read_host_array, read_dlpack, refuse_unknown;

/// The general paths, in the order in which they are tried.
constexpr General* kinds[] = {
    &read_own,         // a bascule.DeviceArray
    &read_null,        // None
    &read_image,       // a bascule.Texture or a bascule.Surface
    &read_tensor_map,  // a bascule.TensorMap
    &read_number,      // a number of Python or NumPy
    &read_raw,         // bascule.raw_pointer(...), bascule.raw_bytes(...), bytes
    &read_structure,   // a structure of NumPy, a structure or a number of ctypes
    &read_tuple,       // a tuple or a list of any of these
    &read_tensor,      // an array with DLPack's exchange table
    &read_interface,   // an array with __cuda_array_interface__
    &read_host_array,  // an array in host memory
    &read_dlpack,      // an array with __dlpack__
    &refuse_unknown,   // anything else
};

ArgumentValue read_general(Reading& reading, PyObject* argument, const Parameter& parameter,
                           Attempt attempt = {}) {
    for (General* const read : kinds) {
        if (Value value = read(reading, argument, parameter, attempt)) return *std::move(value);
    }
    __builtin_unreachable();  // the last one throws
}

/// Reads one argument by the general path.
[[gnu::noinline]] void set_general(Reading& reading, Slot slot, Attempt attempt = {}) {
    slot.pack.set(slot.index, read_general(reading, slot.argument, slot.parameter, std::move(attempt)));
    if (slot.argument == Py_None) note_null_argument(slot.pack.signature(), slot.index);
}

/// Accepts an argument by the profile of its type. Returns false if the profile is not remembered, if no object of the
/// type was read by its interface before, or if the type's exchange table does not give a plain array.
[[gnu::always_inline]] inline bool accept_by_type(Reading& reading, Slot slot) {
    RememberedType* known = remembered_type(Py_TYPE(slot.argument));
    if (known == nullptr) [[unlikely]]
        return false;
    if (known->profile.table != nullptr) return accept_tensor(reading, slot, known->profile);
    if (!known->profile.was_array) return false;
    if (known->profile.code.is(KnownClass::array)) {
        if (accept_numba_array(reading, slot)) return true;
        known = remembered_type(Py_TYPE(slot.argument));  // Python code may have run
        if (known == nullptr) return false;
    }
    set_interface(reading, slot, *known);
    return true;
}

/// Tries the fast path that belongs to the argument's type.
[[gnu::always_inline]] inline bool accept_fast(Reading& reading, Slot slot) {
    PyObject* const argument = slot.argument;
    if (const ArrayObject* own = as_array(argument)) return accept_own(reading, slot, *own);
    if (PyFloat_CheckExact(argument)) {
        slot.pack.set_double(slot.index, slot.parameter, PyFloat_AS_DOUBLE(argument));
        return true;
    }
    if (PyLong_CheckExact(argument)) return accept_int(slot);
    return accept_by_type(reading, slot);
}

}  // namespace

void read_arguments(Reading& reading, ArgumentPack& pack, PyObject* const* arguments) {
    int index = 0;
    try {
        for (const Parameter& parameter : pack.signature().parameters) {
            const Slot slot{pack, index, parameter, arguments[index]};
            if (!accept_fast(reading, slot) && !accept_tensor_map(reading, slot)) [[unlikely]]
                set_general(reading, slot);
            ++index;
        }
    } catch (const ArgumentError& error) {
        if (error.details().index >= 0) throw;
        throw error.with_argument(index, pack.signature().parameters[static_cast<std::size_t>(index)].name);
    }
}

ArgumentValue read_argument(Reading& reading, PyObject* argument, int index, const Parameter& parameter) {
    return naming_argument(index, parameter.name, [&] { return read_general(reading, argument, parameter); });
}

void check_chosen(PyObject* argument, int index, const Parameter& parameter) {
    const TypeProfile profile = profile_of(Py_TYPE(argument));
    if (parameter.type.constant || profile.table == nullptr) return;
    naming_argument(index, parameter.name, [&] { require_writable_state(argument, profile.state); });
}

namespace {

// --- A bascule.DeviceArray

/// Keeps an array for the launch. A launch that is not ordered with the array's stream may be the first use of the
/// memory, so this waits for the allocation.
[[gnu::always_inline]] inline void keep_own(Reading& reading, PyObject* argument, const ArrayObject& own) {
    if (reading.options == nullptr || reading.options->sync) [[likely]]
        return keep_array(reading.owners, argument, own);
    reading.owners.keep(argument, own.view);
    wait_for_allocation(own);
}

[[gnu::always_inline]] inline bool accept_own(Reading& reading, Slot slot, const ArrayObject& own) {
    if (!(own.device == reading.home.device) || !accepts(slot.parameter.plain, own.plain.get())) [[unlikely]]
        return false;
    slot.pack.set_accepted(slot.index, slot.parameter, own.view.pointer, own.view.stream.handle);
    reading.home.decided = true;
    keep_own(reading, slot.argument, own);
    return true;
}

Value read_own(Reading& reading, PyObject* argument, const Parameter&, Attempt&) {
    const ArrayObject* const own = as_array(argument);
    if (own == nullptr) return {};
    ArrayView view = own->view;
    own->plain.set(view.stream && view.stream.device < 0 ? plain_traits(view) : not_plain);
    keep_own(reading, argument, *own);
    if (view.stream.source == StreamSource::interface) view.stream.source = StreamSource::own;
    Home& home = reading.home;
    if (!home.decided || own->device == home.device) {
        home.device = own->device;
        home.decided = true;
        return view;
    }
    if (!home.peer) {
        reject(ErrorKind::value, "the array lies on {}, but {}. {}", to_string(own->device),
               bascule::describe(home), advice_for_elsewhere(home.device));
    }
    without_gil([&] {
        if (own->buffer != nullptr && own->buffer->owned() != nullptr) {
            enable_peer_access(home.device, own->device);
        } else if (!view.empty()) {
            open_peer_memory(home.device, own->device, view.pointer);
        }
    });
    set_stream_device(view, own->device);
    return view;
}

// --- None

Value read_null(Reading&, PyObject* argument, const Parameter&, Attempt&) {
    return argument == Py_None ? Value(std::monostate()) : Value();
}

// --- A texture or a surface. Its array is read again for each launch, so that the launch is ordered with it

/// True if the streams that arrays name are ignored.
bool ignores_streams(const Reading& reading) noexcept {
    return !interface_sync() || (reading.options != nullptr && !reading.options->sync);
}

/// Returns a parameter with the name of `parameter` that is a pointer to any elements, to read arrays that are part of
/// a value.
Parameter any_pointer(const Parameter& parameter) {
    Parameter any;
    any.name = parameter.name;
    any.spelling = parameter.spelling;
    any.bytes = sizeof(std::uint64_t);
    any.type.kind = ParameterType::Kind::pointer;
    any.type.element_kind = ParameterType::Element::any;
    return any;
}

Parameter any_constant_pointer(const Parameter& parameter) {
    Parameter any = any_pointer(parameter);
    any.type.constant = true;
    return any;
}

Value read_image(Reading& reading, PyObject* argument, const Parameter& parameter, Attempt&) {
    if (!is_image(argument)) return {};
    const ImageReference image = as_image(argument);
    ImageArgument made = *image.argument;
    Home& home = reading.home;
    reading.owners.keep(argument, 0);
    if (const CudaArrayObject* own = as_cuda_array_object(image.array)) {
        made.array = own->array->view();
        if (home.decided && !(image.device == home.device)) set_stream_device(made.array, image.device);
        if (ignores_streams(reading)) made.array.stream = ignored_stream;
    } else {
        Parameter any = any_pointer(parameter);
        any.type.constant = !made.is_surface;
        const ArgumentValue value = read_general(reading, image.array, any);
        const auto* view = std::get_if<ArrayView>(&value);
        if (view == nullptr || view->pointer != image.source->pointer) {
            reject(ErrorKind::value, "the texture was made of {}, which has other memory now: make it again.",
                   image.source->description);
        }
        made.array = *view;
    }
    if (home.decided && !(home.device == image.device)) {
        reject(ErrorKind::value,
               "the {} is of {}, and the launch goes to {}: textures and surfaces are of one device.",
               made.is_surface ? "surface" : "texture", to_string(image.device), to_string(home.device));
    }
    home.device = image.device;
    home.decided = true;
    return made;
}

// --- A tensor map. Its array is read again for each launch, which may find it at another address

/// Accepts the map of one of Bascule's arrays, which never move, for a parameter by value.
[[gnu::always_inline]] inline bool accept_map_of_own(Reading& reading, const Slot& slot,
                                                     const TensorMapObject& map, const ArrayObject& own) {
    if (!(own.device == reading.home.device) || own.view.stream.device >= 0) return false;
    slot.pack.set_tensor_map(slot.index, slot.parameter, map.first().encoded().data(),
                             own.view.stream.handle);
    reading.home.decided = true;
    keep_own(reading, map.array.ptr(), own);
    return true;
}

/// Accepts the map if its array, which was read as plain, has the address and the shape with which the map was encoded.
[[gnu::always_inline]] inline bool accept_map_of_plain(const Slot& slot, const TensorMapObject& map,
                                                       const PlainArray& plain, const Dimensions& shape) {
    return map.look([&](const TensorMap& current) __attribute__((always_inline)) {
        const ArrayView& encoded = current.argument().array;
        if (plain.pointer != encoded.pointer || !encoded.c_contiguous ||
            !std::ranges::equal(shape, encoded.shape))
            return false;
        slot.pack.set_tensor_map(slot.index, slot.parameter, current.encoded().data(), plain.stream.handle);
        return true;
    });
}

/// Reads the map's array by the exchange table of its type.
bool accept_map_of_tensor(Reading& reading, const Slot& slot, const TensorMapObject& map,
                          const TypeProfile& profile) {
    PlainArray plain;
    Dimensions shape;
    return read_plain_tensor(map.array.ptr(), profile, map.parameter(), reading.home, reading.owners,
                             reading.work_stream, plain, &shape) &&
           accept_map_of_plain(slot, map, plain, shape);
}

/// The fast path for tensor maps, which is tried after those of arrays and numbers.
[[gnu::noinline]] bool accept_tensor_map(Reading& reading, Slot slot) {
    const TensorMapObject* const map = as_tensor_map(slot.argument);
    if (map == nullptr || !can_hold_tensor_map(slot.parameter) ||
        slot.parameter.alignment < tensor_map_alignment)
        return false;
    PyObject* const array = map->array.ptr();
    if (const ArrayObject* const own = as_array(array)) return accept_map_of_own(reading, slot, *map, *own);
    RememberedType* const known = remembered_type(Py_TYPE(array));
    if (known == nullptr) return false;
    if (known->profile.table != nullptr) return accept_map_of_tensor(reading, slot, *map, known->profile);
    return known->profile.was_array && accept_map_of_interface(reading, slot, *map, known);
}

/// Whether the parameter takes a pointer, as far as is known before a template's function is chosen.
bool takes_pointer(const Parameter& parameter) noexcept {
    return parameter.type.kind == ParameterType::Kind::pointer || may_be_pointer(parameter.type) ||
           (parameter.bytes == 0 && parameter.spelling.find('*') != std::string::npos);
}

/// The argument for a map whose array is now `view`.
TensorMapArgument map_argument(Reading& reading, const TensorMapObject& map, const Parameter& parameter,
                               ArrayView view) {
    const SharedTensorMap current = map.current(view);
    TensorMapArgument made = current->argument();
    made.array = std::move(view);
    if (takes_pointer(parameter)) made.address = without_gil([&] { return current->address(); });
    reading.owners.keep(current.owner(), 0);
    return made;
}

Value read_tensor_map(Reading& reading, PyObject* argument, const Parameter& parameter, Attempt& attempt) {
    const TensorMapObject* const map = as_tensor_map(argument);
    if (map == nullptr) return {};
    std::optional<ArrayView> view = read_array(reading, map->array.ptr(), parameter, attempt);
    if (!view) reject(ErrorKind::value, "the array of the tensor map has lost its memory: make it again.");
    return map_argument(reading, *map, parameter, *std::move(view));
}

// --- Numbers

[[gnu::noinline]] bool accept_int(Slot slot) {
    const auto integer = short_integer(slot.argument);
    if (integer) slot.pack.set_integer(slot.index, slot.parameter, *integer);
    return integer.has_value();
}

Value read_number(Reading&, PyObject* argument, const Parameter&, Attempt&) {
    if (const auto scalar = read_scalar(argument)) return *scalar;
    return {};
}

// --- Values given as bytes

/// Borrows the bytes of a buffer. Empty, with Python's error set, if they are not contiguous.
std::optional<RawBytes> read_bytes(Reading& reading, PyObject* buffer) {
    Py_buffer view{};
    if (PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE) != 0) return std::nullopt;
    if (reading.buffers == nullptr) reading.buffers = std::make_unique<Reading::Buffers>();
    reading.buffers->all.push_back(view);
    return RawBytes{{static_cast<const std::byte*>(view.buf), static_cast<std::size_t>(view.len)}};
}

Value read_raw(Reading& reading, PyObject* argument, const Parameter&, Attempt&) {
    if (const RawPointerObject* raw = as_raw_pointer(argument)) return RawPointer{raw->address};
    PyObject* buffer = argument;
    if (const RawBytesObject* raw = as_raw_bytes(argument)) {
        buffer = raw->bytes.ptr();
    } else if (!PyBytes_Check(argument) && !PyByteArray_Check(argument) && !PyMemoryView_Check(argument)) {
        return {};
    }
    if (const auto bytes = read_bytes(reading, buffer)) return *bytes;
    clear_exception();
    return {};
}

/// True for a structured NumPy scalar (`numpy.void`) and for a 0-d structured array.
bool is_void(PyObject* object) {
    const py::handle value(object);
    if (value.attr("ndim").cast<int>() != 0) return false;
    return std::string(py::str(value.attr("dtype").attr("kind"))) == "V";
}

/// Returns a structured scalar, or raw bytes if the dtype has no fields.
ArgumentValue structure_of(Reading& reading, PyObject* argument, const py::object& dtype,
                           LayoutSource source) {
    const auto bytes = read_bytes(reading, argument);
    if (!bytes) throw py::error_already_set();
    if (dtype.attr("names").is_none()) return *bytes;
    const std::shared_ptr<const StructLayout> layout = numpy_layout(dtype);
    if (layout == nullptr) {
        reject(ErrorKind::type,
               "the fields of this structured scalar overlap or are out of order, so they cannot be compared "
               "with the kernel's struct. Pass bascule.raw_bytes(x).");
    }
    return StructuredScalar{bytes->bytes, layout, source};
}

Value read_structure(Reading& reading, PyObject* argument, const Parameter&, Attempt&) {
    if (is_numpy_scalar(argument) && is_void(argument))
        return structure_of(reading, argument, py::handle(argument).attr("dtype"), LayoutSource::dtype);
    const py::handle type = py::type::handle_of(argument);
    if (PyObject_CheckBuffer(argument) != 0 && has_attribute(type, "_fields_"))
        return structure_of(reading, argument, ctypes_dtype(type), LayoutSource::ctypes);
    return read_ctypes_number(argument);
}

// --- Tuples, and their elements for pointers

bool is_host_array(PyObject* object) {
    return !PyType_Check(object) && has_attribute(object, names().array_interface);
}

/// Reads an element that is None, an address or an array. Empty for others; tuples and host arrays are read by element.
std::optional<TupleArgument::Element> read_element(Reading& reading, PyObject* element,
                                                   const Parameter& parameter) {
    if (element == Py_None) return std::monostate{};
    if (const RawPointerObject* raw = as_raw_pointer(element)) return RawPointer{raw->address};
    const bool is_array = as_array(element) != nullptr ||
                          has_attribute(element, names().cuda_array_interface) ||
                          (has_attribute(element, names().dlpack) && !is_host_array(element));
    if (!is_array || PyType_Check(element)) return std::nullopt;
    const ArgumentValue value = read_general(reading, element, any_pointer(parameter));
    const auto* view = std::get_if<ArrayView>(&value);
    if (view == nullptr) return std::nullopt;
    return std::make_shared<const ArrayView>(*view);
}

Value read_elements(Reading& reading, PyObject* argument, const Parameter& parameter, Attempt& attempt) {
    const auto read_other = [&](PyObject* element) { return read_element(reading, element, parameter); };
    auto tuple = python::read_tuple(argument, read_other, attempt.unread);
    return tuple ? Value(*std::move(tuple)) : Value();
}

Value read_tuple(Reading& reading, PyObject* argument, const Parameter& parameter, Attempt& attempt) {
    if (!PyTuple_Check(argument) && !PyList_CheckExact(argument)) return {};
    return read_elements(reading, argument, parameter, attempt);
}

// --- An array with an exchange table, read by the C functions of its type

[[gnu::always_inline]] inline bool accept_tensor(Reading& reading, Slot slot, const TypeProfile& profile) {
    PlainArray plain;
    if (!read_plain_tensor(slot.argument, profile, slot.parameter, reading.home, reading.owners,
                           reading.work_stream, plain)) [[unlikely]] {
        return false;
    }
    slot.pack.set_accepted(slot.index, slot.parameter, plain.pointer, plain.stream.handle);
    return true;
}

Value read_tensor(Reading& reading, PyObject* argument, const Parameter& parameter, Attempt&) {
    const TypeProfile profile = profile_of(Py_TYPE(argument));
    const bool may_write = !parameter.type.constant;
    ArrayView view;
    if (profile.table == nullptr ||
        !read_exchange(argument, profile, may_write, reading.home, reading.owners, view)) {
        return {};
    }
    // A parameter without a size is known from the text only, which does not tell whether the kernel writes. The profile is
    // looked up again because the table may have run Python code.
    require_plain_state(argument, profile_of(Py_TYPE(argument)).state, view,
                        may_write && parameter.bytes > 0);
    return view;
}

// --- An array with __cuda_array_interface__

/// Whether a parameter with these traits takes the elements of a plain array, and the array's order is known: it names a
/// stream, or has version 3.
[[gnu::always_inline]] inline bool takes_plain(Reading& reading, PlainTraits parameter,
                                               const PlainArray& plain) {
    return (plain.stream || plain.version == 3) && accepts(parameter, plain.traits) && plain.is_aligned() &&
           is_known_at_home(plain.pointer, reading.home);
}

[[gnu::always_inline]] inline bool accept_plain(Reading& reading, Slot slot, const PlainArray& plain) {
    if (!takes_plain(reading, slot.parameter.plain, plain)) return false;
    reading.owners.keep(slot.argument, plain.bytes);
    slot.pack.set_accepted(slot.index, slot.parameter, plain.pointer, plain.stream.handle);
    slot.pack.note_interface_stream(slot.index, plain.stream.handle);
    return true;
}

/// Accepts an array of Numba without calling the property that describes it.
[[gnu::noinline]] bool accept_numba_array(Reading& reading, Slot slot) {
    PlainArray plain;
    return reading.options == nullptr && interface_sync() &&
           read_numba_array(slot.argument, plain, nullptr) && accept_plain(reading, slot, plain);
}

/// The stream that producers are asked to be ready for: the launch's, as far as it is known.
StreamRef consumer(const Reading& reading) {
    return reading.stream != nullptr ? *reading.stream
                                     : stream_or_current(py::none(), reading.home.device, "array");
}

/// Determines the stream of an array, unless its interface decides: by the launch's options or the producer's library.
void find_order(Reading& reading, PyObject* argument, const Parameter& parameter, ArrayView& view) {
    const Device home = reading.home.device;
    if (ignores_streams(reading)) {
        view.stream = ignored_stream;
        return;
    }
    const StreamRef* named =
        reading.options == nullptr ? nullptr : reading.options->stream_of(parameter.name);
    if (named != nullptr && !view.stream) {
        view.stream = producer_stream(*named, home, StreamSource::call);
    } else if (needs_stream(view)) {
        const StreamRef ready_for = consumer(reading);
        const Device memory_device = view.stream.device < 0 ? home : Device(view.stream.device);
        if (const py::object kept = find_stream(argument, memory_device, ready_for, view))
            reading.owners.keep(kept.ptr(), 0);
        if (view.stream.source == StreamSource::dlpack)
            view.stream = producer_stream(ready_for, home, StreamSource::dlpack);
    }
}

/// Reads the array of `argument`, whose interface is `descriptor`, and keeps it for the launch.
ArrayView view_of(Reading& reading, PyObject* argument, PyObject* descriptor, const Parameter& parameter) {
    auto [view, mask] = read_descriptor(descriptor, Py_TYPE(argument));
    // `may_write` is false because the interface of a tensor that requires a gradient raises anyway.
    require_plain_state(argument, profile_of(Py_TYPE(argument)).state, view, false);
    find_home(view, reading.home);
    if (mask && parameter.bytes > 0 && parameter.type.kind != ParameterType::Kind::masked_view) {
        // The pack refuses the array, because the parameter takes no mask, so the mask need not be read. A parameter without a
        // size may take one: it is known from its text only.
        view.mask = std::make_shared<const MaskView>();
    } else if (mask) {
        view.mask = read_mask(mask.ptr(), argument, view, reading.home);
        reading.owners.keep(mask.ptr(), view.size);
    }
    if (needs_stream(view) || reading.options != nullptr || !interface_sync())
        find_order(reading, argument, parameter, view);
    reading.owners.keep(argument, view);
    return view;
}

/// Continues set_interface by the general path. If `descriptor` is null, Python's error says why.
[[gnu::noinline]] void set_descriptor(Reading& reading, Slot slot, PyObject* descriptor) {
    if (descriptor == nullptr) return set_general(reading, slot, {.absence = take_absence()});
    slot.pack.set(slot.index, view_of(reading, slot.argument, descriptor, slot.parameter));
}

/// Reads an object of a type whose objects were arrays before, by the fast or the general path. Gets its descriptor once.
[[gnu::always_inline]] inline void set_interface(Reading& reading, Slot slot, RememberedType& known) {
    const bool usual = reading.options == nullptr && interface_sync() && !known.profile.state.any;
    PlainArray plain;
    const auto descriptor =
        py::reinterpret_steal<py::object>(call_interface(slot.argument, known.profile.interface));
    if (descriptor && usual && read_plain_interface(descriptor.ptr(), known.keys, plain, nullptr) &&
        accept_plain(reading, slot, plain)) [[likely]] {
        return;
    }
    set_descriptor(reading, slot, descriptor.ptr());
}

/// Accepts a map whose array was read by its interface.
[[gnu::always_inline]] inline bool accept_plain_map(Reading& reading, const Slot& slot,
                                                    const TensorMapObject& map, const PlainArray& plain,
                                                    const Dimensions& shape) {
    if (!takes_plain(reading, map.parameter().plain, plain) || !accept_map_of_plain(slot, map, plain, shape))
        return false;
    reading.owners.keep(map.array.ptr(), plain.bytes);
    slot.pack.note_interface_stream(slot.index, plain.stream.handle);
    return true;
}

/// Accepts a map of an array of Numba without calling the property that describes the array.
[[gnu::noinline]] bool accept_map_of_numba(Reading& reading, const Slot& slot, const TensorMapObject& map) {
    PlainArray plain;
    Dimensions shape;
    return reading.options == nullptr && interface_sync() &&
           read_numba_array(map.array.ptr(), plain, &shape) &&
           accept_plain_map(reading, slot, map, plain, shape);
}

/// Continues accept_map_of_interface by the general path. If `descriptor` is null, Python's error says why.
[[gnu::noinline]] void set_map_descriptor(Reading& reading, const Slot& slot, const TensorMapObject& map,
                                          PyObject* descriptor) {
    if (descriptor == nullptr) return set_general(reading, slot, {.absence = take_absence()});
    const Parameter any = any_constant_pointer(slot.parameter);
    ArrayView view = view_of(reading, map.array.ptr(), descriptor, any);
    slot.pack.set(slot.index, map_argument(reading, map, slot.parameter, std::move(view)));
}

/// Reads the array of a map whose type's objects were arrays before, by the fast or the general path. Gets its descriptor
/// once. Returns false if the array is read by other protocols.
bool accept_map_of_interface(Reading& reading, const Slot& slot, const TensorMapObject& map,
                             RememberedType* known) {
    PyObject* const array = map.array.ptr();
    if (known->profile.code.is(KnownClass::array)) [[unlikely]] {
        if (accept_map_of_numba(reading, slot, map)) return true;
        known = remembered_type(Py_TYPE(array));  // Python code may have run
        if (known == nullptr) return false;
    }
    const bool usual = reading.options == nullptr && interface_sync() && !known->profile.state.any;
    PlainArray plain;
    Dimensions shape;
    const auto descriptor =
        py::reinterpret_steal<py::object>(call_interface(array, known->profile.interface));
    if (!descriptor || !usual || !read_plain_interface(descriptor.ptr(), known->keys, plain, &shape) ||
        !accept_plain_map(reading, slot, map, plain, shape)) [[unlikely]]
        set_map_descriptor(reading, slot, map, descriptor.ptr());
    return true;
}

Value read_interface(Reading& reading, PyObject* argument, const Parameter& parameter, Attempt& attempt) {
    if (attempt.absence) return {};
    const TypeProfile profile = profile_of(Py_TYPE(argument));
    const py::object descriptor = get_interface(argument, profile.interface, attempt.absence.emplace());
    if (!descriptor) return {};
    const ArrayView view = view_of(reading, argument, descriptor.ptr(), parameter);
    if (!PyTuple_Check(argument)) remember_array(Py_TYPE(argument));  // a tuple may be a vector
    return view;
}

// --- Other objects that may be arrays

/// The end of a message: the object's own reason for having no interface.
std::string describe_absence(const std::optional<std::string>& absence) {
    return !absence || absence->empty() ? std::string()
                                        : fmt::format(" (Its __cuda_array_interface__ says: {}.)", *absence);
}

[[noreturn]] void refuse_host_array(PyObject* argument, const Parameter& parameter, const Attempt& attempt) {
    const bool by_value = parameter.bytes > 0 && !takes_arrays(parameter.type);
    refuse(takes_images(parameter.type)                         ? refusals::other_kind
           : parameter.type.kind == ParameterType::Kind::scalar ? refusals::host_array_for_number
           : by_value                                           ? refusals::by_value
                                                                : refusals::host_array,
           parameter, fmt::format("a host array ({})", Py_TYPE(argument)->tp_name),
           describe_absence(attempt.absence));
}

Value read_host_array(Reading& reading, PyObject* argument, const Parameter& parameter, Attempt& attempt) {
    if (!is_host_array(argument)) return {};
    if (has_attribute(argument, "ndim") && is_void(argument))
        return structure_of(reading, argument, py::handle(argument).attr("dtype"), LayoutSource::dtype);
    if (!takes_arrays(parameter.type) && parameter.type.kind != ParameterType::Kind::scalar) {
        if (Value tuple = read_elements(reading, argument, parameter, attempt)) return tuple;
    }
    refuse_host_array(argument, parameter, {});
}

/// Reads an array with `__dlpack__`; `view` is set for device memory.
DlpackMemory read_dlpack_array(Reading& reading, PyObject* argument, ArrayView& view) {
    ImportedTensor tensor;
    const StreamRef ready_for = consumer(reading);
    const DlpackMemory memory = python::read_dlpack(argument, ready_for, tensor);
    if (memory != DlpackMemory::device) return memory;
    reading.owners.keep(tensor.owner.ptr(), tensor.view);
    find_home(tensor.view, reading.home);
    tensor.view.stream = producer_stream(ready_for, reading.home.device, StreamSource::dlpack);
    view = tensor.view;
    return memory;
}

Value read_dlpack(Reading& reading, PyObject* argument, const Parameter& parameter, Attempt& attempt) {
    ArrayView view;
    switch (read_dlpack_array(reading, argument, view)) {
        case DlpackMemory::host:
            refuse_host_array(argument, parameter, attempt);
        case DlpackMemory::none:
            return {};
        case DlpackMemory::device:
            break;
    }
    return view;
}

Value refuse_unknown(Reading&, PyObject* argument, const Parameter& parameter, Attempt& attempt) {
    std::string wanted = what_to_pass(parameter);
    const bool is_array_like = (PySequence_Check(argument) != 0 && PyUnicode_Check(argument) == 0) ||
                               has_attribute(argument, "__array__");
    if (wanted == "a device array") {
        wanted +=
            is_array_like ? ": bascule.to_device(x) makes one" : " (anything with __cuda_array_interface__)";
    }
    if (wanted == "a number") wanted = "a Python or NumPy scalar";
    refuse(refusals::unknown, parameter,
           !attempt.unread.empty() ? attempt.unread
                                   : fmt::format("an object of type {}", Py_TYPE(argument)->tp_name),
           wanted, takes_arrays(parameter.type) ? describe_absence(attempt.absence) : "");
}

/// Reads an array that is part of another argument, and keeps it for the launch. Empty if the object is not a device array.
std::optional<ArrayView> read_array(Reading& reading, PyObject* object, const Parameter& parameter,
                                    Attempt& attempt) {
    const Parameter any = any_constant_pointer(parameter);
    for (General* const read : {&read_own, &read_tensor, &read_interface}) {
        if (const Value value = read(reading, object, any, attempt)) return std::get<ArrayView>(*value);
    }
    ArrayView view;
    if (is_host_array(object) || read_dlpack_array(reading, object, view) != DlpackMemory::device)
        return std::nullopt;
    return view;
}

}  // namespace

std::optional<ArrayView> read_array_alone(PyObject* object, Device& device) {
    OwnerList owners;
    Reading reading(device, owners, nullptr, nullptr);
    Attempt attempt;
    std::optional<ArrayView> view = read_array(reading, object, {}, attempt);
    device = reading.home.device;
    return view;
}

}  // namespace bascule::python

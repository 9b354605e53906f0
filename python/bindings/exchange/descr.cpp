// Source: NumPy's array interface protocol, `descr`.
#include "exchange/descr.hpp"

#include <vector>

#include <bascule/interface/arrays/array_interface.hpp>
#include <bascule/interface/errors/rejection.hpp>
#include <bascule/interface/errors/wording.hpp>

namespace bascule::python {
namespace {

constexpr int deepest = 16;  // nested structures; a list may contain itself

[[noreturn]] void fail(ErrorKind kind, const std::string& message) {
    throw ArgumentError(kind, "'descr' of __cuda_array_interface__ " + message, {.field = "descr"});
}

[[noreturn]] void fail_form(py::handle got) {
    fail(ErrorKind::type,
         fmt::format("must be a list of (name, type) or (name, type, shape), got {}.", safe_repr(got.ptr())));
}

std::string text_of(py::handle object) {
    Py_ssize_t size = 0;
    const char* text = PyUnicode_AsUTF8AndSize(object.ptr(), &size);
    if (text == nullptr) {
        PyErr_Clear();  // lone surrogates
        fail(ErrorKind::value, "has a name or a type that is not valid Unicode text.");
    }
    return {text, static_cast<std::size_t>(size)};
}

/// The field's name: "name" or ("title", "name").
std::string name_of(py::handle name, py::handle entry) {
    if (PyTuple_Check(name.ptr()) && PyTuple_GET_SIZE(name.ptr()) == 2) {
        name = PyTuple_GET_ITEM(name.ptr(), 1);
    }
    if (!PyUnicode_Check(name.ptr())) fail_form(entry);
    return text_of(name);
}

std::int64_t extent_of(py::handle extent, py::handle entry) {
    if (!PyLong_Check(extent.ptr()) || PyBool_Check(extent.ptr())) fail_form(entry);
    int overflow = 0;
    const long long value = PyLong_AsLongLongAndOverflow(extent.ptr(), &overflow);
    if (overflow != 0) fail(ErrorKind::value, "has a field of more than 2**63 elements.");
    return value;
}

std::vector<DescrEntry> entries_of(py::handle descr, int depth);

DescrEntry descr_entry(py::handle object, int depth) {
    if (!PyTuple_Check(object.ptr())) fail_form(object);
    const Py_ssize_t size = PyTuple_GET_SIZE(object.ptr());
    if (size != 2 && size != 3) fail_form(object);
    DescrEntry entry;
    entry.name = name_of(PyTuple_GET_ITEM(object.ptr(), 0), object);
    const py::handle type = PyTuple_GET_ITEM(object.ptr(), 1);
    if (PyUnicode_Check(type.ptr())) {
        entry.typestr = text_of(type);
        if (entry.typestr.empty())
            fail(ErrorKind::value, fmt::format("has no type for '{}'.", shortened(entry.name)));
    } else {
        entry.nested = entries_of(type, depth + 1);
    }
    if (size == 2) return entry;
    const py::handle shape = PyTuple_GET_ITEM(object.ptr(), 2);
    if (!PyTuple_Check(shape.ptr())) {
        entry.shape.push_back(extent_of(shape, object));
        return entry;
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(shape.ptr()); ++i) {
        entry.shape.push_back(extent_of(PyTuple_GET_ITEM(shape.ptr(), i), object));
    }
    return entry;
}

std::vector<DescrEntry> entries_of(py::handle descr, int depth) {
    if (!PyList_Check(descr.ptr())) fail_form(descr);
    if (depth > deepest) fail(ErrorKind::value, fmt::format("nests structures more than {} deep.", deepest));
    // A copy, which no other thread can change.
    const auto entries = owned<py::tuple>(PyList_AsTuple(descr.ptr()));
    std::vector<DescrEntry> result;
    for (py::handle entry : entries) result.push_back(descr_entry(entry, depth));
    return result;
}

}  // namespace

std::shared_ptr<const StructLayout> read_descr(PyObject* descr, std::string_view typestr) {
    const DType dtype = parse_typestr(typestr);
    const std::vector<DescrEntry> entries = entries_of(descr, 0);
    const bool plain = entries.size() == 1 && entries[0].name.empty() && entries[0].shape.empty();
    if (plain && entries[0].typestr == typestr) return nullptr;
    if (dtype.kind != DType::Kind::opaque) {
        if (plain && !entries[0].typestr.empty() && parse_typestr(entries[0].typestr) == dtype)
            return nullptr;
        fail(ErrorKind::value,
             fmt::format("contradicts 'typestr', which is \"{}\": this is a bug in the producing library.",
                         shortened(typestr)));
    }
    StructLayout layout = parse_descr(entries, dtype.itemsize);
    if (layout.fields.empty()) return nullptr;
    return std::make_shared<const StructLayout>(std::move(layout));
}

}  // namespace bascule::python

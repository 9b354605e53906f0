#include "launch/raw_arguments.hpp"

#include <bascule/interface/errors/rejection.hpp>

#include "parts.hpp"

namespace bascule::python {
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
    detail::raw_pointer_type = reinterpret_cast<PyTypeObject*>(py::type::of<RawPointerObject>().ptr());
    detail::raw_bytes_type = reinterpret_cast<PyTypeObject*>(py::type::of<RawBytesObject>().ptr());
}

}  // namespace bascule::python

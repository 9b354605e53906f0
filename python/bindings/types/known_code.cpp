#include "types/known_code.hpp"

#include <string>
#include <utility>

namespace bascule::python {

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

}  // namespace bascule::python

// Python objects that hold one C++ value and support vectorcall: launchers and bound launches.
#pragma once

#include <memory>

#include "classes/collected.hpp"
#include "support/errors.hpp"
#include "support/gil.hpp"

namespace bascule::python {

template <class T>
struct CallableObject {
    PyObject_HEAD vectorcallfunc vectorcall;
    T* held;
};

template <class T>
T& held_by(PyObject* self) noexcept {
    return *reinterpret_cast<CallableObject<T>*>(self)->held;
}

/// Calls `action` and returns a new reference to its result. If it throws, sets a Python error and returns null.
template <class Action>
PyObject* guarded(Action&& action) noexcept {
    try {
        return action().release().ptr();
    } catch (const abi::__forced_unwind&) {  // Python ends a daemon thread
        stop_this_thread();
    } catch (...) {
        set_python_error();
        return nullptr;
    }
}

/// Makes an object of `type`, which register_callable made for this T.
template <class T>
py::object make_callable(PyTypeObject* type, vectorcallfunc call, std::unique_ptr<T> held) {
    py::object made = owned(type->tp_alloc(type, 0));
    auto* object = reinterpret_cast<CallableObject<T>*>(made.ptr());
    object->vectorcall = call;
    object->held = held.release();
    return made;
}

/// Converts a function for a method table, whose functions have other parameters.
template <class Function>
PyCFunction as_method(Function* function) noexcept {
    return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

/// Makes a heap type `name` ("bascule.Launcher") in the module. T has `visit_references(ReferenceVisitor&)`, and `finalize()`,
/// which the garbage collector calls before it clears anything. The strings and `methods` must have static storage.
template <class T>
PyTypeObject* register_callable(py::module_& module, const char* name, const char* documentation,
                                PyMethodDef* methods, reprfunc repr) {
    static PyMemberDef members[] = {
        {"__vectorcalloffset__", T_PYSSIZET, offsetof(CallableObject<T>, vectorcall), READONLY, nullptr},
        {nullptr, 0, 0, 0, nullptr},
    };
    const destructor deallocate = [](PyObject* self) {
        PyTypeObject* type = Py_TYPE(self);
        PyObject_GC_UnTrack(self);
        delete &held_by<T>(self);
        type->tp_free(self);
        Py_DECREF(type);
    };
    const auto visit_held = [](PyObject* self, ReferenceVisitor visitor) {
        T* const held = reinterpret_cast<CallableObject<T>*>(self)->held;
        if (held != nullptr) held->visit_references(visitor);
        return visitor.result();
    };
    const traverseproc traverse = [](PyObject* self, visitproc visit, void* arg) {
        Py_VISIT(Py_TYPE(self));
        return decltype(visit_held){}(self, {visit, arg});
    };
    const inquiry clear = [](PyObject* self) {
        return decltype(visit_held){}(self, ReferenceVisitor::that_clears());
    };
    const destructor finalize = [](PyObject* self) { held_by<T>(self).finalize(); };
    PyType_Slot slots[] = {
        {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
        {Py_tp_clear, reinterpret_cast<void*>(clear)},
        {Py_tp_finalize, reinterpret_cast<void*>(finalize)},
        {Py_tp_call, reinterpret_cast<void*>(&PyVectorcall_Call)},
        {Py_tp_dealloc, reinterpret_cast<void*>(deallocate)},
        {Py_tp_repr, reinterpret_cast<void*>(repr)},
        {Py_tp_doc, const_cast<char*>(documentation)},
        {Py_tp_members, members},
        {Py_tp_methods, methods},
        {0, nullptr},
    };
    PyType_Spec spec = {name, static_cast<int>(sizeof(CallableObject<T>)), 0,
                        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL |
                            Py_TPFLAGS_DISALLOW_INSTANTIATION,
                        slots};
    const auto type = owned(PyType_FromSpec(&spec));
    const std::string whole = name;
    module.attr(whole.substr(whole.rfind('.') + 1).c_str()) = type;
    return reinterpret_cast<PyTypeObject*>(type.ptr());
}

}  // namespace bascule::python

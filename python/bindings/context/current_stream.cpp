// A context variable holds the entered objects as a chain of tuples (object, handle, device, outer), newest first. The
// chain is only replaced and never changed, so that a task that was started inside a block keeps its chain. A Device
// has the handle None.
#include "context/current_stream.hpp"

#include <bascule/interface/errors/rejection.hpp>

namespace bascule::python {
namespace {

PyObject* variable() {
    static PyObject* const made = owned(PyContextVar_New("bascule.current", nullptr)).release().ptr();
    return made;  // never released
}

/// One link of the chain. Borrowed from the tuple that the caller holds.
class Link {
  public:
    explicit Link(PyObject* tuple) noexcept : tuple_(tuple) {}
    explicit operator bool() const noexcept { return tuple_ != nullptr && tuple_ != Py_None; }
    PyObject* object() const noexcept { return PyTuple_GET_ITEM(tuple_, 0); }
    bool is_stream() const noexcept { return PyTuple_GET_ITEM(tuple_, 1) != Py_None; }
    std::uint64_t handle() const { return PyLong_AsUnsignedLongLong(PyTuple_GET_ITEM(tuple_, 1)); }
    int ordinal() const { return static_cast<int>(PyLong_AsLong(PyTuple_GET_ITEM(tuple_, 2))); }
    Link outer() const noexcept { return Link(PyTuple_GET_ITEM(tuple_, 3)); }

  private:
    PyObject* tuple_;
};

/// The newest link; null if nothing was entered.
py::object chain() {
    if (!anything_entered()) return {};
    PyObject* value = nullptr;
    if (PyContextVar_Get(variable(), nullptr, &value) != 0) throw py::error_already_set();
    return py::reinterpret_steal<py::object>(value);
}

void replace_chain(PyObject* with) { owned(PyContextVar_Set(variable(), with)); }

void push_link(const py::object& object, const py::object& handle, Device device) {
    detail::ever_entered.store(true, std::memory_order_relaxed);
    const py::object outer = chain();
    const py::tuple link = py::make_tuple(object, handle, device.ordinal(), outer ? outer : py::none());
    replace_chain(link.ptr());
}

/// The link of the current stream for `device`; empty if there is no such stream.
Link stream_link(PyObject* newest, Device device) {
    Link link(newest);
    if (!link || link.is_stream()) return link;
    while (link && !(link.is_stream() && link.ordinal() == device.ordinal())) link = link.outer();
    return link;
}

}  // namespace

std::optional<StreamRef> current_stream(Device device) {
    const py::object newest = chain();
    const Link link = stream_link(newest.ptr(), device);
    if (!link) return std::nullopt;
    return StreamRef(link.handle(), link.ordinal() == device.ordinal() ? device : Device(link.ordinal()));
}

py::object current_stream_object(Device device) {
    const py::object newest = chain();
    const Link link = stream_link(newest.ptr(), device);
    return link ? py::reinterpret_borrow<py::object>(link.object()) : py::object();
}

std::optional<StreamRef> innermost_stream() {
    const py::object newest = chain();
    const Link link(newest.ptr());
    if (!link || !link.is_stream()) return std::nullopt;
    return StreamRef(link.handle(), Device(link.ordinal()));
}

std::optional<Device> entered_device() {
    const py::object newest = chain();
    const Link link(newest.ptr());
    return link ? std::optional(Device(link.ordinal())) : std::nullopt;
}

void enter_stream(const py::object& object, StreamRef stream) {
    push_link(object, py::int_(stream.handle()), stream.device());
}

void enter_device(const py::object& object, Device device) { push_link(object, py::none(), device); }

void leave_current(const py::object& object) {
    const py::object newest = chain();
    const Link link(newest.ptr());
    if (!link || link.object() != object.ptr()) {
        reject(ErrorKind::value,
               "{} is left, and it is not what was entered last in this thread or task. Leave streams and "
               "devices in the opposite order, where they were entered: `with` does.",
               std::string(py::repr(object)));
    }
    const py::object outer = py::reinterpret_borrow<py::object>(PyTuple_GET_ITEM(newest.ptr(), 3));
    replace_chain(outer.ptr());
}

}  // namespace bascule::python

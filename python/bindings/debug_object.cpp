#include "debug_object.hpp"

#include <map>
#include <mutex>
#include <string>
#include <utility>

#include <fmt/format.h>

#include <bascule/runtime/lifetime.hpp>

#include "without_gil.hpp"

namespace py = pybind11;
using namespace py::literals;

namespace bascule::python {
namespace {

/// What is known of one place in one code object, which is kept: its address is the key.
struct KnownPlace {
    py::object code;
    LaunchSite site;
    bool ours = false;  // in the package itself: its caller is meant
};

/// "bascule" of "bascule._decorator".
bool is_ours(PyFrameObject* frame) {
    const auto globals = py::reinterpret_steal<py::dict>(PyFrame_GetGlobals(frame));
    const py::object name = globals.attr("get")("__name__", "");
    const std::string module = py::str(name);
    return module == "bascule" || module.starts_with("bascule.");
}

std::string described(const py::object& code, int line) {
    const std::string file = py::str(code.attr("co_filename"));
    const std::string text =
        py::str(py::module_::import("linecache").attr("getline")(file, line).attr("strip")());
    return fmt::format("{}:{}{}", file, line, text.empty() ? "" : ": " + text);
}

/// Never destroyed; what is in it stays where it is.
const KnownPlace& look_up(PyFrameObject* frame) {
    static auto& known = *new std::map<std::pair<PyCodeObject*, int>, KnownPlace>;
    static GilMutex mutex;  // of `known`
    const auto code = py::reinterpret_steal<py::object>(reinterpret_cast<PyObject*>(PyFrame_GetCode(frame)));
    const std::pair key(reinterpret_cast<PyCodeObject*>(code.ptr()), PyFrame_GetLasti(frame));
    {
        const std::lock_guard lock(mutex);
        if (const auto found = known.find(key); found != known.end()) return found->second;
    }
    KnownPlace place{code, {}, is_ours(frame)};
    if (!place.ours) place.site = LaunchSite::of(described(code, PyFrame_GetLineNumber(frame)));
    const std::lock_guard lock(mutex);
    return known.try_emplace(key, std::move(place)).first->second;
}

}  // namespace

LaunchSite current_site() noexcept {
    try {
        auto frame = py::reinterpret_borrow<py::object>(reinterpret_cast<PyObject*>(PyEval_GetFrame()));
        while (frame) {
            auto* native = reinterpret_cast<PyFrameObject*>(frame.ptr());
            const KnownPlace& place = look_up(native);
            if (!place.ours) return place.site;
            frame = py::reinterpret_steal<py::object>(reinterpret_cast<PyObject*>(PyFrame_GetBack(native)));
        }
    } catch (py::error_already_set&) {  // a report without a place is better than no launch
    } catch (const std::exception&) {
    }
    return {};
}

void bind_debug(py::module_& module) {
    module.def("_owners_held", &owners_held);
    module.def(
        "_synchronise_launches", [](bool on) { return synchronise_launches.exchange(on); }, "on"_a);
}

}  // namespace bascule::python

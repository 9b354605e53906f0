// The emulated device calls bascule_python_call_site during driver calls, with or without the GIL. That function must
// not block forever, raise, or run finalizers.
#include "context/call_site.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include <bascule/runtime/driver/driver.hpp>
#include <bascule/runtime/driver/emulated_device.hpp>
#include <bascule/runtime/lifetime/lifetime.hpp>

#include "parts.hpp"
#include "support/interruption.hpp"
#include "support/without_gil.hpp"

namespace bascule::python {
namespace {

/// Takes the GIL in a thread that Python knows. An unknown thread has no frames to show, and a thread that requests the
/// GIL of an interpreter that is ending would never get it.
class KnownThread {
  public:
    KnownThread() noexcept {
        if (Py_IsInitialized() == 0 || PyGILState_GetThisThreadState() == nullptr) return;
        if (PyGILState_Check() != 0 || interpreter_lives()) acquired_.emplace();
    }
    KnownThread(KnownThread&&) = delete;
    explicit operator bool() const noexcept { return acquired_ && acquired_->held(); }

  private:
    std::optional<GilAcquired> acquired_;
};

/// Disables garbage collection: finalizers may free memory and launch, which is not allowed during a driver call. The
/// first of several threads disables it, and the last one enables it again.
class NoGarbageCollection {
  public:
    NoGarbageCollection() noexcept {
        const std::lock_guard lock(mutex_);
        if (inside_++ == 0) was_on_ = PyGC_Disable() != 0;
    }
    ~NoGarbageCollection() {
        const std::lock_guard lock(mutex_);
        if (--inside_ == 0 && was_on_) PyGC_Enable();
    }
    NoGarbageCollection(NoGarbageCollection&&) = delete;

  private:
    inline static GilMutex mutex_;  // guards the members below
    inline static int inside_ = 0;
    inline static bool was_on_ = false;
};

/// Facts about one place in one code object. The code object is kept, because its address is the key.
struct KnownPlace {
    py::object code;
    int instruction;
    LaunchSite site;
    bool ours;                                // in the package itself: the caller's place is used
    mutable std::atomic<int> one_tuple = -1;  // -1: not known yet

    KnownPlace(py::object its_code, int its_instruction, LaunchSite its_site, bool is_ours)
        : code(std::move(its_code)), instruction(its_instruction), site(its_site), ours(is_ours) {}
};

/// Whether a frame's module belongs to the package, such as "bascule._decorator".
bool is_ours(PyFrameObject* frame) {
    const auto globals = py::reinterpret_steal<py::dict>(PyFrame_GetGlobals(frame));
    const py::object name = globals.attr("get")("__name__", "");
    const std::string module = py::str(name);
    return module == "bascule" || module.starts_with("bascule.");
}

std::string describe_place(const py::object& code, int line) {
    const py::object file = code.attr("co_filename");
    const auto text =
        py::module_::import("linecache").attr("getline")(file, line).attr("strip")().cast<std::string>();
    return fmt::format("{}:{}{}", display_name(file), line, text.empty() ? "" : ": " + text);
}

/// Looks up the instruction that a frame executes. The results are never destroyed and never move.
const KnownPlace& look_up(PyFrameObject* frame) {
    static auto& known = *new std::map<std::pair<PyCodeObject*, int>, KnownPlace>;
    static GilMutex mutex;  // guards `known`
    const auto code = py::reinterpret_steal<py::object>(reinterpret_cast<PyObject*>(PyFrame_GetCode(frame)));
    const std::pair key(reinterpret_cast<PyCodeObject*>(code.ptr()), PyFrame_GetLasti(frame));
    {
        const std::lock_guard lock(mutex);
        if (const auto found = known.find(key); found != known.end()) return found->second;
    }
    const bool ours = is_ours(frame);
    const LaunchSite site =
        ours ? LaunchSite{} : LaunchSite::of(describe_place(code, PyFrame_GetLineNumber(frame)));
    const std::lock_guard lock(mutex);
    return known.try_emplace(key, code, key.second, site, ours).first->second;
}

/// The innermost place outside the package; null outside Python.
const KnownPlace* find_place() {
    auto frame = py::reinterpret_borrow<py::object>(reinterpret_cast<PyObject*>(PyEval_GetFrame()));
    while (frame) {
        auto* native = reinterpret_cast<PyFrameObject*>(frame.ptr());
        const KnownPlace& place = look_up(native);
        if (!place.ours) return &place;
        frame = py::reinterpret_steal<py::object>(reinterpret_cast<PyObject*>(PyFrame_GetBack(native)));
    }
    return nullptr;
}

CallSite call_at(const KnownPlace& place) {
    return {place.site, place_in(reinterpret_cast<PyCodeObject*>(place.code.ptr()), place.instruction)};
}

CallSite find_call() {
    const KnownPlace* place = find_place();
    return place == nullptr ? CallSite{} : call_at(*place);
}

/// Python passes the same key for x[(4, 4)] and x[4, 4]. Only the source text distinguishes them.
bool holds_one_tuple(const KnownPlace& place) {
    int known = place.one_tuple.load(std::memory_order_relaxed);
    if (known < 0) {
        const py::object read = py::module_::import("bascule._places").attr("holds_one_tuple");
        known = read(place.code, place.instruction).cast<bool>() ? 1 : 0;
        place.one_tuple.store(known, std::memory_order_relaxed);
    }
    return known == 1;
}

/// Looks up a place, or returns an empty one: a launch without a place is better than one that fails. Reading a line does
/// not raise, except for lack of memory or stack: what is raised there is a signal handler's, and the program gets it.
template <class LookUp>
std::invoke_result_t<LookUp> or_no_place(const LookUp& look_up) noexcept {
    try {
        return into_python(look_up);
    } catch (const py::error_already_set& error) {
        if (!error.matches(PyExc_MemoryError) && !error.matches(PyExc_RecursionError))
            keep_for_the_program(error);
    } catch (const std::exception&) {  // out of memory
    }
    return {};
}

extern "C" void bascule_python_call_site(char* text, std::size_t capacity) {
    if (capacity == 0) return;
    *text = '\0';
    const KnownThread thread;
    if (!thread) return;
    const NoGarbageCollection no_collection;
    const py::error_scope pending_exception;
    const std::string place = or_no_place([]() -> std::string { return find_call().site.place(); });
    const std::size_t length = std::min(place.size(), capacity - 1);
    std::memcpy(text, place.data(), length);
    text[length] = '\0';
}

}  // namespace

std::string display_name(const py::handle& file) {
    // Python code may release the GIL, and the end of the process then stops this thread there.
    const auto ipython = py::reinterpret_steal<py::object>(PyImport_GetModule(py::str("IPython").ptr()));
    if (!ipython) {
        if (PyErr_Occurred() != nullptr) throw py::error_already_set();
        auto name = py::str(file).cast<std::string>();
        // `python ./first.py` gives "DIRECTORY/./first.py".
        if (const std::size_t here = name.find("/./"); here != name.npos) name.erase(here, 2);
        return name;
    }
    return py::str(py::module_::import("bascule._places").attr("display")(file)).cast<std::string>();
}

CallSite current_call() noexcept { return or_no_place(&find_call); }

SubscriptSite current_subscript() noexcept {
    return or_no_place([]() -> SubscriptSite {
        const KnownPlace* place = find_place();
        return place == nullptr ? SubscriptSite{} : SubscriptSite{call_at(*place), holds_one_tuple(*place)};
    });
}

void report_call_sites() noexcept {
    const Driver* driver = Driver::existing();
    if (driver == nullptr || driver->emulated_functions() == nullptr) return;
    driver->emulated_functions()->set_site(&bascule_python_call_site);
}

void bind_debug(py::module_& module) {
    module.def("_owners_held", &owners_held);
    module.def("_synchronise_launches", &synchronise_launches, "on"_a);
}

}  // namespace bascule::python

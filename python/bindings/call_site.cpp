// Asked by the emulated device in the middle of a driver call, with or without the GIL: it must neither wait
// for ever, nor raise, nor run anybody's finalizers.
#include "call_site.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>
#include <pybind11/pybind11.h>

#include <bascule/runtime/driver.hpp>
#include <bascule/runtime/emulated_device.hpp>

#include "gil.hpp"
#include "without_gil.hpp"

namespace py = pybind11;

namespace bascule::python {
namespace {

/// The GIL for a thread that Python knows. A thread that it does not know has no frames to show; one that
/// asks for the lock of an interpreter that is ending would never get it.
class KnownThread {
  public:
    KnownThread() noexcept {
        if (Py_IsInitialized() == 0 || PyGILState_GetThisThreadState() == nullptr) return;
        if (PyGILState_Check() != 0 || interpreter_lives()) taken_.emplace();
    }
    KnownThread(const KnownThread&) = delete;
    KnownThread& operator=(const KnownThread&) = delete;
    explicit operator bool() const noexcept { return taken_ && taken_->held(); }

  private:
    std::optional<GilTaken> taken_;
};

/// Finalizers of garbage may free memory and launch: not in the middle of a driver call. The first of several
/// threads switches the collection off, the last one on again.
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
    NoGarbageCollection(const NoGarbageCollection&) = delete;
    NoGarbageCollection& operator=(const NoGarbageCollection&) = delete;

  private:
    inline static GilMutex mutex_;  // of what follows
    inline static int inside_ = 0;
    inline static bool was_on_ = false;
};

using Frame = py::object;

PyFrameObject* raw(const Frame& frame) noexcept { return reinterpret_cast<PyFrameObject*>(frame.ptr()); }

py::object code_of(const Frame& frame) {
    return py::reinterpret_steal<py::object>(reinterpret_cast<PyObject*>(PyFrame_GetCode(raw(frame))));
}

/// "…/bascule/": what lies below is ours. No static object that another thread would wait for: importing may
/// give the GIL up.
const std::string& package_directory() {
    static std::atomic<const std::string*> directory{nullptr};  // never destroyed
    if (const std::string* known = directory.load(std::memory_order_acquire)) return *known;
    const std::string file = py::str(py::module_::import("bascule").attr("__file__"));
    auto found = std::make_unique<const std::string>(file.substr(0, file.rfind('/') + 1));
    const std::string* first = nullptr;
    if (!directory.compare_exchange_strong(first, found.get(), std::memory_order_acq_rel)) return *first;
    return *found.release();
}

std::string shown_path(const std::string& file) {
    std::error_code failed;
    const std::string here = std::filesystem::current_path(failed).string() + "/";
    return !failed && file.rfind(here, 0) == 0 ? file.substr(here.size()) : file;
}

std::string describe(const py::object& code, int line) {
    const std::string file = py::str(code.attr("co_filename"));
    const py::object text = py::module_::import("linecache").attr("getline")(file, line).attr("strip")();
    std::string place = fmt::format("{}:{}", shown_path(file), line);
    if (py::len(text) != 0) place += ": " + std::string(py::str(text));
    return place;
}

struct Line {
    const void* code = nullptr;
    int number = 0;
    bool operator==(const Line&) const = default;
};

struct LineHash {
    std::size_t operator()(const Line& line) const noexcept {
        return std::hash<const void*>()(line.code) * 31 + static_cast<std::size_t>(line.number);
    }
};

/// Texts of lines met before: a launch in a loop reads its file once. Code objects are kept, so that an
/// address stays that of one.
struct Known {
    std::mutex mutex;  // for interpreters without a GIL; no Python runs while it is held
    std::unordered_map<Line, std::pair<py::object, std::string>, LineHash> texts;
};

Known& known() {
    static Known& made = *new Known;
    return made;
}

std::string text_of(const py::object& code, int number) {
    const Line line{code.ptr(), number};
    {
        const std::lock_guard lock(known().mutex);
        const auto found = known().texts.find(line);
        if (found != known().texts.end()) return found->second.second;
    }
    std::string text = describe(code, number);
    constexpr std::size_t most = 1 << 16;
    const std::lock_guard lock(known().mutex);
    if (known().texts.size() < most) known().texts.try_emplace(line, code, text);
    return text;
}

/// The innermost place outside the package.
std::string current_place() {
    const std::string& ours = package_directory();
    auto frame = py::reinterpret_borrow<Frame>(reinterpret_cast<PyObject*>(PyEval_GetFrame()));
    while (frame) {
        const py::object code = code_of(frame);
        const std::string file = py::str(code.attr("co_filename"));
        if (file.rfind(ours, 0) != 0) return text_of(code, PyFrame_GetLineNumber(raw(frame)));
        frame = py::reinterpret_steal<Frame>(reinterpret_cast<PyObject*>(PyFrame_GetBack(raw(frame))));
    }
    return "";
}

extern "C" void bascule_python_call_site(char* text, std::size_t capacity) {
    if (capacity == 0) return;
    *text = '\0';
    const KnownThread thread;
    if (!thread) return;
    const NoGarbageCollection undisturbed;
    const py::error_scope whatever_is_being_raised;
    try {
        const std::string place = current_place();
        const std::size_t length = std::min(place.size(), capacity - 1);
        std::memcpy(text, place.data(), length);
        text[length] = '\0';
    } catch (const abi::__forced_unwind&) {  // the interpreter ends meanwhile
        stop_this_thread();
    } catch (...) {  // a file that cannot be read, no memory: the report names no place
        PyErr_Clear();
    }
}

}  // namespace

void tell_call_sites() noexcept {
    const Driver* driver = Driver::existing();
    if (driver == nullptr || driver->emulated_functions() == nullptr) return;
    driver->emulated_functions()->set_site(&bascule_python_call_site);
}

}  // namespace bascule::python

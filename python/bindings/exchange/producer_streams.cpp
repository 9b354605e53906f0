// What a type is, is asked of bascule/_producers.py once; after that it is one comparison.
#include "exchange/producer_streams.hpp"

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include <bascule/interface/errors/error.hpp>

#include "context/stream_object.hpp"
#include "exchange/dlpack_exchange.hpp"
#include "support/names.hpp"
#include "support/without_gil.hpp"

namespace py = pybind11;
using namespace py::literals;

namespace bascule::python {
namespace {

std::atomic<bool> asks_libraries{true};

/// How arrays of one type are ordered: _producers.py gives a pair (how, function).
struct Policy {
    enum class How : std::uint8_t { nothing, library, registered, dlpack };
    How how = How::nothing;
    py::object function{};
};

/// The policies of types, each in one state of it, as dlpack_exchange.cpp remembers them. References are
/// given up outside of the lock: that may run any code.
class Remembered {
  public:
    std::optional<Policy> find(PyTypeObject* type) {
        const std::lock_guard lock(mutex_);
        const Entry& entry = place_of(type);
        if (entry.type != type || entry.tag != version_tag(type)) return std::nullopt;
        return entry.policy;
    }

    /// How often everything was forgotten: what was found out before that is not remembered.
    std::uint64_t times_forgotten() {
        const std::lock_guard lock(mutex_);
        return forgotten_;
    }

    void keep(PyTypeObject* type, unsigned int tag, const Policy& policy, std::uint64_t times_forgotten) {
        Entry entry{type, tag, policy};
        const std::lock_guard lock(mutex_);
        if (times_forgotten == forgotten_) std::swap(place_of(type), entry);
    }

    void forget() {
        Entries entries;
        const std::lock_guard lock(mutex_);
        ++forgotten_;
        entries_.swap(entries);
    }

  private:
    struct Entry {
        PyTypeObject* type = nullptr;
        unsigned int tag = 0;
        Policy policy{};
    };
    using Entries = std::array<Entry, 64>;

    Entry& place_of(PyTypeObject* type) noexcept {
        const auto address = reinterpret_cast<std::uintptr_t>(type);
        return entries_[(address >> 4 ^ address >> 12) % entries_.size()];
    }

    GilMutex mutex_;
    Entries entries_;
    std::uint64_t forgotten_ = 0;
};

/// Never destroyed.
Remembered& remembered() {
    static auto* made = new Remembered;
    return *made;
}

Policy look_up(PyTypeObject* type) {
    const py::tuple pair = py::module_::import("bascule._producers")
                               .attr("policy_of")(py::handle(reinterpret_cast<PyObject*>(type)));
    const std::string how = py::str(pair[0]);
    Policy policy;
    policy.how = how == "library"      ? Policy::How::library
                 : how == "registered" ? Policy::How::registered
                 : how == "dlpack"     ? Policy::How::dlpack
                                       : Policy::How::nothing;
    policy.function = pair[1];
    return policy;
}

Policy policy_of(PyTypeObject* type) {
    if (auto known = remembered().find(type)) [[likely]]
        return *std::move(known);
    const std::uint64_t times_forgotten = remembered().times_forgotten();
    const unsigned int before = version_tag(type);
    Policy policy = look_up(type);
    if (before != 0 && version_tag(type) == before) remembered().keep(type, before, policy, times_forgotten);
    return policy;
}

void name_stream(ArrayView& view, StreamRef stream, Device home, StreamSource source) {
    view.has_stream = true;
    view.stream = stream.handle();
    view.device = stream.device() == home ? view.device : stream.device().ordinal();
    view.stream_source = source;
}

}  // namespace

py::object find_stream(PyObject* object, Device home, StreamRef consumer, ArrayView& view) {
    view.stream_source = StreamSource::unsaid;
    if (!asks_libraries.load(std::memory_order_relaxed)) return {};
    if (order_by_table(Py_TYPE(object), home, view)) {
        view.stream_source = StreamSource::table;
        return {};
    }
    const Policy policy = policy_of(Py_TYPE(object));
    switch (policy.how) {
        case Policy::How::nothing:
            return {};
        case Policy::How::dlpack: {
            py::object capsule = py::handle(object).attr("__dlpack__")("stream"_a = consumer.handle());
            name_stream(view, consumer, home, StreamSource::dlpack);
            return capsule;
        }
        case Policy::How::library:
        case Policy::How::registered:
            break;
    }
    py::object answer = policy.function(py::handle(object), home.ordinal());
    const bool registered = policy.how == Policy::How::registered;
    if (answer.is_none()) return {};
    // 0 is what libraries call the driver's null stream.
    const bool null = PyLong_CheckExact(answer.ptr()) != 0 && answer.equal(py::int_(0));
    const StreamRef stream = null ? StreamRef::legacy_default(home) : *to_stream(answer, home);
    name_stream(view, stream, home, registered ? StreamSource::registered : StreamSource::library);
    return answer;
}

void bind_producer_streams(py::module_& module) {
    module.def(
        "_forget_producers", [] { remembered().forget(); },
        "What was found for types is asked again: another one was registered.");
    module.def(
        "_ask_libraries", [](bool ask) { asks_libraries.store(ask, std::memory_order_relaxed); },
        py::arg("ask").noconvert());
}

}  // namespace bascule::python

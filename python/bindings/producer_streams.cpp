// What a type is, is asked of bascule/_producers.py once; after that it is one comparison.
#include "producer_streams.hpp"

#include <array>
#include <atomic>
#include <string>

#include <fmt/format.h>

#include <bascule/interface/error.hpp>

#include "dlpack_exchange.hpp"
#include "names.hpp"
#include "stream_object.hpp"

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

/// Of a type in one state of it, as dlpack_exchange.cpp remembers them. Guarded by the GIL; never destroyed.
struct Remembered {
    PyTypeObject* type = nullptr;
    unsigned int tag = 0;
    Policy policy;
};

std::array<Remembered, 64>& remembered() {
    static auto* made = new std::array<Remembered, 64>;
    return *made;
}

Remembered& place_of(PyTypeObject* type) {
    const auto address = reinterpret_cast<std::uintptr_t>(type);
    return remembered()[(address >> 4 ^ address >> 12) % remembered().size()];
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
    const Remembered& known = place_of(type);
    if (known.type == type && known.tag == type->tp_version_tag) [[likely]]
        return known.policy;
    const unsigned int before = type->tp_version_tag;
    Policy policy = look_up(type);
    if (before != 0 && type->tp_version_tag == before) place_of(type) = {type, before, policy};
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
    const py::object answer = policy.function(py::handle(object), home.ordinal());
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
        "_forget_producers", [] { remembered().fill({}); },
        "What was found for types is asked again: another one was registered.");
    module.def(
        "_ask_libraries", [](bool ask) { asks_libraries.store(ask, std::memory_order_relaxed); },
        py::arg("ask").noconvert());
}

}  // namespace bascule::python

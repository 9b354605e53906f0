// bascule/_producers.py is asked once per type; later look-ups take one comparison.
#include "exchange/producer_streams.hpp"

#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "context/stream_object.hpp"
#include "exchange/dlpack_exchange.hpp"
#include "parts.hpp"
#include "support/without_gil.hpp"

namespace bascule::python {

/// How arrays of a type that names no stream are ordered: _producers.py gives a pair (how, function).
struct ProducerPolicy {
    enum class How : std::uint8_t { nothing, library, registered, dlpack };
    How how = How::nothing;
    py::object function{};
};

namespace {

std::atomic<bool> asks_libraries{true};

/// Counts registrations. What was found before the last one is looked up again.
std::atomic<std::uint32_t> registrations{0};

/// Stores each policy once. Policies are never destroyed, because a launch may be reading one.
const ProducerPolicy* keep(ProducerPolicy policy) {
    static auto& kept = *new std::vector<std::unique_ptr<const ProducerPolicy>>;
    static GilMutex mutex;  // guards `kept`
    auto made = std::make_unique<const ProducerPolicy>(std::move(policy));
    const std::lock_guard lock(mutex);
    for (const auto& each : kept) {
        if (each->how == made->how && each->function.is(made->function)) return each.get();
    }
    return kept.emplace_back(std::move(made)).get();
}

const ProducerPolicy* look_up_policy(PyTypeObject* type) {
    const py::tuple pair = py::module_::import("bascule._producers")
                               .attr("policy_of")(py::handle(reinterpret_cast<PyObject*>(type)));
    const std::string how = py::str(pair[0]);
    ProducerPolicy policy{.function = pair[1]};
    policy.how = how == "library"      ? ProducerPolicy::How::library
                 : how == "registered" ? ProducerPolicy::How::registered
                 : how == "dlpack"     ? ProducerPolicy::How::dlpack
                                       : ProducerPolicy::How::nothing;
    return keep(std::move(policy));
}

const ProducerPolicy& policy_of(PyTypeObject* type, const TypeProfile& profile) {
    const std::uint32_t generation = registrations.load();
    if (profile.policy != nullptr && profile.policy_generation == generation) [[likely]]
        return *profile.policy;
    const unsigned int tag = version_tag(type);
    const ProducerPolicy* policy = look_up_policy(type);
    if (tag != 0) remember_policy(type, tag, policy, generation);
    return *policy;
}

void name_stream(ArrayView& view, StreamRef stream, Device home, StreamSource source) {
    view.stream.handle = stream.handle();
    if (!(stream.device() == home)) view.stream.device = stream.device().ordinal();
    view.stream.source = source;
}

}  // namespace

py::object find_stream(PyObject* object, Device home, StreamRef consumer, ArrayView& view) {
    view.stream.source = StreamSource::unsaid;
    if (!asks_libraries.load(std::memory_order_relaxed)) return {};
    const TypeProfile profile = profile_of(Py_TYPE(object));
    if (order_by_table(profile, home, view)) return {};
    const ProducerPolicy& policy = policy_of(Py_TYPE(object), profile);
    switch (policy.how) {
        case ProducerPolicy::How::nothing:
            return {};
        case ProducerPolicy::How::dlpack: {
            give_out_handle(consumer);
            py::object capsule = py::handle(object).attr("__dlpack__")("stream"_a = consumer.handle());
            name_stream(view, consumer, home, StreamSource::dlpack);
            return capsule;
        }
        case ProducerPolicy::How::library:
        case ProducerPolicy::How::registered:
            break;
    }
    py::object answer = policy.function(py::handle(object), home.ordinal());
    const bool registered = policy.how == ProducerPolicy::How::registered;
    if (answer.is_none()) return {};
    // Libraries use 0 for the driver's null stream.
    const bool null = PyLong_CheckExact(answer.ptr()) != 0 && answer.equal(py::int_(0));
    const StreamRef stream = null ? StreamRef::legacy_default(home) : *to_stream(answer, home);
    name_stream(view, stream, home, registered ? StreamSource::registered : StreamSource::library);
    return answer;
}

void bind_producer_streams(py::module_& module) {
    module.def(
        "_forget_producers", [] { registrations.fetch_add(1); },
        "After a registration, makes every type be looked up again.");
    module.def(
        "_ask_libraries", [](bool ask) { asks_libraries.store(ask, std::memory_order_relaxed); },
        py::arg("ask").noconvert());
    module.def(
        "_set_interface_sync", [](bool on) { detail::interface_syncs.store(on); }, "on"_a);
}

}  // namespace bascule::python

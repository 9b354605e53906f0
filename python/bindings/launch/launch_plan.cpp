#include "launch/launch_plan.hpp"

#include <bascule/interface/errors/rejection.hpp>

#include "context/current_stream.hpp"
#include "context/device_object.hpp"
#include "context/stream_object.hpp"
#include "support/without_gil.hpp"

namespace bascule::python {

LaunchPlan to_plan(LaunchConfig config, const py::object& stream) {
    const Device device = current_device();
    return {config, {}, 0, to_stream(stream, device), stream};
}

LaunchStart start_of(const LaunchPlan& plan) {
    if (plan.stream) return {plan.stream->device(), plan.stream};
    if (anything_entered()) [[unlikely]] {
        if (const std::optional<StreamRef> entered = innermost_stream()) return {entered->device(), entered};
    }
    return {current_device(), std::nullopt};
}

std::optional<StreamRef> current_for(const LaunchPlan& plan, Device device) {
    if (!anything_entered() || plan.stream) [[likely]]
        return std::nullopt;
    const std::optional<StreamRef> current = current_stream(device);
    if (current) require_device(*current, device, "launch");
    return current;
}

namespace {

bool to_flag(const py::object& value, const char* option) {
    if (PyBool_Check(value.ptr()) != 0) return value.ptr() == Py_True;
    reject_field(ErrorKind::type, option, "`{}` must be True or False, got {}.", option,
                 std::string(py::repr(value)));
}

py::dict to_dict(const py::object& streams) {
    if (!py::isinstance<py::dict>(streams)) {
        reject_field(ErrorKind::type, "streams",
                     "`streams` must be a dict from parameters to streams, such as {{\"x\": stream}}, got "
                     "{}.",
                     std::string(py::repr(streams)));
    }
    return copy_of(streams);
}

std::vector<std::pair<std::string, StreamRef>> to_streams(const py::dict& streams) {
    std::vector<std::pair<std::string, StreamRef>> named;
    for (const auto& [name, stream] : streams) {
        const std::string parameter = py::str(name);
        if (stream.is_none()) {
            reject_field(ErrorKind::value, "streams",
                         "`streams` names None for parameter '{}': omit it where there is nothing to wait "
                         "for, or register its type with bascule.register_producer(cls, stream_of=\"spec\").",
                         parameter);
        }
        named.emplace_back(parameter, *to_stream(stream, current_device()));
    }
    return named;
}

}  // namespace

const StreamRef* LaunchOptions::stream_of(const std::string& parameter) const noexcept {
    const auto named = std::ranges::find(streams, parameter, &std::pair<std::string, StreamRef>::first);
    return named == streams.end() ? nullptr : &named->second;
}

std::shared_ptr<const LaunchOptions> to_options(const std::shared_ptr<const LaunchOptions>& base,
                                                const py::object& peer, const py::object& sync,
                                                const py::object& streams) {
    LaunchOptions options = base == nullptr ? LaunchOptions{} : *base;
    if (!peer.is_none()) options.peer = to_flag(peer, "peer");
    if (!sync.is_none()) options.sync = to_flag(sync, "sync");
    if (!streams.is_none()) {
        const py::dict own = to_dict(streams);  // a copy: no other code changes it
        options.streams = to_streams(own);
        options.kept = own;
    }
    const bool usual = !options.peer && options.sync && options.streams.empty();
    return usual ? nullptr : std::make_shared<const LaunchOptions>(std::move(options));
}

void prepare_pack(ArgumentPack& pack, const LaunchOptions* options) {
    if (options != nullptr && !options->sync) pack.ignore_streams();
}

void add_named_streams(ArgumentPack& pack, const LaunchOptions* options, Device home) {
    if (options == nullptr) return;
    for (const auto& [name, stream] : options->streams) {
        const int index = pack.signature().find(name);
        if (index < 0) {
            reject(ErrorKind::value, {.field = "streams", .got = name},
                   "`streams` names '{}', and kernel '{}' has no such parameter: {}", name,
                   pack.signature().kernel, bascule::to_string(pack.signature()));
        }
        if (options->sync) pack.add_producer(producer_stream(stream, home, StreamSource::call), index);
    }
}

}  // namespace bascule::python

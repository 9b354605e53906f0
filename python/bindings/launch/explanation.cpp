// The facts are found here, by the functions that a launch calls; the sentences are made in _explain.py.
#include "launch/explanation.hpp"

#include <string>

#include <fmt/format.h>
#include <pybind11/stl.h>

#include <bascule/interface/errors/error.hpp>
#include <bascule/runtime/driver/pointer_attributes.hpp>
#include <bascule/runtime/streams/ordering.hpp>

#include "arrays/array_object.hpp"
#include "context/device_object.hpp"
#include "context/stream_object.hpp"
#include "exchange/interface_reader.hpp"
#include "launch/owners.hpp"

namespace py = pybind11;
using namespace py::literals;

namespace bascule::python {
namespace {

/// As _explain.py calls them.
const char* name_of(StreamChoice choice) noexcept {
    switch (choice) {
        case StreamChoice::given:
            return "given";
        case StreamChoice::current:
            return "current";
        case StreamChoice::common_producer:
            return "common";
        case StreamChoice::device_default:
            break;
    }
    return "default";
}

const char* name_of(StreamSource source) noexcept {
    switch (source) {
        case StreamSource::interface:
            return "interface";
        case StreamSource::unsaid:
            return "unsaid";
        case StreamSource::table:
            return "table";
        case StreamSource::library:
            return "library";
        case StreamSource::registered:
            return "registered";
        case StreamSource::dlpack:
            return "dlpack";
        case StreamSource::call:
            return "call";
        case StreamSource::ignored:
            break;
    }
    return "ignored";
}

/// Which memory it is, and whose.
std::string place_of(const ArrayView& view, Device home) {
    if (view.empty()) return "no memory: it is empty";
    const std::optional<PointerAttributes> memory = pointer_attributes(view.pointer, home);
    if (!memory) return "host memory";
    return fmt::format("{} memory of {}", bascule::to_string(memory->kind),
                       to_string(Device(memory->device)));
}

/// What an array's stream means for the launch: `producers` are those of the pack, which the launch waits
/// for.
py::dict order_of(const ArrayView& view, bool own, int index, std::span<const Producer> producers,
                  StreamRef stream) {
    py::dict order;
    order["source"] = own ? (view.has_stream ? "bound" : "ignored") : name_of(view.stream_source);
    order["stream"] = py::none();
    order["means"] = "nothing";
    if (!view.has_stream) return order;
    const Producer producer{view.stream, index, view.device};
    order["stream"] = describe(stream_of(producer, stream));
    bool joined = false;
    for (const Producer& other : producers) {
        if (other.stream != producer.stream || other.device != producer.device) continue;
        joined = true;
        order["with"] = other.argument;
    }
    order["means"] = !joined ? "unordered" : needs_wait(producer, stream) ? "wait" : "same";
    return order;
}

py::list arguments_of(const Signature& signature, std::span<PyObject*> objects,
                      std::span<const ArgumentValue> values, std::span<const Producer> producers,
                      StreamRef stream) {
    py::list list;
    for (std::size_t i = 0; i < values.size(); ++i) {
        const Parameter& parameter = signature.parameters[i];
        py::dict argument("index"_a = i, "name"_a = parameter.name, "declared"_a = parameter.spelling);
        if (const auto* view = std::get_if<ArrayView>(&values[i])) {
            const bool own = as_array(objects[i]) != nullptr;
            argument["value"] = fmt::format("{} ({})", describe(*view), Py_TYPE(objects[i])->tp_name);
            argument["place"] = place_of(*view, stream.device());
            argument["order"] = order_of(*view, own, static_cast<int>(i), producers, stream);
        } else {
            argument["value"] = shown(objects[i]);
            argument["place"] = py::none();
            argument["order"] = py::none();
        }
        list.append(argument);
    }
    return list;
}

/// The streams that the launch waits for and that wait for it, each with the arguments that name it first.
py::list waits_of(std::span<const Producer> producers, StreamRef stream) {
    py::list waits;
    for (const Producer& producer : producers) {
        if (!needs_wait(producer, stream)) continue;
        waits.append(py::make_tuple(describe(stream_of(producer, stream)), producer.argument));
    }
    return waits;
}

py::object extents(Dim3 size) { return py::make_tuple(size.x, size.y, size.z); }

}  // namespace

py::object explain_launch(const Kernel& kernel, const LaunchPlan& plan, const CallArguments& arguments) {
    const Beginning from = beginning_of(plan);
    const Kernel settled = settle(kernel, from.device);
    OwnerList owners;
    ArgumentReader reader(from.device, owners, from.stream, plan.options.get());
    Slots<ArgumentValue> values(arguments.count());
    Slots<PyObject*> objects(arguments.count());
    const Signature& declared = settled.is_function() ? load(settled, from.device).image->signature
                                                      : settled.declared(arguments.count());
    order_arguments(declared, arguments.objects, arguments.positional, arguments.keywords, objects.span());
    for (std::size_t i = 0; i < arguments.count(); ++i) {
        values.span()[i] = reader.read(objects.span()[i], static_cast<int>(i), declared.parameters[i]);
    }
    const Device device = reader.device();
    const Kernel function = settled.is_function() ? settled : choose(settled, values.span(), device);
    const LoadedKernel& loaded = load(function, device);
    ArgumentPack pack(loaded.image->signature);
    prepare_pack(pack, plan.options.get());
    set_all(pack, values.span());
    compare_structures(function, pack, device);
    add_named_streams(pack, plan.options.get(), device);

    const std::optional<StreamRef> current = current_for(plan, device);
    const StreamRef stream = choose_stream(plan.stream, current, pack.common_stream(), device);
    py::dict facts("kernel"_a = function.expression(), "signature"_a = bascule::to_string(pack.signature()),
                   "device"_a = to_string(device), "stream"_a = describe(stream),
                   "_stream"_a = StreamObject{nullptr, stream, plan.stream_object},
                   "choice"_a = name_of(how_chosen(plan.stream, current, pack.common_stream())),
                   "grid"_a = py::none(), "block"_a = py::none(), "shared_bytes"_a = 0,
                   "work"_a = py::tuple(py::cast(plan.work)));
    if (plan.configured && !plan.empty()) {
        const LaunchConfig config = plan.work.empty()
                                        ? plan.config
                                        : function.configuration_for(device, plan.work, plan.shared_bytes);
        check(config, loaded.limits);
        facts["grid"] = extents(config.grid);
        facts["block"] = extents(config.block);
        facts["shared_bytes"] = config.shared_bytes;
    }
    facts["arguments"] =
        arguments_of(pack.signature(), objects.span(), values.span(), pack.producers(), stream);
    facts["waits"] = waits_of(pack.producers(), stream);
    return py::module_::import("bascule._explain").attr("explanation")(**facts);
}

}  // namespace bascule::python

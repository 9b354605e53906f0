// The facts are found here, by the functions that a launch calls; the sentences are made in _explain.py.
#include "launch/explanation.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <bascule/runtime/driver/pointer_attributes.hpp>
#include <bascule/runtime/streams/ordering.hpp>

#include "arrays/array_object.hpp"
#include "context/device_object.hpp"
#include "context/stream_object.hpp"
#include "launch/known_launchers.hpp"
#include "textures/tensor_map_object.hpp"
#include "textures/texture_object.hpp"
#include "values/launch_config.hpp"

namespace bascule::python {
namespace {

/// The names that _explain.py uses.
constexpr std::pair<StreamChoice, const char*> choices[] = {
    {StreamChoice::given, "given"},
    {StreamChoice::current, "current"},
    {StreamChoice::common_producer, "common"},
    {StreamChoice::device_default, "default"},
};
constexpr std::pair<StreamSource, const char*> sources[] = {
    {StreamSource::interface, "interface"}, {StreamSource::own, "interface"},
    {StreamSource::unsaid, "unsaid"},       {StreamSource::table, "table"},
    {StreamSource::library, "library"},     {StreamSource::registered, "registered"},
    {StreamSource::dlpack, "dlpack"},       {StreamSource::call, "call"},
    {StreamSource::ignored, "ignored"},
};

template <class Table, class Value>
const char* name_in(const Table& table, Value value) {
    return std::ranges::find(table, value, [](const auto& row) { return row.first; })->second;
}

/// Describes the kind and the device of an array's memory.
std::string place_of(const ArrayView& view, Device home) {
    if (view.empty()) return "no memory: it is empty";
    const auto memory = without_gil([&] { return pointer_attributes(view.pointer, home); });
    if (!memory) return "host memory";
    return fmt::format("{} memory of {}", bascule::to_string(memory->kind),
                       to_string(device_with(memory->device)));
}

/// Returns how the launch is ordered with an array. `producers` are the pack's, for which the launch waits.
py::dict order_of(const ArrayView& view, bool own, int index, std::span<const Producer> producers,
                  StreamRef stream) {
    py::dict order;
    order["source"] = own ? (view.stream ? "bound" : "ignored") : name_in(sources, view.stream.source);
    order["stream"] = py::none();
    order["means"] = "nothing";
    if (!view.stream) return order;
    const Producer producer{view.stream, index};
    order["stream"] = describe(stream_of(producer, stream));
    const bool joined = std::ranges::any_of(
        producers, [&](const Producer& other) { return other.stream.same_stream(view.stream); });
    order["means"] = !joined ? "unordered" : needs_wait(producer, stream) ? "wait" : "same";
    return order;
}

/// The array that an argument is, or that it was made of.
struct ArrayPart {
    const ArrayView* view = nullptr;  // null: the argument has no array
    PyObject* array = nullptr;
    std::string value;  // the argument in words
};

ArrayPart array_part(const ArgumentValue& value, PyObject* object) {
    if (const auto* view = std::get_if<ArrayView>(&value))
        return {view, object, fmt::format("{} ({})", describe(*view), Py_TYPE(object)->tp_name)};
    if (const auto* map = std::get_if<TensorMapArgument>(&value)) {
        const TensorMapObject& made = *as_tensor_map(object);
        return {&map->array, made.array.ptr(), "the tensor map of " + made.describe()};
    }
    if (const auto* image = std::get_if<ImageArgument>(&value)) {
        const ImageReference made = as_image(object);
        return {
            &image->array, made.array,
            fmt::format("the {} of {}", image->is_surface ? "surface" : "texture", made.source->description)};
    }
    return {};
}

py::list arguments_of(const Signature& signature, std::span<PyObject*> objects,
                      std::span<const ArgumentValue> values, std::span<const Producer> producers,
                      StreamRef stream) {
    py::list list;
    for (std::size_t i = 0; i < values.size(); ++i) {
        const Parameter& parameter = signature.parameters[i];
        py::dict argument("index"_a = i, "name"_a = parameter.name, "declared"_a = parameter.spelling,
                          "place"_a = py::none(), "order"_a = py::none());
        const ArrayPart part = array_part(values[i], objects[i]);
        if (part.view != nullptr) {
            const ArrayView& view = *part.view;
            const bool own = as_array(part.array) != nullptr || as_cuda_array_object(part.array) != nullptr;
            argument["value"] = part.value;
            argument["place"] = as_cuda_array_object(part.array) != nullptr ? std::string("a CUDA array")
                                                                            : place_of(view, stream.device());
            argument["order"] = order_of(view, own, static_cast<int>(i), producers, stream);
        } else {
            argument["value"] = safe_repr(objects[i]);
        }
        list.append(argument);
    }
    return list;
}

/// The streams that the launch waits for and that wait for it, each with the index of the first argument that names it.
py::list waits_of(std::span<const Producer> producers, StreamRef stream) {
    py::list waits;
    for (const Producer& producer : producers) {
        if (!needs_wait(producer, stream)) continue;
        waits.append(py::make_tuple(describe(stream_of(producer, stream)), producer.argument));
    }
    return waits;
}

}  // namespace

py::object explain_launch(LaunchState& state, const CallArguments& arguments) {
    const LaunchPlan& plan = state.plan;
    ReadArguments read(arguments.count());
    const PreparedLaunch prepared(state, arguments, &read);
    const ArgumentPack& pack = prepared.pack();
    const StreamRef stream = prepared.stream();
    const StreamChoice choice =
        how_chosen(plan.stream, current_for(plan, prepared.device()), pack.common_stream());
    py::dict facts("kernel"_a = prepared.function().expression(),
                   "signature"_a = bascule::to_string(pack.signature()),
                   "device"_a = to_string(prepared.device()), "stream"_a = describe(stream),
                   "_stream"_a = StreamObject{nullptr, stream, state.stream_object()},
                   "choice"_a = name_in(choices, choice), "grid"_a = py::none(), "block"_a = py::none(),
                   "shared_bytes"_a = 0, "work"_a = py::tuple(py::cast(plan.work)));
    if (state.launches) {
        facts["grid"] = to_tuple(prepared.config().grid);
        facts["block"] = to_tuple(prepared.config().block);
        facts["shared_bytes"] = prepared.config().shared_bytes.value;
    }
    facts["arguments"] =
        arguments_of(pack.signature(), read.objects.span(), read.values.span(), pack.producers(), stream);
    facts["waits"] = waits_of(pack.producers(), stream);
    return py::module_::import("bascule._explain").attr("explanation")(**facts);
}

py::dict launch_facts(const LaunchState& state, const Kernel& kernel, const LaunchConfig* config) {
    const LaunchPlan& plan = state.plan;
    const LaunchOptions options = plan.options != nullptr ? *plan.options : LaunchOptions{};
    if (config == nullptr && plan.configured && plan.work.empty()) config = &plan.config;
    py::list streams;
    for (const auto& [parameter, stream] : options.streams)
        streams.append(py::make_tuple(parameter, describe(stream)));
    return py::dict("kernel"_a = KernelObject{kernel},
                    "config"_a = config != nullptr ? std::optional(*config) : std::nullopt,
                    "work"_a = py::tuple(py::cast(plan.work)), "shared_bytes"_a = plan.shared_bytes,
                    "stream"_a = plan.stream ? std::optional(describe(*plan.stream)) : std::nullopt,
                    "peer"_a = options.peer, "sync"_a = options.sync, "streams"_a = streams);
}

}  // namespace bascule::python

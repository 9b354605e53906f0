#include "launch/call_arguments.hpp"

#include <bascule/runtime/streams/capture.hpp>

#include "context/current_stream.hpp"
#include "context/device_object.hpp"
#include "support/errors.hpp"
#include "support/gil.hpp"
#include "support/toolkit.hpp"

namespace py = pybind11;

namespace bascule::python {

const LoadedKernel& load(const Kernel& kernel, Device device, std::optional<StreamRef> stream) {
    if (const LoadedKernel* hit = kernel.existing(device)) return *hit;
    require_loadable(stream ? stream : current_stream(device), kernel.name());
    prepare_toolkit();
    const LoadedKernel* loaded = nullptr;
    {
        const GilReleased released;
        loaded = &kernel.loaded(device);
    }
    issue_compile_warnings(loaded->library->image(), kernel.module().source());
    return *loaded;
}

Kernel settle(const Kernel& kernel, Device device) {
    if (kernel.is_function()) return kernel;
    prepare_toolkit();
    const GilReleased released;
    return kernel.resolve_function(device);
}

void read_arguments(ArgumentPack& pack, ArgumentReader& reader, const CallArguments& arguments) {
    const Signature& signature = pack.signature();
    if (arguments.keywords == nullptr) {
        ArgumentPack::check_count(signature, arguments.count());
        for (int i = 0; i < static_cast<int>(arguments.positional); ++i) {
            reader.read_into(pack, i, arguments.objects[i]);
        }
        return;
    }
    Slots<PyObject*> slots(signature.parameters.size());
    order_arguments(signature, arguments.objects, arguments.positional, arguments.keywords, slots.span());
    int index = 0;
    for (PyObject* argument : slots.span()) reader.read_into(pack, index++, argument);
}

void read_arguments(const Kernel& kernel, ArgumentReader& reader, const CallArguments& arguments,
                    std::span<ArgumentValue> values) {
    const Signature& declared = kernel.declared(arguments.count());
    Slots<PyObject*> slots(values.size());
    order_arguments(declared, arguments.objects, arguments.positional, arguments.keywords, slots.span());
    for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] = reader.read(slots.span()[i], static_cast<int>(i), declared.parameters[i]);
    }
}

Kernel choose(const Kernel& kernel, std::span<const ArgumentValue> values, Device device) {
    if (auto known = kernel.known_for_arguments(values)) return *known;
    prepare_toolkit();
    const GilReleased released;
    return kernel.for_arguments(values, device);
}

void set_all(ArgumentPack& pack, std::span<const ArgumentValue> values) {
    ArgumentPack::check_count(pack.signature(), values.size());
    for (std::size_t i = 0; i < values.size(); ++i) pack.set(static_cast<int>(i), values[i]);
}

void compare_structures(const Kernel& kernel, const ArgumentPack& pack, Device device) {
    if (pack.layout_claims().empty()) [[likely]]
        return;
    const GilReleased released;
    kernel.check_layouts(pack, device);
}

Kernel check_arguments(const Kernel& kernel, const CallArguments& arguments) {
    const Device device = current_device();
    OwnerList owners;
    ArgumentReader reader(device, owners);
    Kernel function = settle(kernel, device);
    if (function.is_function()) {
        ArgumentPack pack(load(function, device).image->signature);
        read_arguments(pack, reader, arguments);
        load(function, reader.device());
        compare_structures(function, pack, reader.device());
        return function;
    }
    Slots<ArgumentValue> values(arguments.count());
    read_arguments(kernel, reader, arguments, values.span());
    function = choose(kernel, values.span(), reader.device());
    ArgumentPack pack(load(function, reader.device()).image->signature);
    set_all(pack, values.span());
    compare_structures(function, pack, reader.device());
    return function;
}

}  // namespace bascule::python

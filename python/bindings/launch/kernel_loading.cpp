#include "launch/kernel_loading.hpp"

#include <bascule/runtime/kernels/library.hpp>
#include <bascule/runtime/streams/stream_capture.hpp>

#include "context/current_stream.hpp"
#include "support/errors.hpp"
#include "support/gil.hpp"
#include "support/toolkit.hpp"

namespace bascule::python {

Kernel resolve_function(const Kernel& kernel, Device device) {
    if (kernel.is_resolved()) return kernel;
    prepare_toolkit();
    const GilReleased released;
    return kernel.resolve_function(device);
}

Kernel choose_function(const Kernel& kernel, std::span<const ArgumentValue> values, Device device) {
    if (auto known = kernel.known_for_arguments(values)) return *known;
    prepare_toolkit();
    const GilReleased released;
    return kernel.for_arguments(values, device);
}

KernelImage compile(const Kernel& function, Device device) {
    prepare_toolkit();
    const Arch arch = function.module().options().arch.value_or(device.arch());
    const GilReleased released;
    return function.image(arch);
}

const LoadedKernel& load(const Kernel& function, Device device, std::optional<StreamRef> stream) {
    if (const LoadedKernel* hit = function.existing(device)) return *hit;
    if (!stream) stream = current_stream(device);
    without_gil([&] { require_loadable(stream, function.name()); });
    prepare_toolkit();
    const LoadedKernel* const loaded = without_gil([&] { return &function.loaded(device); });
    issue_compile_warnings(loaded->library->image(), function.module().source());
    return *loaded;
}

}  // namespace bascule::python

#include "emulated_object.hpp"

#include <string>
#include <vector>

#include <bascule/interface/error.hpp>
#include <bascule/runtime/driver.hpp>
#include <bascule/runtime/emulated_device.hpp>

#include "device_object.hpp"

namespace py = pybind11;

namespace bascule::python {
namespace {

const EmulatedFunctions& functions() {
    current_device();
    const EmulatedFunctions* emulated = Driver::get().emulated_functions();
    if (emulated == nullptr) {
        throw LibraryError("kernels run on a GPU, which records no operations. Set BASCULE_DEVICE=emulated.",
                           {.library = "emulated device", .paths_tried = {}, .loader_message = {}});
    }
    return *emulated;
}

const char* kind_name(std::uint32_t kind) noexcept {
    switch (kind) {
        case BASCULE_EMULATED_RECORD:
            return "record";
        case BASCULE_EMULATED_WAIT:
            return "wait";
        case BASCULE_EMULATED_LAUNCH:
            return "launch";
        case BASCULE_EMULATED_COPY:
            return "copy";
        case BASCULE_EMULATED_FILL:
            return "fill";
        case BASCULE_EMULATED_ALLOCATE:
            return "allocate";
        case BASCULE_EMULATED_FREE:
            return "free";
        case BASCULE_EMULATED_SYNCHRONIZE:
            return "synchronize";
        case BASCULE_EMULATED_CREATE:
            return "create";
        case BASCULE_EMULATED_DESTROY:
            return "destroy";
        case BASCULE_EMULATED_HOST_FUNCTION:
            return "host function";
        default:
            return "unknown";
    }
}

py::list trace_stop() {
    const EmulatedFunctions& emulated = functions();
    emulated.trace(0);
    std::vector<BasculeEmulatedOperation> operations(emulated.trace_read(nullptr, 0));
    operations.resize(std::min(operations.size(), emulated.trace_read(operations.data(), operations.size())));
    py::list list;
    for (const BasculeEmulatedOperation& operation : operations) {
        list.append(py::make_tuple(kind_name(operation.kind), operation.stream, operation.event,
                                   operation.bytes, std::string(operation.name), operation.device));
    }
    return list;
}

}  // namespace

void bind_emulated(py::module_& module) {
    module.def("_trace_start", [] { functions().trace(1); });
    module.def("_trace_stop", &trace_stop);
    module.def("_driver_calls",
               [](const std::string& function) { return functions().call_count(function.c_str()); });
}

}  // namespace bascule::python

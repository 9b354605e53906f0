// What is known of a kernel without compiling or loading anything: for reprs, documentation and completion.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <pybind11/pybind11.h>

#include <bascule/runtime/kernels/kernel.hpp>

namespace bascule::python {

struct KnownKernel {
    std::optional<Device> device;          ///< the current one; none where no driver can be loaded
    std::string where;                     ///< of the device, for people
    const LoadedKernel* loaded = nullptr;  ///< null where it was not loaded for that device
    std::shared_ptr<const Image> image{};  ///< null where it was not compiled
    std::string signature;                 ///< the compiler's where it was compiled, else as the text has it
    std::optional<std::vector<Parameter>> parameters;  ///< none of overloads
};

KnownKernel known_kernel(const Kernel& kernel);

}  // namespace bascule::python

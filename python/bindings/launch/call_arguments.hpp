// The arguments of one call of a kernel: which function they mean, and the pack that it is launched with.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include <pybind11/pybind11.h>

#include <bascule/interface/arguments/argument.hpp>
#include <bascule/runtime/kernels/kernel.hpp>

#include "launch/arguments.hpp"

namespace bascule::python {

/// What a call passes.
struct CallArguments {
    PyObject* const* objects;
    Py_ssize_t positional;
    PyObject* keywords;

    std::size_t count() const noexcept {
        return static_cast<std::size_t>(positional + (keywords == nullptr ? 0 : PyTuple_GET_SIZE(keywords)));
    }
};

/// One slot a parameter, on the stack up to 32.
template <class T>
class Slots {
  public:
    explicit Slots(std::size_t count) {
        if (count > inline_.size()) more_.resize(count);
        span_ = more_.empty() ? std::span<T>(inline_.data(), count) : std::span<T>(more_);
    }
    std::span<T> span() noexcept { return span_; }

  private:
    std::array<T, 32> inline_;
    std::vector<T> more_;
    std::span<T> span_;
};

/// Compiles and loads a function for the device, without the GIL. Throws: ArgumentError for a kernel that is
/// none; CudaError where it is not loaded and a capture does not allow it: of `stream`, or of the current
/// one.
const LoadedKernel& load(const Kernel& kernel, Device device, std::optional<StreamRef> stream = {});

/// The kernel's one function where it is no template and has no overloads; compiles to know. Without the GIL.
Kernel settle(const Kernel& kernel, Device device);

/// For one function: each argument is read and checked in one go. Throws: ArgumentError.
void read_arguments(ArgumentPack& pack, ArgumentReader& reader, const CallArguments& arguments);

/// For a template or overloads: all arguments are read before it is known which function they go to.
void read_arguments(const Kernel& kernel, ArgumentReader& reader, const CallArguments& arguments,
                    std::span<ArgumentValue> values);

/// The function that the values mean; compiles it if need be, without the GIL. Throws: as
/// Kernel::for_arguments.
Kernel choose(const Kernel& kernel, std::span<const ArgumentValue> values, Device device);

/// Checks each value against the pack's signature. Throws: ArgumentError.
void set_all(ArgumentPack& pack, std::span<const ArgumentValue> values);

/// Compares the structures among the arguments with the kernel's own, field by field. The compiler may have
/// to be asked: without the GIL. Throws: ArgumentError that names the field.
void compare_structures(const Kernel& kernel, const ArgumentPack& pack, Device device);

/// The function that these arguments mean, loaded for the current device, each argument checked; nothing is
/// launched.
Kernel check_arguments(const Kernel& kernel, const CallArguments& arguments);

}  // namespace bascule::python

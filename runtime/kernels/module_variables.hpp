// The variables of a module's images: one set on each device, whatever was compiled together.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <bascule/jit/link/shared_variables.hpp>
#include <bascule/jit/probes/probed_program.hpp>
#include <bascule/jit/types/variable.hpp>
#include <bascule/runtime/driver/device.hpp>
#include <bascule/runtime/kernels/library.hpp>

namespace bascule {

/// The first image that is loaded on a device with a variable has its memory for all: images that use it too are loaded with
/// its address. So addresses never change, and no value moves. Thread-safe.
class ModuleVariables {
  public:
    /// Loads an image of the module. `same`: the library that another device of the kind has of this image, or null; it is
    /// the result unless the image uses variables that another image has on this device. Throws: as Library; Error
    /// where a variable cannot be shared, before anything runs.
    std::shared_ptr<const Library> load(const ProbedProgram& program, Device device,
                                        const std::shared_ptr<const Library>& same);

    /// The variable in whichever image has it on this device; none where no loaded image has. Throws: CudaError.
    std::optional<LoadedVariable> find(const Variable& variable, Device device);

  private:
    struct LoadedImage {
        std::shared_ptr<const Library> library;
        std::optional<std::vector<PtxVariable>> known;  ///< that it has the memory of; read when asked for

        const std::vector<PtxVariable>& variables();
    };
    /// What takes the place of variables that an image would have.
    struct Elsewhere {
        std::map<std::string, std::uint64_t> addresses;      ///< by its own names
        std::vector<std::shared_ptr<const Library>> owners;  ///< of that memory
    };
    Elsewhere find_elsewhere(const ProbedProgram& program, Device device);

    std::mutex mutex_;
    std::map<int, std::vector<LoadedImage>> loaded_;  ///< by device, in the order of loading
};

}  // namespace bascule

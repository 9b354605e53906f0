// The variables of a module's images: one set on each device, shared by all images.
#pragma once

#include <map>
#include <mutex>
#include <set>
#include <vector>

#include <bascule/jit/link/shared_variables.hpp>
#include <bascule/jit/questions/probed_program.hpp>
#include <bascule/jit/variables/variable.hpp>
#include <bascule/runtime/kernels/library.hpp>

namespace bascule {

/// The image that is loaded first on a device provides the memory of a variable. Later images that have the variable are
/// loaded with its address. So addresses never change and values are never copied. Thread-safe.
class ModuleVariables {
  public:
    /// Loads an image of the module. `same`: the library of this image that another device of the same kind uses, or
    /// null. It is returned unless the image uses variables of another image on this device. Throws: as Library; Error
    /// if a variable cannot be shared, before anything runs.
    std::shared_ptr<const Library> load(const ProbedProgram& program, Device device,
                                        const std::shared_ptr<const Library>& same);

    /// The variable in the first loaded image that has it on this device; empty if none has it. Throws: Error if the
    /// variable holds a function's address and several images have one of their own; CudaError.
    std::optional<LoadedVariable> find(const Variable& variable, Device device);

  private:
    struct LoadedImage {
        std::shared_ptr<const Library> library;
        std::optional<std::vector<PtxVariable>> known;  ///< variables in its own memory; read at first use

        const std::vector<PtxVariable>& variables();
    };
    /// Memory of other images that replaces an image's own variables.
    struct Elsewhere {
        VariableAddresses addresses;                         ///< by the image's own variable names
        std::vector<std::shared_ptr<const Library>> owners;  ///< of that memory
    };
    Elsewhere find_elsewhere(const ProbedProgram& program, Device device);

    std::mutex mutex_;
    std::map<int, std::vector<LoadedImage>> loaded_;  ///< by device, in the order of loading
    std::set<std::string> exposed_;  ///< found by `find`, with a function's address: the host may change them
};

}  // namespace bascule

// Module and Kernel: the objects that users hold.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <bascule/interface/argument.hpp>
#include <bascule/interface/launch_config.hpp>
#include <bascule/jit/cache.hpp>
#include <bascule/jit/tokenizer.hpp>
#include <bascule/runtime/library.hpp>
#include <bascule/runtime/lifetime.hpp>
#include <bascule/runtime/stream.hpp>

namespace bascule {

class Kernel;

/// A CUDA C++ text and its options; compiled once an architecture, loaded once a device. Thread-safe. Copies
/// share everything.
class Module {
  public:
    /// Finds the kernels of the text; compiles nothing yet. Throws: CompileError when there is none.
    explicit Module(Source source, CompileOptions options = {}, Cache& cache = Cache::process_default());

    const Source& source() const noexcept;
    const CompileOptions& options() const noexcept;
    /// The __global__ functions of the text, templates included, in order.
    const std::vector<KernelDeclaration>& declarations() const noexcept;

    /// A kernel by its qualified name, or by its last component where only one has it.
    /// Throws: CompileError with the nearest names ("did you mean 'scale'?").
    Kernel kernel(const std::string& name) const;

    /// Compiled for `device` (or for the architecture of the options) and loaded by nobody. Throws:
    /// CompileError, LibraryError.
    Cache::Lookup compile(Arch arch) const;
    /// The image for an architecture if it was compiled by this module already, else null.
    std::shared_ptr<const Image> compiled(Arch arch) const noexcept;

    /// How the image for a device came about, for tables and reports.
    struct Provenance {
        Origin origin = Origin::compiled;
        double compile_ms = 0;  ///< in NVRTC, now or when the image was made
        double load_ms = 0;     ///< in the driver
    };
    std::optional<Provenance> provenance(Device device) const;

  private:
    friend class Kernel;
    struct State;
    struct Loaded;
    const Loaded& loaded(Device device) const;

    std::shared_ptr<State> state_;
};

/// One __global__ function of a module. Thread-safe. Copies share everything.
class Kernel {
  public:
    Kernel(Source source, const std::string& name, CompileOptions options = {},
           Cache& cache = Cache::process_default());

    const std::string& name() const noexcept;
    const Module& module() const noexcept;
    const KernelDeclaration& declaration() const noexcept;

    /// Compiled and loaded for `device`; the same object for as long as the kernel lives. A hit is one
    /// lookup, without a lock. Throws: CompileError, LibraryError, CudaError.
    const LoadedKernel& loaded(Device device) const;
    const Signature& signature(Device device = Device::current()) const;

    /// Checks the geometry, waits for the producers, launches, makes the producers wait, keeps the owners.
    /// `owners` are taken also when this throws. Throws: ArgumentError before the first operation; CudaError.
    void launch(StreamRef stream, const LaunchConfig& config, ArgumentPack& args,
                std::span<const Owner> owners = {}) const;

    /// A block size that fills the device, and the grid that gives `work` threads. `work` is (x, y, z) in
    /// threads. Throws: ArgumentError for no work, and for more than a grid can have.
    LaunchConfig configuration_for(Device device, std::span<const std::uint64_t> work,
                                   std::uint32_t shared_bytes = 0) const;

  private:
    friend class Module;
    struct State;
    Kernel(Module module, State* state) noexcept : module_(std::move(module)), state_(state) {}

    Module module_;  // owns the state
    State* state_;
};

}  // namespace bascule

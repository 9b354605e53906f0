// A device for tests of the interpreter: it gives addresses to the test's arrays, and packs the arguments of launches.
#pragma once

#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "machine/grids/launch.hpp"
#include "program/loaded_module.hpp"

namespace testing {

/// The first lines of a text for sm_80.
inline const std::string sm_80_prologue = ".version 8.0\n.target sm_80\n.address_size 64\n";

/// The allocations of one test. Finds them by a linear search.
class Heap : public emulated::memory::Memory {
  public:
    std::uint64_t add(void* host, std::size_t bytes, bool read_only = false) {
        emulated::memory::Allocation made;
        made.base = next_;
        made.bytes = bytes;
        made.host = static_cast<std::byte*>(host);
        made.read_only = read_only;
        next_ += (bytes + 0x1ffff) / 0x10000 * 0x10000;
        allocations_.push_back(made);
        return made.base;
    }
    const emulated::memory::Allocation* find(std::uint64_t address) const noexcept override {
        for (const auto& each : allocations_) {
            if (address - each.base < each.bytes) return &each;
        }
        return nullptr;
    }

  private:
    std::vector<emulated::memory::Allocation> allocations_;
    std::uint64_t next_ = 0x7f00'0000'0000;
};

inline std::string read_ptx(const std::string& name) {
    const auto path = std::filesystem::path(PTX_DIRECTORY) / name;
    std::ifstream file(path);
    if (!file) throw std::runtime_error("cannot read " + path.string());
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
}

/// A loaded module with its globals in memory.
class Device {
  public:
    /// `workers` threads share the blocks.
    explicit Device(const std::string& ptx, unsigned workers = 1) : workers_(workers) {
        auto loaded = emulated::program::load(ptx);
        if (auto* error = std::get_if<emulated::program::LoadError>(&loaded)) {
            throw std::runtime_error("line " + std::to_string(error->line) + ": " + error->message);
        }
        module_ = std::get<0>(loaded);
        for (const auto& global : module_->globals) {
            storage_.push_back(std::make_unique<std::vector<std::byte>>(global.initial));
            storage_.back()->resize(global.bytes);
            globals_.push_back(heap_.add(storage_.back()->data(), global.bytes, global.constant));
        }
        for (std::size_t g = 0; g < module_->globals.size(); ++g) {
            for (const auto& relocation : module_->globals[g].relocations) {
                const std::uint64_t value =
                    globals_[relocation.global] + static_cast<std::uint64_t>(relocation.addend);
                std::memcpy(storage_[g]->data() + relocation.offset, &value, sizeof value);
            }
        }
    }

    const emulated::program::Module& module() const { return *module_; }
    std::byte* global(const std::string& name) {
        return storage_[static_cast<std::size_t>(module_->find_global(name) - module_->globals.data())]
            ->data();
    }

    template <class T>
    std::uint64_t array(std::vector<T>& values) {
        return heap_.add(values.data(), values.size() * sizeof(T));
    }

    std::uint32_t dynamic_shared_bytes = 0;
    emulated::machine::Dim3 cluster;
    std::string printed;
    emulated::machine::TimeLimits limits;
    std::function<bool()> cancelled;
    emulated::races::AccessLog* log = nullptr;
    bool cooperative = false;  ///< blocks of a launch may wait for each other
    emulated::memory::ImageObjects images;

    template <class... Arguments>
    std::optional<emulated::machine::Fault> launch(const std::string& name, emulated::machine::Dim3 grid,
                                                   emulated::machine::Dim3 block,
                                                   const Arguments&... arguments) {
        const emulated::program::Kernel* kernel = module_->find_kernel(name);
        if (!kernel) throw std::runtime_error("no kernel " + name);
        if (!kernel->refusal.empty()) throw std::runtime_error(kernel->refusal);
        if (sizeof...(arguments) != kernel->parameters.size())
            throw std::runtime_error("wrong number of arguments");
        std::vector<std::byte> parameters(kernel->parameter_bytes + 7);
        std::size_t at = 0;
        [[maybe_unused]] const auto put = [&](const void* from, std::size_t bytes) {
            const auto& parameter = kernel->parameters[at++];
            if (parameter.bytes != bytes) throw std::runtime_error("an argument has the wrong size");
            std::memcpy(parameters.data() + parameter.offset, from, bytes);
        };
        (put(&arguments, sizeof arguments), ...);
        emulated::machine::LaunchRequest request;
        request.kernel = kernel;
        request.grid = grid;
        request.block = block;
        request.cluster = cluster;
        request.dynamic_shared_bytes = dynamic_shared_bytes;
        request.parameters = parameters.data();
        request.globals = globals_.data();
        request.memory = &heap_;
        request.images = &images;
        request.workers = workers_;
        request.limits = limits;
        request.cancelled = cancelled;
        request.log = log;
        std::array<std::byte, emulated::machine::workspace_bytes> workspace{};
        if (cooperative) request.workspace = heap_.add(workspace.data(), workspace.size());
        request.print = [this](const char* text, std::size_t bytes) {
            const std::lock_guard lock(printing_);
            printed.append(text, bytes);
        };
        return emulated::machine::launch(request);
    }

  private:
    std::shared_ptr<const emulated::program::Module> module_;
    unsigned workers_;
    std::mutex printing_;
    Heap heap_;
    std::vector<std::unique_ptr<std::vector<std::byte>>> storage_;
    std::vector<std::uint64_t> globals_;
};

}  // namespace testing

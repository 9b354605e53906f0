// Memory layout: a kernel's parameters, its register file, and its shared and local variables.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "program/code.hpp"
#include "program/loaded_module.hpp"
#include "program/step.hpp"
#include "ptx/module.hpp"

namespace emulated::program {

/// Computes the offsets of consecutive parameters, each at its alignment.
std::uint32_t layout_parameters(const ptx::Function& function, std::vector<Kernel::Parameter>& into);

/// Allocates places in one kernel's register file, and addresses for its shared and local variables.
class Layout {
  public:
    Layout(Code& code, const ptx::Function& entry) : code_(code), entry_(entry) {}

    /// A place with `value` in 32 lanes of `bytes` each; 0 bytes means a predicate. `global`: adds the address of that
    /// global. `dynamic_shared`: adds the address of dynamic shared memory.
    Ref constant(std::uint64_t value, unsigned bytes, std::int32_t global = -1, bool dynamic_shared = false);
    /// A place with the kernel parameter at `offset`, extended to `bytes` per lane.
    Ref parameter(std::uint32_t offset, Type type, unsigned bytes);
    Ref special(Special special);
    /// True if the place is from `constant` or `parameter`: all lanes have the same value there during the launch.
    bool is_uniform(const Ref& ref) const { return constant_at(ref) != nullptr; }
    /// The value of a place if it is known before the module is loaded.
    std::optional<std::uint64_t> value_of(const Ref& ref) const;
    /// Notes that the place has an address of this variable or parameter. Returns the place.
    Ref note_origin(const Ref& place, Code::Origin origin);
    /// The origin of a place as an index into Code::origins: 0 for a number, `several_origins` if it is not known.
    std::uint16_t origin_at(const Ref& place) const;
    static constexpr std::uint16_t several_origins = 0xfffe;
    /// Throws: ptx::SyntaxError if the register file would be too large.
    std::uint32_t reserve(std::uint64_t bytes);
    std::uint32_t top() const { return top_; }
    std::uint64_t shared_address(const ptx::Variable& variable);
    std::uint64_t local_address(const ptx::Variable& variable);
    /// The address of the shared memory that CUDA reserves in each block. Only kernels that use it have it.
    std::uint64_t reserved_shared_address();
    void align_dynamic_shared(std::uint32_t alignment) {
        dynamic_alignment_ = std::max(dynamic_alignment_, alignment);
    }
    void has_barrier() { code_.has_barrier = true; }
    void may_spin() { code_.may_spin = true; }
    void uses_heap() { code_.uses_heap = true; }
    void reads_shared_async() { code_.reads_shared_async = true; }
    /// Called for a re-entrant function with local variables of `frame_bytes` on the stack.
    void has_stack(std::uint64_t frame_bytes) {
        code_.has_stack = true;
        largest_frame_ = std::max(largest_frame_, frame_bytes);
    }
    /// Throws: ptx::SyntaxError if the kernel needs more shared or local memory than allowed.
    void finish();

  private:
    const Code::Constant* constant_at(const Ref& ref) const;

    Code& code_;
    const ptx::Function& entry_;
    std::uint32_t top_ = 0;
    std::uint64_t shared_bytes_ = 0, local_bytes_ = 0, largest_frame_ = 0, reserved_shared_ = 0;
    std::uint32_t dynamic_alignment_ = 16;
    std::map<std::tuple<std::uint64_t, unsigned, std::int32_t, bool>, std::uint32_t> constants_;
    std::map<std::tuple<std::uint32_t, Type, unsigned>, std::uint32_t> parameters_;
    std::vector<std::size_t> dynamic_constants_;
    std::unordered_map<std::uint32_t, std::uint16_t> origins_;  // by place
    std::unordered_map<const ptx::Variable*, std::uint64_t> shared_;
};

}  // namespace emulated::program

// PTX instructions -> steps, one function at a time. The translator's inner border.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "program/code.hpp"
#include "program/module.hpp"
#include "program/step.hpp"
#include "program/translate.hpp"

namespace emulated::program {

/// This kernel cannot run here. Caught by translate.
struct Refused {
    std::uint32_t line = 0;
    std::string reason;
};

/// Places in one kernel's register file, and addresses of its shared and local variables.
class Layout {
  public:
    explicit Layout(Code& code) : code_(code) {}

    /// 32 equal lanes of `bytes` each; 0 bytes: a predicate. `global`: plus the address of that global.
    Ref constant(std::uint64_t value, unsigned bytes, std::int32_t global = -1, bool dynamic_shared = false);
    /// What stands at `offset` of the kernel's parameters, extended to `bytes` a lane.
    Ref parameter(std::uint32_t offset, Type type, unsigned bytes);
    Ref special(Special special);
    std::uint32_t reserve(std::uint32_t bytes);
    std::uint32_t top() const { return top_; }
    std::uint64_t shared_address(const ptx::Variable& variable);
    std::uint64_t local_address(const ptx::Variable& variable);
    void align_dynamic_shared(std::uint32_t alignment) {
        dynamic_alignment_ = std::max(dynamic_alignment_, alignment);
    }
    void has_barrier() { code_.has_barrier = true; }
    void may_spin() { code_.may_spin = true; }
    void has_stack() { code_.has_stack = true; }
    void finish();

  private:
    Code& code_;
    std::uint32_t top_ = 0;
    std::uint32_t dynamic_alignment_ = 16;
    std::map<std::tuple<std::uint64_t, unsigned, std::int32_t, bool>, std::uint32_t> constants_;
    std::map<std::tuple<std::uint32_t, Type, unsigned>, std::uint32_t> parameters_;
    std::vector<std::size_t> dynamic_constants_;
    std::unordered_map<const ptx::Variable*, std::uint64_t> shared_;
};

/// The functions one kernel reaches, the kernel first.
class Functions {
  public:
    struct Entry {
        const ptx::Function* function = nullptr;
        std::uint32_t return_slot = 0;               ///< where each lane continues after ret
        std::vector<std::uint32_t> argument_places;  ///< of results, then parameters, in the register file
    };

    Functions(Layout& layout, const Symbols& symbols) : layout_(layout), symbols_(symbols) {}

    std::size_t require(const ptx::Function& function);
    std::size_t size() const { return entries_.size(); }
    Entry& at(std::size_t index) { return entries_[index]; }
    Layout& layout() { return layout_; }
    const Symbols& symbols() const { return symbols_; }
    /// True when the function can be called while it runs, by itself or through others.
    bool can_reenter(const ptx::Function& function);

    /// Bytes of one lane of a call argument.
    static std::uint32_t stride(const ptx::Variable& variable) {
        return static_cast<std::uint32_t>((variable.bytes + 7) / 8 * 8);
    }

  private:
    std::vector<const ptx::Function*> callees(const ptx::Function& function) const;

    Layout& layout_;
    const Symbols& symbols_;
    std::vector<Entry> entries_;
    std::unordered_map<const ptx::Function*, bool> reentrant_;
};

/// Throws: Refused.
Body lower(Functions& functions, std::size_t index, const std::map<std::uint32_t, std::uint32_t>& files,
           const std::vector<Kernel::Parameter>& parameters);

}  // namespace emulated::program

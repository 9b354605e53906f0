// The functions that a kernel reaches, and what each needs of the register file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "program/layout.hpp"
#include "program/symbols.hpp"
#include "ptx/module.hpp"

namespace emulated::program {

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
    /// What a call through a pointer can reach: whose parameters have these sizes, in bytes of one lane; 0: any.
    void require_pointees(const std::vector<std::uint32_t>& results,
                          const std::vector<std::uint32_t>& parameters);
    std::size_t size() const { return entries_.size(); }
    Entry& at(std::size_t index) { return entries_[index]; }
    Layout& layout() { return layout_; }
    const Symbols& symbols() const { return symbols_; }
    /// True when the function can be called while it runs, by itself or through others.
    bool can_reenter(const ptx::Function& function) const { return symbols_.reentrant.contains(&function); }

    /// Bytes of one lane of a call argument.
    static std::uint32_t stride(const ptx::Variable& variable) {
        return static_cast<std::uint32_t>((variable.bytes + 7) / 8 * 8);
    }

  private:
    Layout& layout_;
    const Symbols& symbols_;
    std::vector<Entry> entries_;
    std::unordered_map<const ptx::Function*, std::size_t> indices_;  ///< into entries_
    /// Of calls through pointers, so that equal ones look at all functions once.
    std::set<std::pair<std::vector<std::uint32_t>, std::vector<std::uint32_t>>> shapes_;
};

}  // namespace emulated::program

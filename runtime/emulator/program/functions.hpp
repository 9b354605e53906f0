// The functions that a kernel may call, and their places in the register file.
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

/// The functions that one kernel may call; the kernel is the first.
class Functions {
  public:
    struct Entry {
        const ptx::Function* function = nullptr;
        std::uint32_t return_slot = 0;               ///< where each lane continues after ret
        std::vector<std::uint32_t> argument_places;  ///< register file offsets of results, then parameters
    };

    Functions(Layout& layout, const Symbols& symbols) : layout_(layout), symbols_(symbols) {}

    std::size_t require(const ptx::Function& function);
    /// Adds the functions that a call through a pointer can reach: those whose results and parameters have these sizes,
    /// in bytes per lane. 0 matches any size.
    void require_pointees(const std::vector<std::uint32_t>& results,
                          const std::vector<std::uint32_t>& parameters);
    std::size_t size() const { return entries_.size(); }
    Entry& at(std::size_t index) { return entries_[index]; }
    Layout& layout() { return layout_; }
    const Symbols& symbols() const { return symbols_; }
    /// True if the function can be called while it runs, by itself or through others.
    bool can_reenter(const ptx::Function& function) const { return symbols_.reentrant.contains(&function); }

    /// Registers of each thread when the kernel starts, if .maxnreg or .maxntid with .minnctapersm decides them; otherwise
    /// 0.
    std::uint32_t registers_at_start() const;

    /// Bytes per lane of a call argument.
    static std::uint32_t stride(const ptx::Variable& variable) {
        return static_cast<std::uint32_t>((variable.bytes + 7) / 8 * 8);
    }

  private:
    Layout& layout_;
    const Symbols& symbols_;
    std::vector<Entry> entries_;
    std::unordered_map<const ptx::Function*, std::size_t> indices_;  ///< index in entries_
    /// The shapes of calls through pointers, so that calls of the same shape search the functions once.
    std::set<std::pair<std::vector<std::uint32_t>, std::vector<std::uint32_t>>> shapes_;
};

}  // namespace emulated::program

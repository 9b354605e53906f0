#include "program/functions.hpp"

#include <algorithm>

namespace emulated::program {

std::size_t Functions::require(const ptx::Function& function) {
    const auto [known, is_new] = indices_.try_emplace(&function, entries_.size());
    if (!is_new) return known->second;
    Entry entry;
    entry.function = &function;
    if (!function.is_entry) {
        entry.return_slot = layout_.reserve(128);
        for (const auto* list : {&function.results, &function.parameters}) {
            for (const std::int32_t index : *list) {
                const ptx::Variable& variable = function.variable(index);
                entry.argument_places.push_back(layout_.reserve(std::uint64_t{32} * stride(variable)));
            }
        }
    }
    entries_.push_back(std::move(entry));
    return entries_.size() - 1;
}

void Functions::require_pointees(const std::vector<std::uint32_t>& results,
                                 const std::vector<std::uint32_t>& parameters) {
    if (!shapes_.emplace(results, parameters).second) return;
    const auto fits = [](const ptx::Function& function, const std::vector<std::int32_t>& formals,
                         const std::vector<std::uint32_t>& given) {
        if (formals.size() != given.size()) return false;
        for (std::size_t i = 0; i < given.size(); ++i) {
            const std::uint32_t wanted = stride(function.variable(formals[i]));
            if (given[i] != 0 && given[i] != wanted) return false;
        }
        return true;
    };
    for (const ptx::Function* function : symbols_.address_taken) {
        if (fits(*function, function->results, results) && fits(*function, function->parameters, parameters))
            require(*function);
    }
}

std::uint32_t Functions::registers_at_start() const {
    const ptx::Function& entry = *entries_.front().function;
    std::uint32_t most = entry.max_registers;
    if (entry.max_threads != 0 && entry.min_blocks != 0) {
        // As ptxas does: the registers of an SM are divided among the warpgroups of its blocks.
        constexpr std::uint32_t registers_of_sm = 65536, most_of_thread = 255;
        const std::uint32_t threads = (entry.max_threads + 127) / 128 * 128 * entry.min_blocks;
        const std::uint32_t share = std::min(registers_of_sm / threads / 8 * 8, most_of_thread);
        most = most == 0 ? share : std::min(most, share);
    }
    return (most + 7) / 8 * 8;
}

}  // namespace emulated::program

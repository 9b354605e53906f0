#include "program/functions.hpp"

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

}  // namespace emulated::program

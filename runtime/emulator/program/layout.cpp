#include "program/layout.hpp"

namespace emulated::program {
namespace {

std::uint32_t round_up(std::uint32_t value, std::uint32_t to) { return (value + to - 1) / to * to; }

}  // namespace

std::uint32_t layout_parameters(const ptx::Function& function, std::vector<Kernel::Parameter>& into) {
    std::uint32_t at = 0;
    for (const std::int32_t index : function.parameters) {
        const ptx::Variable& variable = function.variables[static_cast<std::size_t>(index)];
        at = round_up(at, variable.alignment);
        into.push_back({at, static_cast<std::uint32_t>(variable.bytes), variable.alignment});
        at += static_cast<std::uint32_t>(variable.bytes);
    }
    return at;
}

Ref Layout::constant(std::uint64_t value, unsigned bytes, std::int32_t global, bool dynamic_shared) {
    const auto key = std::make_tuple(value, bytes, global, dynamic_shared);
    const auto found = constants_.find(key);
    if (found != constants_.end()) return {Ref::Kind::fixed, found->second};
    const std::uint32_t place = reserve(bytes == 0 ? 4 : 32 * bytes);
    constants_.emplace(key, place);
    if (dynamic_shared) dynamic_constants_.push_back(code_.constants.size());
    code_.constants.push_back({place, bytes, value, global, Type::none});
    return {Ref::Kind::fixed, place};
}

Ref Layout::parameter(std::uint32_t offset, Type type, unsigned bytes) {
    const auto [known, is_new] = parameters_.try_emplace({offset, type, bytes}, top_);
    if (is_new) {
        reserve(32 * bytes);
        code_.constants.push_back({known->second, bytes, offset, -1, type});
    }
    return {Ref::Kind::fixed, known->second};
}

Ref Layout::special(Special special) {
    for (const Code::SpecialSlot& slot : code_.specials) {
        if (slot.special == special) return {Ref::Kind::fixed, slot.offset};
    }
    const std::uint32_t place = reserve(128);
    code_.specials.push_back({special, place});
    return {Ref::Kind::fixed, place};
}

std::uint32_t Layout::reserve(std::uint32_t bytes) {
    const std::uint32_t place = top_;
    top_ += round_up(bytes, 64);
    return place;
}

std::uint64_t Layout::shared_address(const ptx::Variable& variable) {
    const auto found = shared_.find(&variable);
    if (found != shared_.end()) return found->second;
    code_.shared_bytes = round_up(code_.shared_bytes, variable.alignment);
    const std::uint64_t address = shared_window + code_.shared_bytes;
    code_.shared_bytes += static_cast<std::uint32_t>(variable.bytes);
    shared_.emplace(&variable, address);
    return address;
}

std::uint64_t Layout::local_address(const ptx::Variable& variable) {
    code_.local_bytes = round_up(code_.local_bytes, std::max(variable.alignment, 4u));
    const std::uint64_t address = local_window + code_.local_bytes;
    code_.local_bytes += static_cast<std::uint32_t>(variable.bytes);
    return address;
}

void Layout::finish() {
    // Dynamic shared memory begins where the static variables end, and those are known only now.
    code_.shared_bytes = round_up(code_.shared_bytes, dynamic_constants_.empty() ? 4 : dynamic_alignment_);
    for (const std::size_t index : dynamic_constants_) {
        code_.constants[index].value += shared_window + code_.shared_bytes;
    }
    code_.local_bytes = round_up(code_.local_bytes, 16);
    code_.register_bytes = top_;
}

}  // namespace emulated::program

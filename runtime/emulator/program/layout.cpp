#include "program/layout.hpp"

#include <fmt/format.h>

#include "ptx/lexer.hpp"
#include "ptx/limits.hpp"
#include "ptx/names.hpp"

namespace emulated::program {
namespace {

namespace limits = ptx::limits;

// All kinds of memory fit into their windows: static and dynamic shared memory, local variables and stack, and parameters.
static_assert(limits::static_shared < window_bytes && limits::parameters_since_ptx_8_1 < window_bytes);
static_assert(limits::local <= window_bytes / 2, "the other half is the stack's");

// The maximum size of a warp's register file, in bytes.
constexpr std::uint64_t most_register_bytes = std::uint64_t{1} << 30;

std::uint64_t round_up(std::uint64_t value, std::uint64_t to) { return (value + to - 1) / to * to; }

// The offset of a variable after `end` bytes of others. Increases `end`.
std::uint64_t append(std::uint64_t& end, const ptx::Variable& variable, std::uint32_t alignment) {
    const std::uint64_t at = round_up(end, alignment);
    end = at + std::min(variable.bytes, std::uint64_t{1} << 40);  // a cap, so that sums cannot overflow
    return at;
}

}  // namespace

std::uint32_t layout_parameters(const ptx::Function& function, std::vector<Kernel::Parameter>& into) {
    std::uint32_t at = 0;
    for (const std::int32_t index : function.parameters) {
        const ptx::Variable& variable = function.variable(index);
        at = static_cast<std::uint32_t>(round_up(at, variable.alignment));
        into.push_back(
            {at, static_cast<std::uint32_t>(variable.bytes), static_cast<std::uint32_t>(variable.alignment)});
        at += static_cast<std::uint32_t>(variable.bytes);
    }
    return at;
}

Ref Layout::constant(std::uint64_t value, unsigned bytes, std::int32_t global, bool dynamic_shared) {
    const auto [known, is_new] = constants_.try_emplace({value, bytes, global, dynamic_shared}, top_);
    if (is_new) {
        reserve(bytes == 0 ? 4 : 32 * bytes);
        if (dynamic_shared) dynamic_constants_.push_back(code_.constants.size());
        code_.constants.push_back({known->second, bytes, value, global, Type::none});
    }
    return {Ref::Kind::fixed, known->second};
}

Ref Layout::parameter(std::uint32_t offset, Type type, unsigned bytes) {
    const auto [known, is_new] = parameters_.try_emplace({offset, type, bytes}, top_);
    if (is_new) {
        reserve(std::uint64_t{32} * bytes);
        code_.constants.push_back({known->second, bytes, offset, -1, type});
    }
    const Ref place{Ref::Kind::fixed, known->second};
    if (bytes == 8 && ptx::bytes_of(type) == 8)
        note_origin(place, {Code::Origin::Kind::parameter, offset, 0, {}});
    return place;
}

Ref Layout::note_origin(const Ref& place, Code::Origin origin) {
    auto& all = code_.origins;
    const auto known = std::ranges::find(all, origin);
    auto index = static_cast<std::uint16_t>(std::min<std::size_t>(known - all.begin(), several_origins));
    if (known == all.end() && index != several_origins) all.push_back(std::move(origin));
    const auto [at, is_new] = origins_.try_emplace(place.index, index);
    if (at->second != index) at->second = several_origins;
    return place;
}

std::uint16_t Layout::origin_at(const Ref& place) const {
    const auto found = origins_.find(place.index);
    return place.kind != Ref::Kind::fixed || found == origins_.end() ? std::uint16_t{0} : found->second;
}

const Code::Constant* Layout::constant_at(const Ref& ref) const {
    if (ref.kind != Ref::Kind::fixed) return nullptr;
    const auto found = std::ranges::find(code_.constants, ref.index, &Code::Constant::offset);
    return found == code_.constants.end() ? nullptr : &*found;
}

std::optional<std::uint64_t> Layout::value_of(const Ref& ref) const {
    const Code::Constant* found = constant_at(ref);
    if (!found || found->global >= 0 || found->parameter != Type::none) return std::nullopt;
    const auto index = static_cast<std::size_t>(found - code_.constants.data());
    if (std::ranges::find(dynamic_constants_, index) != dynamic_constants_.end()) return std::nullopt;
    return found->value;
}

Ref Layout::special(Special special) {
    for (const Code::SpecialSlot& slot : code_.specials) {
        if (slot.special == special) return {Ref::Kind::fixed, slot.offset};
    }
    const std::uint32_t place = reserve(128);
    code_.specials.push_back({special, place});
    return {Ref::Kind::fixed, place};
}

std::uint32_t Layout::reserve(std::uint64_t bytes) {
    const std::uint32_t place = top_;
    if (bytes > most_register_bytes - place) {
        throw ptx::SyntaxError(entry_.line, fmt::format("kernel '{}' keeps too many values at once",
                                                        ptx::demangled(entry_.name)));
    }
    top_ += static_cast<std::uint32_t>(round_up(bytes, 64));
    return place;
}

std::uint64_t Layout::shared_address(const ptx::Variable& variable) {
    const auto found = shared_.find(&variable);
    if (found != shared_.end()) return found->second;
    const std::uint64_t address = shared_window + append(shared_bytes_, variable, variable.alignment);
    shared_.emplace(&variable, address);
    return address;
}

std::uint64_t Layout::reserved_shared_address() {
    if (code_.reserved_shared_bytes == 0) {
        code_.reserved_shared_bytes = limits::reserved_shared_per_block;
        reserved_shared_ = round_up(shared_bytes_, 128);
        shared_bytes_ = reserved_shared_ + code_.reserved_shared_bytes;
        code_.reserved_shared_at = static_cast<std::uint32_t>(reserved_shared_);
    }
    return shared_window + reserved_shared_;
}

std::uint64_t Layout::local_address(const ptx::Variable& variable) {
    return local_window + append(local_bytes_, variable, std::max(variable.alignment, 4u));
}

void Layout::finish() {
    if (shared_bytes_ - code_.reserved_shared_bytes > limits::static_shared) {
        throw ptx::SyntaxError(
            entry_.line, fmt::format("kernel '{}' needs {} bytes of static shared memory, and a block can "
                                     "have {}: use dynamic shared memory (extern __shared__), whose size the "
                                     "launch gives",
                                     ptx::demangled(entry_.name), shared_bytes_ - code_.reserved_shared_bytes,
                                     limits::static_shared));
    }
    if (local_bytes_ + largest_frame_ > limits::local) {
        throw ptx::SyntaxError(
            entry_.line,
            fmt::format("kernel '{}' needs {} bytes of local memory for each thread, and a thread can have "
                        "{}: keep large arrays in global memory",
                        ptx::demangled(entry_.name), local_bytes_ + largest_frame_, limits::local));
    }
    code_.local_bytes = static_cast<std::uint32_t>(round_up(local_bytes_, 16));
    // Dynamic shared memory starts after the static variables, whose total size is known only now.
    code_.shared_bytes = static_cast<std::uint32_t>(
        round_up(shared_bytes_, dynamic_constants_.empty() ? 4 : dynamic_alignment_));
    for (const std::size_t index : dynamic_constants_) {
        code_.constants[index].value += shared_window + code_.shared_bytes;
    }
    code_.has_dynamic_shared = !dynamic_constants_.empty();
    code_.register_bytes = top_;
}

}  // namespace emulated::program

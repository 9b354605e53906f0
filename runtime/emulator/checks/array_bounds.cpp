// Finds accesses outside of the variable or array that the kernel indexes, where there is other valid memory.
#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "checks/kernel_checks.hpp"
#include "machine/groups.hpp"
#include "machine/warp.hpp"
#include "ptx/names.hpp"

namespace emulated::checks {
namespace {

using machine::Execution;
using machine::MemoryAccess;
using program::Code;
using program::Operation;
using OriginKind = Code::Origin::Kind;

/// The bytes that accesses with one origin may touch.
struct OriginBounds {
    std::uint64_t first = 0, bytes = 0;
    bool known = false;
};

// The last part of the name: 's' of "k(float*)::s".
std::string variable_name(const std::string& mangled) {
    const std::string name = ptx::demangled(mangled);
    const std::size_t colons = name.rfind("::");
    return colons == std::string::npos ? name : name.substr(colons + 2);
}

class Arrays final : public machine::Observer {
  public:
    Arrays(const Request& request, const LaunchName& launch)
        : request_(request), launch_(launch), code_(*request.kernel->code) {
        for (const Code::Origin& origin : code_.origins) bounds_.push_back(bounds_of(origin));
    }

    bool sees_before(const program::Code&, std::uint32_t) const override { return false; }
    bool sees_after(const program::Code& code, std::uint32_t pc) const override {
        return code.origin[pc] != 0 && machine::accesses_memory(code.keys[pc]);
    }

    // Checks after the access, because an access that faulted is reported already and does not get here.
    void after(const Execution& execution) override {
        const std::uint16_t index = code_.origin[execution.pc];
        if (index == 0 || !bounds_[index].known || execution.accesses.empty()) return;
        const OriginBounds& bounds = bounds_[index];
        const MemoryAccess& access = execution.accesses[0];
        std::uint32_t bytes = access.bytes;
        std::uint64_t skipped = 0;
        if (execution.key().operation == Operation::ld_used) {
            const std::uint32_t used = execution.instruction().operand.back();
            skipped = static_cast<std::uint64_t>(std::countr_zero(used));
            bytes = static_cast<std::uint32_t>(std::bit_width(used)) - static_cast<std::uint32_t>(skipped);
        }
        std::uint32_t outside = 0;
        for (const unsigned l : machine::LanesOf{access.lanes}) {
            const std::uint64_t offset = access.address[l] + skipped - bounds.first;
            if (offset > bounds.bytes || bounds.bytes - offset < bytes) outside |= 1u << l;
        }
        if (outside == 0) return;
        const auto lane = static_cast<unsigned>(std::countr_zero(outside));
        tell(execution, index, lane, access.address[lane] + skipped, bytes, outside);
    }

  private:
    OriginBounds bounds_of(const Code::Origin& origin) const {
        switch (origin.kind) {
            case OriginKind::shared:
            case OriginKind::local:
                return {origin.value, origin.bytes, true};
            case OriginKind::dynamic_shared:
                return {program::shared_window + code_.shared_bytes, request_.dynamic_shared_bytes, true};
            case OriginKind::global:
                return {request_.globals[origin.value], origin.bytes, origin.bytes != 0};
            case OriginKind::parameter: {
                const ArrayArgument* array = array_of(origin);
                return array == nullptr ? OriginBounds{} : OriginBounds{array->first, array->bytes, true};
            }
            default:
                return {};
        }
    }

    const ArrayArgument* array_of(const Code::Origin& origin) const {
        for (const ArrayArgument& each : launch_.arrays) {
            std::uint64_t passed = 0;
            std::memcpy(&passed, request_.parameters + origin.value, sizeof passed);
            if (each.parameter < request_.kernel->parameters.size() && passed == each.first &&
                request_.kernel->parameters[each.parameter].offset == origin.value)
                return &each;
        }
        return nullptr;
    }

    // "the array 'x' (argument 1, 40 bytes)", "the shared array 's' (128 bytes)"
    std::string name_of(const Code::Origin& origin, const OriginBounds& bounds) const {
        if (origin.kind == OriginKind::parameter) return describe_array(*array_of(origin));
        static constexpr const char* spaces[] = {"", "shared ", "dynamic shared ", "local ", "", ""};
        const char* space = spaces[static_cast<unsigned>(origin.kind)];
        // NVRTC keeps all local arrays of a function in one variable.
        if (origin.kind == OriginKind::local && origin.name.starts_with("__local_depot"))
            return fmt::format("the function's local variables ({} bytes)", bounds.bytes);
        return fmt::format("the {}array '{}' ({} bytes)", space, variable_name(origin.name), bounds.bytes);
    }

    void tell(const Execution& execution, std::uint16_t index, unsigned lane, std::uint64_t address,
              std::uint32_t bytes, std::uint32_t lanes) const {
        const Code::Origin& origin = code_.origins[index];
        const OriginBounds& bounds = bounds_[index];
        const MemoryAccess& access = execution.accesses[0];
        const auto end = bounds.first + bounds.bytes;
        const bool before = static_cast<std::int64_t>(address - bounds.first) < 0;
        const std::uint64_t away = before ? bounds.first - address : address >= end ? address - end : 0;
        const std::string where =
            away != 0 ? fmt::format("{} bytes {}", away, before ? "before" : "past") : "across the end of";
        Finding finding;
        finding.check = Check::arrays;
        finding.pc = execution.pc;
        finding.first = deed_of(execution, lane, request_.block);
        finding.first.what =
            fmt::format("{} {} bytes {} {}",
                        access.is_atomic ? "accessed"
                        : access.writes  ? "wrote"
                                         : "read",
                        bytes, away == 0 && address == end ? "right past" : where, name_of(origin, bounds));
        finding.space = origin.kind == OriginKind::local ? "local"
                        : origin.kind == OriginKind::shared || origin.kind == OriginKind::dynamic_shared
                            ? "shared"
                            : "global";
        finding.address = finding.space == "shared" ? address - program::shared_window : address;
        finding.bytes = bytes;
        finding.advice = "there is other memory, so nothing faults; compare the index with the array's size";
        report(launch_, std::move(finding), static_cast<std::uint64_t>(std::popcount(lanes)));
    }

    const Request& request_;
    const LaunchName& launch_;
    const Code& code_;
    std::vector<OriginBounds> bounds_;  // by origin
};

}  // namespace

MadeCheck make_arrays_check(const Request& request, const LaunchName& launch) {
    return std::make_unique<Arrays>(request, launch);
}

}  // namespace emulated::checks

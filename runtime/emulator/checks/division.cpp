// Finds integer divisions by zero, whose result PTX leaves open.
#include <bit>
#include <cstring>
#include <tuple>
#include <utility>

#include "checks/kernel_checks.hpp"
#include "machine/groups.hpp"
#include "machine/warp.hpp"

namespace emulated::checks {
namespace {

using machine::Execution;
using program::Operation;
using program::Type;

class Division final : public machine::Observer {
  public:
    Division(const machine::LaunchRequest& request, const LaunchName& launch)
        : request_(request), launch_(launch) {}

    bool sees_before(const program::Code& code, std::uint32_t pc) const override {
        const program::Key& key = code.keys[pc];
        return (key.operation == Operation::div || key.operation == Operation::rem) &&
               !ptx::is_float(key.type);
    }
    bool sees_after(const program::Code&, std::uint32_t) const override { return false; }

    void before(const Execution& execution) override {
        const program::Key& key = execution.key();
        if (!sees_before(execution.code, execution.pc)) return;
        const std::uint32_t divisor = execution.instruction().operand[2];
        const unsigned bytes = ptx::bytes_of(key.type);
        std::uint32_t zero = 0;
        for (const unsigned l : machine::LanesOf{execution.mask}) {
            std::uint64_t value = 0;
            std::memcpy(&value, execution.lanes.registers + divisor + std::size_t{l} * bytes, bytes);
            if (value == 0) zero |= 1u << l;
        }
        if (zero == 0) return;
        Finding finding;
        finding.check = Check::division;
        finding.pc = place_of(execution);
        finding.other_pc = static_cast<std::uint32_t>(key.operation);
        const std::uint32_t thread = execution.thread(static_cast<unsigned>(std::countr_zero(zero)));
        finding.first =
            deed_of(execution.code, {finding.pc, thread, execution.lanes.block->index}, request_.block,
                    key.operation == Operation::div ? "divided an integer by zero"
                                                    : "took the remainder of a division by zero");
        finding.advice = "the result is arbitrary on a GPU; test the divisor first";
        report(launch_, std::move(finding), static_cast<std::uint64_t>(std::popcount(zero)));
    }

  private:
    // The first instruction of the line. NVRTC makes several of a division of 64 bits, for large and for small values, and
    // may give them no line; the instructions before them have it.
    static std::uint32_t place_of(const Execution& execution) {
        const auto line_at = [&](std::uint32_t pc) {
            const program::Code::Line& line = execution.code.lines[pc];
            return std::tuple(line.source, line.file, line.caller_file, line.caller);
        };
        std::uint32_t pc = execution.pc;
        while (pc > 0 && execution.code.lines[pc].source == 0) --pc;
        if (execution.code.lines[pc].source == 0) return execution.pc;
        while (pc > 0 && line_at(pc - 1) == line_at(pc)) --pc;
        return pc;
    }

    const machine::LaunchRequest& request_;
    const LaunchName& launch_;
};

}  // namespace

MadeCheck make_division_check(const Request& request, const LaunchName& launch) {
    return std::make_unique<Division>(request, launch);
}

}  // namespace emulated::checks

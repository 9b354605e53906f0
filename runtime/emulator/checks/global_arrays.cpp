// Two checks of how a launch uses global memory: `restrict`, for writes to bytes that another pointer promised not to change,
// and `grid`, for arrays that the grid is too small for.
#include <algorithm>
#include <bit>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "checks/kernel_checks.hpp"
#include "machine/groups.hpp"
#include "machine/warp.hpp"

namespace emulated::checks {
namespace {

using machine::Execution;
using machine::Instruction;
using machine::MemoryAccess;
using program::Operation;

constexpr std::uint64_t end_of_windows = program::param_window + program::window_bytes;

class RestrictCheck final : public machine::Observer {
  public:
    RestrictCheck(const Request& request, const LaunchName& launch) : request_(request), launch_(launch) {}

    bool sees_before(const program::Code&, std::uint32_t) const override { return false; }
    bool sees_after(const program::Code& code, std::uint32_t pc) const override {
        return machine::accesses_memory(code.keys[pc]);
    }

    void after(const Execution& execution) override {
        for (const MemoryAccess& access : execution.accesses) {
            const bool reads_only = access.reads && !access.writes;
            if (access.is_async || access.bytes > 32) continue;
            if (reads_only && (execution.instruction().bits & Instruction::is_constant) == 0) continue;
            std::uint32_t used = ~0u >> (32 - access.bytes);
            if (execution.key().operation == Operation::ld_used)
                used = execution.instruction().operand.back();
            for (const unsigned l : machine::LanesOf{access.lanes}) {
                if (access.address[l] >= end_of_windows)
                    note(execution, l, access.address[l], used, reads_only);
            }
        }
    }

  private:
    /// 32 consecutive bytes.
    struct Piece {
        std::uint32_t read = 0, written = 0;  ///< one bit per byte
        ThreadPlace reader, writer;
    };

    void note(const Execution& execution, unsigned lane, std::uint64_t address, std::uint64_t used,
              bool reads) {
        // An access that crosses the end of a piece is noted in both.
        used <<= address % 32;
        for (address /= 32; used != 0; used >>= 32, ++address) {
            Piece& piece = pieces_[address];
            const auto bytes = static_cast<std::uint32_t>(used);
            (reads ? piece.read : piece.written) |= bytes;
            (reads ? piece.reader : piece.writer) = thread_place(execution, lane);
            if (const std::uint32_t both = piece.read & piece.written & bytes)
                return tell(execution, piece, address * 32 + static_cast<unsigned>(std::countr_zero(both)));
        }
    }

    void tell(const Execution& execution, const Piece& piece, std::uint64_t address) const {
        Finding finding;
        finding.check = Check::restrict_;
        finding.pc = piece.writer.pc;
        finding.other_pc = piece.reader.pc;
        finding.first =
            deed_of(execution.code, piece.writer, request_.block,
                    "wrote memory that the same launch reads through a const __restrict__ pointer");
        finding.other = deed_of(execution.code, piece.reader, request_.block,
                                "read it as read-only memory (ld.global.nc)");
        finding.address = address;
        finding.bytes = 1;
        finding.space = "global";
        finding.advice =
            "the read may give old data; remove __restrict__ or __ldg, or pass arrays that do not overlap";
        report(launch_, std::move(finding));
    }

    const Request& request_;
    const LaunchName& launch_;
    std::unordered_map<std::uint64_t, Piece> pieces_;  // by address / 32
};

class GridCheck final : public machine::Observer {
  public:
    GridCheck(const Request& request, const LaunchName& launch)
        : request_(request), launch_(launch), threads_(request.grid.count() * request.block.count()) {
        for (const ArrayArgument& each : launch.arrays) {
            if (each.itemsize != 0 && each.bytes >= each.itemsize)
                uses_.push_back({&each, each.bytes / each.itemsize, {}});
        }
    }
    bool has_arrays() const { return !uses_.empty(); }

    bool sees_before(const program::Code&, std::uint32_t) const override { return false; }
    bool sees_after(const program::Code& code, std::uint32_t pc) const override {
        return machine::accesses_memory(code.keys[pc]) || code.keys[pc].operation == Operation::exit;
    }

    void after(const Execution& execution) override {
        for (const MemoryAccess& access : execution.accesses) {
            for (const unsigned l : machine::LanesOf{access.lanes}) note(execution, l, access);
        }
        if (execution.key().operation != Operation::exit) return;
        running_ -= static_cast<std::uint64_t>(std::popcount(execution.mask));
        if (running_ != 0) return;
        for (const Use& each : uses_) finish(execution.code, each);
    }

  private:
    struct Use {
        const ArrayArgument* array = nullptr;
        std::uint64_t elements = 0;
        std::vector<bool> written{};  ///< by element
        std::uint64_t end = 0;        ///< one past the last element that was read or written
        std::uint64_t count = 0;      ///< elements written
        bool in_order = true;         ///< thread k of the grid wrote elements k, k + threads, ...
        ThreadPlace last{};
    };

    // The number of a thread in the grid.
    std::uint64_t number_of(const Execution& execution, unsigned lane) const {
        const machine::Dim3 &at = execution.lanes.block->index, &grid = request_.grid;
        return (at.x + grid.x * (at.y + std::uint64_t{grid.y} * at.z)) * request_.block.count() +
               execution.thread(lane);
    }

    void note(const Execution& execution, unsigned lane, const MemoryAccess& access) {
        for (Use& use : uses_) {
            const std::uint64_t offset = access.address[lane] - use.array->first;
            if (offset >= use.array->bytes) continue;
            const std::uint64_t first = offset / use.array->itemsize;
            const std::uint64_t end = std::min(
                (offset + access.bytes + use.array->itemsize - 1) / use.array->itemsize, use.elements);
            use.end = std::max(use.end, end);
            if (!access.writes) continue;
            use.written.resize(use.elements);
            use.in_order = use.in_order && first % threads_ == number_of(execution, lane);
            for (std::uint64_t k = first; k < end; ++k) {
                use.count += use.written[k] ? 0 : 1;
                use.written[k] = true;
            }
            if (end == use.end) use.last = thread_place(execution, lane);
        }
    }

    // Only an array that is written from its start on, by the threads of the grid in their order, has an element for each
    // thread.
    void finish(const program::Code& code, const Use& use) const {
        if (use.count != use.end || use.end == use.elements || !use.in_order) return;
        if (use.end == 0 || use.end % threads_ != 0) return;
        const std::uint64_t blocks = request_.grid.count(), threads = request_.block.count();
        Finding finding;
        finding.check = Check::grid;
        finding.pc = use.last.pc;
        finding.other_pc = use.array->parameter;  // arrays that one line writes are reported apart
        finding.first = deed_of(
            code, use.last, request_.block,
            fmt::format("touched only the first {} of {} elements of {} with {} block{} of {} threads",
                        use.end, use.elements, describe_array(*use.array), blocks, blocks == 1 ? "" : "s",
                        threads));
        finding.advice =
            "round the number of blocks up: (n + threads - 1) / threads, and test the index in the kernel";
        finding.address = use.array->first + use.end * use.array->itemsize;
        finding.bytes = use.array->itemsize;
        finding.space = "global";
        report(launch_, std::move(finding));
    }

    const Request& request_;
    const LaunchName& launch_;
    const std::uint64_t threads_;
    std::uint64_t running_ = threads_;
    std::vector<Use> uses_;
};

}  // namespace

MadeCheck make_restrict_check(const Request& request, const LaunchName& launch) {
    const auto is_constant = [](const Instruction& i, const program::Key& key) {
        return (key.operation == Operation::ld || key.operation == Operation::ld_used) &&
               (i.bits & Instruction::is_constant) != 0;
    };
    const program::Code& code = *request.kernel->code;
    for (std::size_t k = 0; k < code.instructions.size(); ++k) {
        if (is_constant(code.instructions[k], code.keys[k]))
            return std::make_unique<RestrictCheck>(request, launch);
    }
    return nullptr;
}

MadeCheck make_grid_check(const Request& request, const LaunchName& launch) {
    auto made = std::make_unique<GridCheck>(request, launch);
    return made->has_arrays() ? std::move(made) : nullptr;
}

}  // namespace emulated::checks

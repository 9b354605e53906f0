// Finds uses of data that an asynchronous copy or product has not delivered, and writes to data that it still reads.
#include <algorithm>
#include <bit>
#include <cstring>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "checks/kernel_checks.hpp"
#include "machine/cluster.hpp"
#include "machine/groups.hpp"
#include "machine/warp.hpp"

namespace emulated::checks {
namespace {

using machine::Block;
using machine::Execution;
using machine::Instruction;
using machine::LanesOf;
using machine::MemoryAccess;
using machine::Warp;
using program::Operation;

/// What goes on: a copy to shared memory, a copy from shared memory, a product of matrices in shared memory.
enum class WorkKind : std::uint8_t { to_shared, from_shared, product };

struct WorkWords {
    const char *began, *advice;
};
constexpr WorkWords work_words(WorkKind kind, bool of_lanes) {
    if (kind == WorkKind::product)
        return {"started a wgmma that reads it",
                "wait before the buffer is written again: wgmma.commit_group and wgmma.wait_group"};
    if (kind == WorkKind::from_shared)
        return {"started a bulk copy that reads it",
                "wait before the buffer is written again: cp.async.bulk.commit_group and .wait_group.read"};
    if (of_lanes)
        return {"started the copy (cp.async)",
                "wait for the copy: cp.async.commit_group and .wait_group (__pipeline_wait_prior, "
                "pipeline.consumer_wait), then __syncthreads()"};
    return {"started the bulk copy", "wait for the phase of its mbarrier before the data is used"};
}

/// Bytes of shared memory on the host, and the lane whose copy they belong to.
struct SharedBytes {
    std::byte* at = nullptr;
    std::uint32_t bytes = 0, lane = 0;
};

/// An asynchronous operation that has started.
struct PendingWork {
    WorkKind kind = WorkKind::to_shared;
    Warp* warp = nullptr;
    machine::Cluster* cluster = nullptr;
    bool of_lanes =
        false;  ///< cp.async; `number` counts the warp's. Otherwise it counts the cluster's, or the products
    std::uint64_t number = 0;
    ThreadPlace began;
    std::vector<SharedBytes> ranges;

    bool goes_on(const SharedBytes& range) const {
        if (kind == WorkKind::product)
            return warp->products && number > warp->products->products - warp->products->waiting().size();
        if (of_lanes) {
            const auto* copy = warp->copies.find(number);
            return copy != nullptr && (copy->lanes >> range.lane & 1) != 0;
        }
        const auto waiting = cluster->transfers.waiting();
        const auto found = std::ranges::find(waiting, number, &machine::Transfer::number);
        return found != waiting.end() && (kind == WorkKind::to_shared || found->taken.empty());
    }
};

/// What is kept for each byte of shared memory: 1: it will be written, 2: it will be read.
constexpr std::uint8_t mark_of_work(WorkKind kind) { return kind == WorkKind::to_shared ? 1 : 2; }

/// The instructions that start what this check watches, and those that may end it.
constexpr Operation starting[] = {
    Operation::copy_async,    Operation::bulk_copy,   Operation::bulk_reduce,  Operation::tensor_copy,
    Operation::tensor_reduce, Operation::store_async, Operation::reduce_async, Operation::warpgroup_mma,
};
constexpr Operation waiting[] = {
    Operation::copy_group, Operation::bulk_group,      Operation::mbarrier,
    Operation::exit,       Operation::warpgroup_order,
};
bool is_one_of(std::span<const Operation> operations, const program::Key& key) {
    return std::ranges::find(operations, key.operation) != operations.end();
}

class Async final : public machine::Observer {
  public:
    Async(const Request& request, const LaunchName& launch)
        : request_(request),
          launch_(launch),
          has_products_(std::ranges::count(request.kernel->code->keys, Operation::warpgroup_mma,
                                           &program::Key::operation) != 0) {}

    // Any instruction may read an accumulator.
    bool sees_before(const program::Code& code, std::uint32_t pc) const override {
        return has_products_ || machine::accesses_memory(code.keys[pc]);
    }
    bool sees_after(const program::Code& code, std::uint32_t pc) const override {
        return has_products_ || is_one_of(starting, code.keys[pc]) || is_one_of(waiting, code.keys[pc]);
    }

    void begin_block(const Block&, const machine::Lanes& lanes) override {
        // Nothing is pending in the memory of a new block.
        std::erase_if(pending_, [&](const PendingWork& each) {
            return static_cast<std::size_t>(each.ranges[0].at - lanes.shared) < lanes.shared_bytes;
        });
        marks_[lanes.shared].assign(lanes.shared_bytes, 0);
    }

    void before(const Execution& execution) override {
        const Warp& warp = *execution.lanes.warp;
        if (warp.products && !warp.products->waiting().empty()) check_sums(execution);
        if (pending_.empty()) return;
        for (const MemoryAccess& access : execution.accesses) {
            if (!access.is_async) check_access(execution, access);
        }
    }

    void after(const Execution& execution) override {
        const Warp& warp = *execution.lanes.warp;
        if (!warp.has_transfers && !warp.products && pending_.empty()) return;
        const Operation operation = execution.key().operation;
        if (is_one_of(waiting, execution.key())) return drop_finished();
        if (operation == Operation::warpgroup_mma) return add_product(execution);
        if (operation == Operation::move_sum) return follow(execution);
        if (warp.has_transfers) add_copies(execution);
    }

  private:
    // --- what has started ---

    PendingWork begun(const Execution& execution, WorkKind kind, unsigned lane, std::uint64_t number) const {
        PendingWork made;
        made.kind = kind;
        made.warp = execution.lanes.warp;
        made.cluster = execution.lanes.block->cluster;
        made.number = number;
        made.began = thread_place(execution, lane);
        return made;
    }

    void add(const Execution& execution, PendingWork made) {
        if (made.ranges.empty()) return;
        for (const SharedBytes& range : made.ranges)
            check_bytes(execution, range, ~0u, made.kind != WorkKind::to_shared, true);
        for (const SharedBytes& range : made.ranges) mark(range, mark_of_work(made.kind), true);
        pending_.push_back(std::move(made));
    }

    void add_copies(const Execution& execution) {
        const Warp& warp = *execution.lanes.warp;
        if (execution.key().operation == Operation::copy_async && warp.copies.issued() != 0) {
            const std::uint64_t number = warp.copies.issued() - 1;
            const auto* copy = warp.copies.find(number);
            if (copy == nullptr) return;
            PendingWork made = begun(execution, WorkKind::to_shared, first_of(copy->lanes), number);
            made.of_lanes = true;
            for (const unsigned l : LanesOf{copy->lanes})
                made.ranges.push_back({copy->to[l], copy->bytes, l});
            return add(execution, std::move(made));
        }
        const machine::Transfers& transfers = execution.lanes.block->cluster->transfers;
        std::uint64_t& seen = seen_[&transfers];
        if (seen == transfers.issued()) return;
        for (const machine::Transfer& each : transfers.waiting()) {
            if (each.number <= seen || each.before != nullptr) continue;
            const WorkKind kind = each.barrier != nullptr ? WorkKind::to_shared : WorkKind::from_shared;
            PendingWork made = begun(execution, kind, each.lane, each.number);
            // A reduction may be followed by others on the same bytes.
            std::byte* const first =
                kind == WorkKind::to_shared ? each.to : const_cast<std::byte*>(each.from);
            if (first == nullptr || (kind == WorkKind::to_shared && each.reduce != nullptr)) continue;
            if (each.tile == nullptr) {
                made.ranges.push_back({first, each.bytes, each.lane});
            } else {
                for (const auto& run : each.tile->runs)
                    made.ranges.push_back({first + run.shared, run.bytes, each.lane});
            }
            add(execution, std::move(made));
        }
        seen = transfers.issued();
    }

    void add_product(const Execution& execution) {
        const machine::Lanes& s = execution.lanes;
        const auto waiting = s.warp->products->waiting();
        const Instruction& i = execution.instruction();
        for (unsigned k = 0; k < execution.operands().listed_results; ++k)
            began_[s.warp][execution.code.lists[i.operand[0] + k]] = thread_place(execution, 0);
        if (waiting.empty()) return;
        const machine::WarpgroupProduct& product = waiting.back();
        PendingWork made = begun(execution, WorkKind::product, 0, s.warp->products->products);
        const auto add_matrix = [&](const machine::SharedMatrix& matrix, std::uint32_t first,
                                    std::uint32_t outer, std::uint32_t inner) {
            for (std::uint32_t o = first; o < first + outer; ++o) {
                for (std::uint32_t k = 0; k < inner; ++k) {
                    for (std::uint32_t r = 0; r < 8; ++r)
                        made.ranges.push_back({s.shared + matrix.row(o, k, r), 16, 0});
                }
            }
        };
        if ((product.bits & program::WarpgroupBits::a_in_registers) == 0)
            add_matrix(product.a, product.first, 2, 2);
        add_matrix(product.b, 0, product.product.columns,
                   product.bits & program::WarpgroupBits::sparse ? 4 : 2);
        add(execution, std::move(made));
    }

    void mark(const SharedBytes& range, std::uint8_t bit, bool set) {
        for (auto& [base, marks] : marks_) {
            const auto offset = static_cast<std::size_t>(range.at - base);
            if (range.at < base || offset + range.bytes > marks.size()) continue;
            for (std::uint32_t k = 0; k < range.bytes; ++k) {
                std::uint8_t& each = marks[offset + k];
                each = static_cast<std::uint8_t>(set ? each | bit : each & ~bit);
            }
            return;
        }
    }

    void drop_finished() {
        std::erase_if(pending_, [&](PendingWork& each) {
            std::erase_if(each.ranges, [&](const SharedBytes& range) {
                if (each.goes_on(range)) return false;
                mark(range, mark_of_work(each.kind), false);
                return true;
            });
            return each.ranges.empty();
        });
    }

    // --- what is used ---

    void check_access(const Execution& execution, const MemoryAccess& access) {
        const machine::Lanes& s = execution.lanes;
        const bool partly = execution.key().operation == Operation::ld_used;
        const std::uint32_t used = partly ? execution.instruction().operand.back() : ~0u;
        for (const unsigned l : LanesOf{access.lanes}) {
            const std::uint64_t offset = access.address[l] - program::shared_window;
            if (offset >= program::window_bytes) continue;
            const std::uint64_t slot = offset / program::cluster_stride,
                                at = offset % program::cluster_stride;
            const auto& members = s.block->cluster->members;
            if (slot > members.size()) continue;
            std::byte* const base = slot == 0 ? s.shared : members[slot - 1].shared;
            if (check_bytes(execution, {base + at, access.bytes, l}, used, access.reads && !access.writes,
                            false))
                return;
        }
    }

    // Returns true after a report. A read is wrong if the byte is still to be written; a write also if it is still to be
    // read. An asynchronous write may overlap another one.
    bool check_bytes(const Execution& execution, const SharedBytes& range, std::uint32_t used,
                     bool only_reads, bool is_async) {
        for (auto& [base, marks] : marks_) {
            const auto offset = static_cast<std::size_t>(range.at - base);
            if (range.at < base || offset + range.bytes > marks.size()) continue;
            const std::uint8_t bits = only_reads ? 1 : is_async ? 2 : 3;
            for (std::uint32_t k = 0; k < range.bytes; ++k) {
                if ((marks[offset + k] & bits) == 0 || (k < 32 && (used >> k & 1) == 0)) continue;
                const PendingWork* found = find(range.at + k, bits);
                if (found == nullptr) continue;
                tell(execution, range.lane, *found, only_reads, is_async, range.bytes, offset);
                return true;
            }
            return false;
        }
        return false;
    }

    const PendingWork* find(const std::byte* at, std::uint8_t bits) const {
        for (const PendingWork& each : pending_) {
            if ((mark_of_work(each.kind) & bits) == 0) continue;
            for (const SharedBytes& range : each.ranges) {
                if (at >= range.at && at < range.at + range.bytes && each.goes_on(range)) return &each;
            }
        }
        return nullptr;
    }

    void tell(const Execution& execution, unsigned lane, const PendingWork& pending, bool only_reads,
              bool is_async, std::uint32_t bytes, std::size_t offset) const {
        const WorkWords words = work_words(pending.kind, pending.of_lanes);
        const char* deed = !is_async    ? only_reads ? "read" : "wrote"
                           : only_reads ? "started an asynchronous operation that reads"
                                        : "started a copy that writes";
        Finding finding;
        finding.check = Check::async;
        finding.pc = execution.pc;
        finding.other_pc = pending.began.pc;
        finding.first = deed_of(execution, lane, request_.block);
        finding.first.what =
            fmt::format("{} {} bytes of shared memory that {}", deed, bytes,
                        pending.kind == WorkKind::to_shared ? "an asynchronous copy has not delivered"
                                                            : "an asynchronous operation still reads");
        finding.other = deed_of(execution.code, pending.began, request_.block, words.began);
        finding.address = offset;
        finding.bytes = bytes;
        finding.space = "shared";
        finding.advice = words.advice;
        report(launch_, std::move(finding));
    }

    // --- accumulators of wgmma ---

    void follow(const Execution& execution) {
        const Instruction& i = execution.instruction();
        auto& began = began_[execution.lanes.warp];
        const auto known = began.find(i.operand[1]);
        if (known != began.end()) began[i.operand[0]] = ThreadPlace(known->second);
    }

    void check_sums(const Execution& execution) {
        const Operation operation = execution.key().operation;
        if (operation == Operation::warpgroup_mma || operation == Operation::move_sum) return;
        const Instruction& i = execution.instruction();
        const auto& operands = execution.operands();
        for (unsigned k = operands.results; k < unsigned{operands.results} + operands.sources; ++k) {
            if (check_sum(execution, i.operand[operands.first + k])) return;
        }
        for (unsigned k = operands.listed_results; k < operands.listed; ++k) {
            if (check_sum(execution, execution.code.lists[i.operand[0] + k])) return;
        }
    }

    bool check_sum(const Execution& execution, std::uint32_t place) {
        const Warp* warp = execution.lanes.warp;
        if (!warp->products->is_outstanding(place)) return false;
        Finding finding;
        finding.check = Check::async;
        finding.pc = execution.pc;
        finding.first = deed_of(execution, first_of(execution.mask), request_.block);
        finding.first.what = "used an accumulator of wgmma that has no result yet";
        finding.other = deed_of(execution.code, began_[warp][place], request_.block,
                                "started the product (wgmma.mma_async)");
        finding.advice = "wait for the product first: wgmma.commit_group and wgmma.wait_group";
        report(launch_, std::move(finding), static_cast<std::uint64_t>(std::popcount(execution.mask)));
        return true;
    }

    static unsigned first_of(std::uint32_t lanes) { return static_cast<unsigned>(std::countr_zero(lanes)); }

    const Request& request_;
    const LaunchName& launch_;
    const bool has_products_;
    std::unordered_map<std::byte*, std::vector<std::uint8_t>> marks_;  // by the host address of the memory
    std::vector<PendingWork> pending_;
    std::unordered_map<const machine::Transfers*, std::uint64_t> seen_;
    std::unordered_map<const Warp*, std::unordered_map<std::uint32_t, ThreadPlace>> began_;  // by accumulator
};

}  // namespace

MadeCheck make_async_check(const Request& request, const LaunchName& launch) {
    const auto starts = [](const program::Key& key) { return is_one_of(starting, key); };
    return std::ranges::any_of(request.kernel->code->keys, starts) ? std::make_unique<Async>(request, launch)
                                                                   : nullptr;
}

}  // namespace emulated::checks

// Register allocation: liveness over basic blocks, then linear scan in code order. The value of a lane depends only on the
// path of that lane, so divergence needs no special treatment.
#include <algorithm>
#include <cstddef>
#include <functional>
#include <queue>

#include "program/step.hpp"

namespace emulated::program {
namespace {

constexpr std::uint32_t none = ~0u;

struct Block {
    std::size_t begin = 0, end = 0;
    std::vector<std::size_t> next;
};

std::vector<Block> blocks_of(const Body& body) {
    std::vector<bool> leader(body.steps.size() + 1, false);
    for (std::size_t i = 0; i < body.steps.size(); ++i) {
        if (body.steps[i].label >= 0)
            leader[body.labels[static_cast<std::size_t>(body.steps[i].label)]] = true;
        if (body.steps[i].label >= 0 || does(body.steps[i].key.operation, Does::ends_flow))
            leader[i + 1] = true;
    }
    std::vector<Block> blocks;
    std::vector<std::size_t> block_at(body.steps.size() + 1, 0);
    for (std::size_t i = 0; i < body.steps.size(); ++i) {
        if (i == 0 || leader[i]) blocks.push_back({i, i, {}});
        blocks.back().end = i + 1;
        block_at[i] = blocks.size() - 1;
    }
    for (std::size_t b = 0; b < blocks.size(); ++b) {
        const Step& last = body.steps[blocks[b].end - 1];
        if (last.label >= 0) {
            const std::size_t target = body.labels[static_cast<std::size_t>(last.label)];
            if (target < body.steps.size()) blocks[b].next.push_back(block_at[target]);
        }
        if (!does(last.key.operation, Does::ends_flow) && b + 1 < blocks.size())
            blocks[b].next.push_back(b + 1);
    }
    return blocks;
}

struct Interval {
    std::uint32_t reg = 0;
    std::size_t from = static_cast<std::size_t>(-1), to = 0;
};

// Finds the intervals in which registers are live. Step i reads at position 2i and writes at 2i + 1, so that a source
// that is used for the last time may share its place with a result. Registers are followed from the blocks that read
// them back to those that write them, so the work grows with the length of lifetimes and not with registers times
// blocks.
class Liveness {
  public:
    Liveness(const Body& body, std::vector<Block> blocks)
        : body_(body), blocks_(std::move(blocks)), intervals_(body.register_bytes.size()) {}

    std::vector<Interval> intervals() {
        for (std::uint32_t reg = 0; reg < intervals_.size(); ++reg) intervals_[reg].reg = reg;
        for (std::size_t i = 0; i < body_.steps.size(); ++i) {
            body_.steps[i].each_use([&](std::uint32_t reg) { touch(reg, 2 * i); });
            body_.steps[i].each_result([&](std::uint32_t reg) { touch(reg, 2 * i + 1); });
        }
        find_crossing();
        before_.resize(blocks_.size());
        for (std::size_t b = 0; b < blocks_.size(); ++b) {
            for (const std::size_t next : blocks_[b].next) before_[next].push_back(b);
        }
        live_.assign(blocks_.size(), none);
        written_.assign(blocks_.size(), none);
        for (std::uint32_t k = 0; k < crossing_.size(); ++k) {
            follow(k);
            reads_unwritten_ = reads_unwritten_ || live_[0] == k;
        }
        return std::move(intervals_);
    }
    /// True if a register is live at the start.
    bool reads_unwritten() const { return reads_unwritten_; }

  private:
    void touch(std::uint32_t reg, std::size_t at) {
        intervals_[reg].from = std::min(intervals_[reg].from, at);
        intervals_[reg].to = std::max(intervals_[reg].to, at);
    }

    // Finds the registers that each block writes, and those that it reads before it has written them completely. Only
    // the latter can be live between blocks.
    void find_crossing() {
        constexpr auto never = static_cast<std::size_t>(-1);
        std::vector<std::size_t> read(body_.register_bytes.size(), never),
            wrote = read;  // by register: the last block that does so
        std::vector<std::uint32_t> number(body_.register_bytes.size(), none);
        std::vector<std::pair<std::uint32_t, std::size_t>> writes;
        for (std::size_t b = 0; b < blocks_.size(); ++b) {
            const auto use = [&](std::uint32_t reg) {
                if (wrote[reg] == b || read[reg] == b) return;
                read[reg] = b;
                if (number[reg] == none) {
                    number[reg] = static_cast<std::uint32_t>(crossing_.size());
                    crossing_.push_back({reg, {}, {}});
                }
                crossing_[number[reg]].reads.push_back(b);
            };
            const auto write = [&](std::uint32_t reg) {
                if (wrote[reg] == b) return;
                wrote[reg] = b;
                writes.emplace_back(reg, b);
            };
            for (std::size_t i = blocks_[b].begin; i < blocks_[b].end; ++i) {
                body_.steps[i].each_use(use);
                if (body_.steps[i].partial)
                    body_.steps[i].each_result(use);
                else
                    body_.steps[i].each_result(write);
            }
        }
        for (const auto& [reg, b] : writes) {
            if (number[reg] != none) crossing_[number[reg]].writes.push_back(b);
        }
    }

    void follow(std::uint32_t k) {
        const Crossing& crossing = crossing_[k];
        for (const std::size_t b : crossing.writes) written_[b] = k;
        std::vector<std::size_t> open;
        const auto live_in = [&](std::size_t b) {
            if (live_[b] == k) return;
            live_[b] = k;
            open.push_back(b);
        };
        for (const std::size_t b : crossing.reads) live_in(b);
        while (!open.empty()) {
            const std::size_t b = open.back();
            open.pop_back();
            touch(crossing.reg, 2 * blocks_[b].begin);
            for (const std::size_t before : before_[b]) {
                touch(crossing.reg, 2 * blocks_[before].end - 1);
                if (written_[before] != k) live_in(before);
            }
        }
    }

    // A register that is live between blocks: the blocks that read it before writing it, and those that write it.
    struct Crossing {
        std::uint32_t reg;
        std::vector<std::size_t> reads, writes;
    };

    const Body& body_;
    std::vector<Block> blocks_;
    std::vector<Interval> intervals_;
    bool reads_unwritten_ = false;
    std::vector<std::vector<std::size_t>> before_;  // predecessors, by block
    std::vector<Crossing> crossing_;
    std::vector<std::uint32_t> live_, written_;  // by block: the last crossing that is live, or written
};

// Adds to each pair of save_frame and restore_frame the registers that are written before the call and read after it.
// `intervals` are sorted by their start.
void keep_live(Body& body, const std::vector<Interval>& intervals, const std::vector<std::uint32_t>& place) {
    std::vector<const Interval*> begun;
    auto next = intervals.begin();
    for (std::size_t save = 0; save < body.steps.size(); ++save) {
        if (body.steps[save].key.operation != Operation::save_frame) continue;
        std::size_t restore = save;
        while (body.steps[restore].key.operation != Operation::restore_frame) ++restore;
        for (; next != intervals.end() && next->from < 2 * save; ++next) begun.push_back(&*next);
        std::erase_if(begun, [&](const Interval* interval) { return interval->to <= 2 * restore; });
        for (const Interval* interval : begun) {
            const std::uint32_t bytes = body.register_bytes[interval->reg];
            for (const std::size_t step : {save, restore})
                body.steps[step].kept.push_back({place[interval->reg], bytes});
        }
    }
}

// The maximum number of live 32-bit registers, as a GPU counts them: values of 16 bits take one, of 64 bits two; predicates
// are separate.
std::uint32_t most_alive(const std::vector<Interval>& intervals, const std::vector<std::uint8_t>& bytes) {
    std::vector<std::pair<std::size_t, std::int64_t>> changes;
    for (const Interval& interval : intervals) {
        const std::int64_t registers = (bytes[interval.reg] + 3) / 4;
        changes.emplace_back(interval.from, registers);
        changes.emplace_back(interval.to + 1, -registers);
    }
    std::sort(changes.begin(), changes.end());  // at equal positions, ends come before begins
    std::int64_t alive = 0;
    std::int64_t most = 0;
    for (const auto& [at, change] : changes) most = std::max(most, alive += change);
    return static_cast<std::uint32_t>(most);
}

}  // namespace

Allocated allocate_registers(Body& body, std::uint32_t base, std::vector<std::uint32_t>& place) {
    place.assign(body.register_bytes.size(), 0);
    Liveness liveness(body, blocks_of(body));
    std::vector<Interval> intervals = liveness.intervals();
    std::erase_if(intervals, [](const Interval& i) { return i.from == static_cast<std::size_t>(-1); });
    const std::uint32_t alive = most_alive(intervals, body.register_bytes);
    for (Interval& interval : intervals) {
        if (!body.unshared.empty() && body.unshared[interval.reg])
            interval = {interval.reg, 0, 2 * body.steps.size()};
    }
    std::ranges::sort(intervals, {}, &Interval::from);

    std::uint64_t at = base;
    for (const std::uint32_t bytes : {0u, 2u, 4u, 8u}) {
        const std::uint32_t size = bytes == 0 ? 4 : 32 * bytes;
        using Active = std::pair<std::size_t, std::uint32_t>;  // (end, slot)
        std::priority_queue<Active, std::vector<Active>, std::greater<>> active;
        std::vector<std::uint32_t> free;
        std::uint32_t slots = 0;
        for (const Interval& interval : intervals) {
            if (body.register_bytes[interval.reg] != bytes) continue;
            for (; !active.empty() && active.top().first < interval.from; active.pop())
                free.push_back(active.top().second);
            std::uint32_t slot = slots;
            if (free.empty()) {
                ++slots;
            } else {
                slot = free.back();
                free.pop_back();
            }
            place[interval.reg] = static_cast<std::uint32_t>(at + std::uint64_t{slot} * size);
            active.emplace(interval.to, slot);
        }
        at += (std::uint64_t{slots} * size + 63) / 64 * 64;
    }
    keep_live(body, intervals, place);
    return {at - base, alive, liveness.reads_unwritten()};
}

}  // namespace emulated::program

// Liveness over basic blocks, then linear scan over the text order. What a lane keeps in its lane of a place
// depends on that lane's own path only, so divergence does not disturb this.
#include <algorithm>
#include <cstddef>

#include "program/step.hpp"

namespace emulated::program {
namespace {

constexpr std::uint32_t none = ~0u;

struct Block {
    std::size_t begin = 0, end = 0;
    std::vector<std::size_t> next;
};

template <class Visit>
void each_use(const Step& step, Visit&& visit) {
    const auto one = [&](const Ref& ref) {
        if (ref.kind == Ref::Kind::virtual_register) visit(ref.index);
    };
    for (const Ref& ref : step.sources) one(ref);
    if (step.listed && !step.list_is_result) std::for_each(step.list.begin(), step.list.end(), one);
}

template <class Visit>
void each_result(const Step& step, Visit&& visit) {
    const auto one = [&](const Ref& ref) {
        if (ref.kind == Ref::Kind::virtual_register) visit(ref.index);
    };
    for (const Ref& ref : step.results) one(ref);
    if (step.listed && step.list_is_result) std::for_each(step.list.begin(), step.list.end(), one);
}

std::vector<Block> blocks_of(const Body& body) {
    std::vector<bool> leader(body.steps.size() + 1, false);
    for (std::size_t i = 0; i < body.steps.size(); ++i) {
        if (body.steps[i].label >= 0)
            leader[body.labels[static_cast<std::size_t>(body.steps[i].label)]] = true;
        if (body.steps[i].label >= 0 || ends_flow(body.steps[i])) leader[i + 1] = true;
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
        if (!ends_flow(last) && b + 1 < blocks.size()) blocks[b].next.push_back(b + 1);
    }
    return blocks;
}

struct Interval {
    std::uint32_t reg = 0;
    std::size_t from = static_cast<std::size_t>(-1), to = 0;
};

// A use of step i is at 2i, a result at 2i + 1: a source that dies may share its place with the result.
class Liveness {
  public:
    Liveness(const Body& body, std::vector<Block> blocks) : body_(body), blocks_(std::move(blocks)) {}

    std::vector<Interval> intervals() {
        find_crossing();
        solve();
        std::vector<Interval> made(body_.register_bytes.size());
        const auto touch = [&](std::uint32_t reg, std::size_t at) {
            made[reg].from = std::min(made[reg].from, at);
            made[reg].to = std::max(made[reg].to, at);
        };
        for (std::size_t b = 0; b < blocks_.size(); ++b) {
            for (std::size_t i = blocks_[b].begin; i < blocks_[b].end; ++i) {
                each_use(body_.steps[i], [&](std::uint32_t reg) { touch(reg, 2 * i); });
                each_result(body_.steps[i], [&](std::uint32_t reg) { touch(reg, 2 * i + 1); });
            }
            for (std::size_t k = 0; k < crossing_.size(); ++k) {
                if (in_[b][k]) touch(crossing_[k], 2 * blocks_[b].begin);
                if (out_[b][k]) touch(crossing_[k], 2 * blocks_[b].end - 1);
            }
        }
        for (std::uint32_t reg = 0; reg < made.size(); ++reg) made[reg].reg = reg;
        return made;
    }

  private:
    // Only registers that some block reads before it writes them can be live between blocks.
    void find_crossing() {
        number_.assign(body_.register_bytes.size(), none);
        std::vector<std::size_t> written(body_.register_bytes.size(), static_cast<std::size_t>(-1));
        for (std::size_t b = 0; b < blocks_.size(); ++b) {
            for (std::size_t i = blocks_[b].begin; i < blocks_[b].end; ++i) {
                const auto read = [&](std::uint32_t reg) {
                    if (written[reg] == b || number_[reg] != none) return;
                    number_[reg] = static_cast<std::uint32_t>(crossing_.size());
                    crossing_.push_back(reg);
                };
                each_use(body_.steps[i], read);
                if (body_.steps[i].partial)
                    each_result(body_.steps[i], read);
                else
                    each_result(body_.steps[i], [&](std::uint32_t reg) { written[reg] = b; });
            }
        }
    }

    void solve() {
        const std::size_t n = crossing_.size();
        std::vector<std::vector<bool>> made(blocks_.size(), std::vector<bool>(n)), read = made;
        in_ = out_ = made;
        for (std::size_t b = 0; b < blocks_.size(); ++b) {
            for (std::size_t i = blocks_[b].begin; i < blocks_[b].end; ++i) {
                const auto use = [&](std::uint32_t reg) {
                    if (number_[reg] != none && !made[b][number_[reg]]) read[b][number_[reg]] = true;
                };
                each_use(body_.steps[i], use);
                if (body_.steps[i].partial)
                    each_result(body_.steps[i], use);
                else
                    each_result(body_.steps[i], [&](std::uint32_t reg) {
                        if (number_[reg] != none) made[b][number_[reg]] = true;
                    });
            }
        }
        for (bool changed = true; changed;) {
            changed = false;
            for (std::size_t b = blocks_.size(); b-- > 0;) {
                for (std::size_t k = 0; k < n; ++k) {
                    bool out = false;
                    for (const std::size_t next : blocks_[b].next) out = out || in_[next][k];
                    const bool in = read[b][k] || (out && !made[b][k]);
                    if (out != out_[b][k] || in != in_[b][k]) changed = true;
                    out_[b][k] = out;
                    in_[b][k] = in;
                }
            }
        }
    }

    const Body& body_;
    std::vector<Block> blocks_;
    std::vector<std::uint32_t> crossing_, number_;
    std::vector<std::vector<bool>> in_, out_;
};

// The registers that the caller reads after the call and has written before it.
void keep_live(Body& body, const std::vector<Interval>& intervals, const std::vector<std::uint32_t>& place) {
    for (std::size_t save = 0; save < body.steps.size(); ++save) {
        if (body.steps[save].key.operation != Operation::save_frame) continue;
        std::size_t restore = save;
        while (body.steps[restore].key.operation != Operation::restore_frame) ++restore;
        for (const Interval& interval : intervals) {
            if (interval.from >= 2 * save || interval.to <= 2 * restore) continue;
            const std::uint32_t bytes = body.register_bytes[interval.reg];
            for (const std::size_t step : {save, restore})
                body.steps[step].kept.push_back({place[interval.reg], bytes, bytes});
        }
    }
}

// As a GPU holds them: what has 16 bits takes a register, what has 64 two, predicates have a file of their
// own.
std::uint32_t most_alive(const std::vector<Interval>& intervals, const std::vector<std::uint8_t>& bytes) {
    std::vector<std::pair<std::size_t, std::int64_t>> changes;
    for (const Interval& interval : intervals) {
        const std::int64_t registers = (bytes[interval.reg] + 3) / 4;
        changes.emplace_back(interval.from, registers);
        changes.emplace_back(interval.to + 1, -registers);
    }
    std::sort(changes.begin(), changes.end());  // at one place, what ends makes room first
    std::int64_t alive = 0;
    std::int64_t most = 0;
    for (const auto& [at, change] : changes) most = std::max(most, alive += change);
    return static_cast<std::uint32_t>(most);
}

}  // namespace

Allocated allocate_registers(Body& body, std::uint32_t base, std::vector<std::uint32_t>& place) {
    place.assign(body.register_bytes.size(), 0);
    std::vector<Interval> intervals = Liveness(body, blocks_of(body)).intervals();
    std::erase_if(intervals, [](const Interval& i) { return i.from == static_cast<std::size_t>(-1); });
    std::sort(intervals.begin(), intervals.end(),
              [](const Interval& a, const Interval& b) { return a.from < b.from; });

    std::uint32_t at = base;
    for (const std::uint32_t bytes : {0u, 2u, 4u, 8u}) {
        const std::uint32_t size = bytes == 0 ? 4 : 32 * bytes;
        std::vector<std::pair<std::size_t, std::uint32_t>> active;  // (end, slot)
        std::vector<std::uint32_t> free;
        std::uint32_t slots = 0;
        for (const Interval& interval : intervals) {
            if (body.register_bytes[interval.reg] != bytes) continue;
            std::erase_if(active, [&](const auto& entry) {
                if (entry.first >= interval.from) return false;
                free.push_back(entry.second);
                return true;
            });
            std::uint32_t slot = slots;
            if (free.empty()) {
                ++slots;
            } else {
                slot = free.back();
                free.pop_back();
            }
            place[interval.reg] = at + slot * size;
            active.emplace_back(interval.to, slot);
        }
        at += (slots * size + 63) / 64 * 64;
    }
    keep_live(body, intervals, place);
    return {at - base, most_alive(intervals, body.register_bytes)};
}

}  // namespace emulated::program

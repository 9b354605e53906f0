// Optimises steps. Values that are constant for a launch are not computed by each thread: parameters, and copies of them
// and of special registers, are read in place.
#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <tuple>

#include "program/layout.hpp"
#include "program/step.hpp"

namespace emulated::program {
namespace {

std::vector<std::uint32_t> count_definitions(const Body& body) {
    std::vector<std::uint32_t> counts(body.register_bytes.size());
    for (const Step& step : body.steps) step.each_result([&](std::uint32_t reg) { ++counts[reg]; });
    return counts;
}

void remove(Body& body, const std::vector<bool>& gone) {
    std::vector<std::size_t> at(body.steps.size() + 1);
    std::size_t kept = 0;
    for (std::size_t i = 0; i < body.steps.size(); ++i) {
        at[i] = kept;
        if (gone[i]) continue;
        if (kept != i) body.steps[kept] = std::move(body.steps[i]);
        ++kept;
    }
    at[body.steps.size()] = kept;
    body.steps.resize(kept);
    for (std::size_t& label : body.labels) label = at[label];
}

// True for each step that starts a basic block.
std::vector<bool> leaders(const Body& body) {
    std::vector<bool> made(body.steps.size() + 1, false);
    for (const std::size_t label : body.labels) made[label] = true;
    return made;
}

class Simplifier {
  public:
    Simplifier(Body& body, Layout& layout)
        : body_(body), layout_(layout), definitions_(count_definitions(body)) {}

    void run() {
        std::vector<bool> gone(body_.steps.size(), false);
        for (std::size_t i = 0; i < body_.steps.size(); ++i) {
            Step& step = body_.steps[i];
            replace_sources(step);
            if (const auto constant = constant_of(step)) {
                constants_[step.results[0].index] = *constant;
                gone[i] = true;
            }
        }
        // In a loop, a use may precede the definition in the text.
        for (Step& step : body_.steps) replace_sources(step);
        remove(body_, gone);
    }

  private:
    void replace_sources(Step& step) const {
        for (Ref& ref : step.sources) replace(ref);
        for (std::size_t i = step.listed_results; i < step.list.size(); ++i) replace(step.list[i]);
    }

    void replace(Ref& ref) const {
        if (ref.kind != Ref::Kind::virtual_register) return;
        const auto known = constants_.find(ref.index);
        if (known != constants_.end()) ref = known->second;
    }

    // The place that holds the step's result during the whole launch, if there is one.
    std::optional<Ref> constant_of(const Step& step) {
        if (step.partial || step.results.size() != 1 || step.results[0].kind != Ref::Kind::virtual_register ||
            definitions_[step.results[0].index] != 1)
            return std::nullopt;
        if (step.key.operation == Operation::load_parameter)
            return layout_.parameter(static_cast<std::uint32_t>(step.immediate), step.key.type,
                                     body_.register_bytes[step.results[0].index]);
        if (step.key.operation == Operation::mov && step.key.type != Type::pred &&
            step.sources[0].kind == Ref::Kind::fixed)
            return step.sources[0];
        return std::nullopt;
    }

    Body& body_;
    Layout& layout_;
    std::vector<std::uint32_t> definitions_;
    std::map<std::uint32_t, Ref> constants_;
};

}  // namespace

bool is_access(const Step& step) noexcept { return step.memory && does(step.key.operation, Does::accesses); }

void simplify(Body& body, Layout& layout) { Simplifier(body, layout).run(); }

void join_addresses(Body& body, const Layout& layout) {
    struct Sum {
        Ref varying, uniform;
        bool narrow = false;
    };
    // Accesses of shared memory take only a constant base, because they must stay short.
    const auto join = [&](Step& step, const Sum& sum) {
        const auto value = layout.value_of(sum.uniform);
        if (!value && step.key.flags.has(Flag::shared)) return false;
        step.sources.back() = sum.varying;
        if (value) {
            step.immediate += static_cast<std::int64_t>(*value);
        } else {
            step.sources.push_back(sum.uniform);
            step.bits |= Instruction::has_base;
        }
        return true;
    };
    const std::vector<bool> leader = leaders(body);
    std::map<std::uint32_t, Sum> sums;  // by the register of the sum, within the basic block so far
    std::vector<bool> joined(body.register_bytes.size(), false);
    const auto forget = [&](std::uint32_t reg) {
        std::erase_if(
            sums, [&](const auto& entry) { return entry.first == reg || entry.second.varying.index == reg; });
    };
    for (std::size_t i = 0; i < body.steps.size(); ++i) {
        Step& step = body.steps[i];
        if (leader[i]) sums.clear();
        if (is_access(step) && step.sources.back().kind == Ref::Kind::virtual_register) {
            const Ref address = step.sources.back();
            const auto known = sums.find(address.index);
            if (known != sums.end() && known->second.narrow == ((step.bits & Instruction::narrow) != 0))
                joined[address.index] = join(step, known->second) || joined[address.index];
        }
        if (!sums.empty()) step.each_result(forget);
        if (step.partial || step.key != Key{Operation::add, step.key.type}) continue;
        const bool narrow = step.key.type == Type::u32;
        if ((!narrow && step.key.type != Type::u64) || step.results[0].kind != Ref::Kind::virtual_register)
            continue;
        for (const auto& [varying, uniform] :
             {std::pair{step.sources[0], step.sources[1]}, std::pair{step.sources[1], step.sources[0]}}) {
            if (varying.kind == Ref::Kind::virtual_register && varying.index != step.results[0].index &&
                layout.is_uniform(uniform))
                sums[step.results[0].index] = {varying, uniform, narrow};
        }
    }
    // Removes sums whose results are not used any more.
    std::vector<bool> used(body.register_bytes.size(), false), gone(body.steps.size(), false);
    for (const Step& step : body.steps) step.each_use([&](std::uint32_t reg) { used[reg] = true; });
    for (std::size_t i = 0; i < body.steps.size(); ++i) {
        const Step& step = body.steps[i];
        gone[i] = step.key.operation == Operation::add && step.results.size() == 1 &&
                  step.results[0].kind == Ref::Kind::virtual_register && joined[step.results[0].index] &&
                  !used[step.results[0].index];
    }
    remove(body, gone);
}

void share_addresses(Body& body) {
    const std::vector<bool> leader = leaders(body);
    // A pattern is an address register, bytes, narrow and whether the space is per thread. Kept are the first step with
    // each pattern, and the first with it for each space and base register.
    using Pattern = std::tuple<Ref::Kind, std::uint32_t, std::size_t, bool, bool>;
    using Place = std::tuple<std::uint64_t, std::uint32_t>;
    struct Seen {
        std::int32_t first;
        std::map<Place, std::int32_t> places;
    };
    std::map<Pattern, Seen> seen;
    const auto forget = [&](const Ref& ref) {
        const auto first = seen.lower_bound({ref.kind, ref.index, 0, false, false});
        auto last = first;
        while (last != seen.end() && std::get<0>(last->first) == ref.kind &&
               std::get<1>(last->first) == ref.index)
            ++last;
        seen.erase(first, last);
    };
    for (std::size_t i = 0; i < body.steps.size(); ++i) {
        Step& step = body.steps[i];
        if (leader[i] || !does(step.key.operation, Does::by_lane)) seen.clear();
        if (is_access(step) && !step.partial) {
            const bool has_base = (step.bits & Instruction::has_base) != 0;
            const Ref& address = step.sources[step.sources.size() - (has_base ? 2 : 1)];
            const std::size_t count = std::max<std::size_t>(step.list.size(), 1);
            const auto here = static_cast<std::int32_t>(i);
            const Pattern pattern{address.kind, address.index, ptx::bytes_of(step.key.type) * count,
                                  (step.bits & Instruction::narrow) != 0,
                                  step.key.flags.has(Flag::local) || step.key.flags.has(Flag::param)};
            Seen& known = seen.try_emplace(pattern, Seen{here, {}}).first->second;
            if (known.first != here) step.follows = known.first;
            const Place place{step.key.flags.digest(), has_base ? step.sources.back().index + 1 : 0};
            const auto [same, is_new] = known.places.try_emplace(place, here);
            if (!is_new) step.shares = same->second;
        }
        for (const Ref& ref : step.results) forget(ref);
        for (const Ref& ref : std::span(step.list).first(step.listed_results)) forget(ref);
    }
}

void follow_sums(Body& body) {
    std::vector<bool> sums(body.register_bytes.size(), false);
    bool any = false;
    for (const Step& step : body.steps) {
        if (step.key.operation != Operation::warpgroup_mma) continue;
        step.each_result([&](std::uint32_t reg) { sums[reg] = any = true; });
    }
    if (!any) return;
    const auto is_sum = [&](const Ref& ref) {
        return ref.kind == Ref::Kind::virtual_register && sums[ref.index];
    };
    const auto copies = [&](const Step& step) {
        return step.key.operation == Operation::mov && step.results.size() == 1 && step.sources.size() == 1 &&
               step.results[0].kind == Ref::Kind::virtual_register &&
               body.register_bytes[step.results[0].index] == 4;
    };
    for (bool more = true; more;) {  // copies of copies; in a loop a copy may precede its source in the text
        more = false;
        for (const Step& step : body.steps) {
            if (!copies(step) || !is_sum(step.sources[0]) || sums[step.results[0].index]) continue;
            sums[step.results[0].index] = more = true;
        }
    }
    for (Step& step : body.steps) {
        if (copies(step) && is_sum(step.results[0])) step.key = {Operation::move_sum};
    }
    body.unshared = std::move(sums);
}

std::map<std::size_t, std::size_t> guard_ifs(Body& body) {
    std::vector<bool> target(body.steps.size() + 1, false);
    for (const Step& step : body.steps) {
        if (step.label >= 0) target[body.labels[static_cast<std::size_t>(step.label)]] = true;
    }
    // The end of the straight-line code that contains a step. Labels, and instructions that need several lanes, end it.
    std::size_t end = body.steps.size();
    std::map<std::size_t, std::size_t> guards;
    for (std::size_t i = body.steps.size(); i-- > 0;) {
        Step& step = body.steps[i];
        if (step.key.operation == Operation::branch && end > i + 1 && end < body.steps.size() &&
            body.labels[static_cast<std::size_t>(step.label)] == end) {
            step.key.operation = Operation::guard;
            step.label = -1;
            step.bits ^= Instruction::negated;
            guards[end] = i;
        }
        if (target[i] || !does(step.key.operation, Does::by_lane)) end = i;
    }
    return guards;
}

}  // namespace emulated::program

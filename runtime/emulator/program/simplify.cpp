// What a launch fixes is not computed by every thread: parameters, and copies of them and of special
// registers, are read where they stand.
#include "program/simplify.hpp"

#include <cstddef>
#include <map>
#include <optional>
#include <tuple>

namespace emulated::program {
namespace {

std::vector<std::uint32_t> count_definitions(const Body& body) {
    std::vector<std::uint32_t> counts(body.register_bytes.size());
    for (const Step& step : body.steps) step.each_result([&](std::uint32_t reg) { ++counts[reg]; });
    return counts;
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
        // A use may stand before the definition in the text: around a loop.
        for (Step& step : body_.steps) replace_sources(step);
        remove(gone);
    }

  private:
    void replace_sources(Step& step) const {
        for (Ref& ref : step.sources) replace(ref);
        if (!step.list_is_result)
            for (std::size_t i = step.listed_results; i < step.list.size(); ++i) replace(step.list[i]);
    }

    void replace(Ref& ref) const {
        if (ref.kind != Ref::Kind::virtual_register) return;
        const auto known = constants_.find(ref.index);
        if (known != constants_.end()) ref = known->second;
    }

    // Where the value of the step's result stands from the launch on.
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

    void remove(const std::vector<bool>& gone) {
        std::vector<std::size_t> at(body_.steps.size() + 1);
        std::size_t kept = 0;
        for (std::size_t i = 0; i < body_.steps.size(); ++i) {
            at[i] = kept;
            if (gone[i]) continue;
            if (kept != i) body_.steps[kept] = std::move(body_.steps[i]);
            ++kept;
        }
        at[body_.steps.size()] = kept;
        body_.steps.resize(kept);
        for (std::size_t& label : body_.labels) label = at[label];
    }

    Body& body_;
    Layout& layout_;
    std::vector<std::uint32_t> definitions_;
    std::map<std::uint32_t, Ref> constants_;
};

}  // namespace

void simplify(Body& body, Layout& layout) { Simplifier(body, layout).run(); }

void share_addresses(Body& body) {
    std::vector<bool> leader(body.steps.size() + 1, false);
    for (const std::size_t label : body.labels) leader[label] = true;
    // (base, space, bytes, narrow) -> the step that last had them
    using Kind = std::tuple<Ref::Kind, std::uint32_t, std::uint64_t, std::size_t, bool>;
    std::map<Kind, std::int32_t> seen;
    const auto forget = [&](const Ref& ref) {
        const auto first = seen.lower_bound({ref.kind, ref.index, 0, 0, false});
        auto last = first;
        while (last != seen.end() && std::get<0>(last->first) == ref.kind &&
               std::get<1>(last->first) == ref.index)
            ++last;
        seen.erase(first, last);
    };
    for (std::size_t i = 0; i < body.steps.size(); ++i) {
        Step& step = body.steps[i];
        const Operation operation = step.key.operation;
        const bool may_part = operation >= Operation::shfl || step.label >= 0;  // others may run in between
        if (leader[i] || may_part) seen.clear();
        if ((operation == Operation::ld || operation == Operation::st) && step.memory && !step.partial) {
            const Ref& base = step.sources.back();
            const std::size_t count = step.listed ? step.list.size() : 1;
            const Kind kind{base.kind, base.index, step.key.flags.digest(),
                            ptx::bytes_of(step.key.type) * count, (step.bits & Instruction::narrow) != 0};
            const auto [known, is_new] = seen.try_emplace(kind, static_cast<std::int32_t>(i));
            if (!is_new) step.shares = known->second;
        }
        for (const Ref& ref : step.results) forget(ref);
        if (step.listed && step.list_is_result)
            for (const Ref& ref : step.list) forget(ref);
    }
}

std::map<std::size_t, std::size_t> guard_ifs(Body& body) {
    std::vector<bool> target(body.steps.size() + 1, false);
    for (const Step& step : body.steps) {
        if (step.label >= 0) target[body.labels[static_cast<std::size_t>(step.label)]] = true;
    }
    // Where the straight line that a step belongs to, labels and all that lanes do together aside, ends.
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
        if (target[i] || step.key.operation >= Operation::shfl) end = i;
    }
    return guards;
}

}  // namespace emulated::program

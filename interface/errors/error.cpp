#include <algorithm>
#include <span>

#include <fmt/format.h>

#include <bascule/interface/errors/error.hpp>

namespace bascule {

ArgumentError ArgumentError::with_argument(int index, const std::string& name) const {
    Details changed = details();
    changed.index = index;
    changed.name = name;
    return {kind_, fmt::format("argument {} '{}': {}", index + 1, name, what()), std::move(changed)};
}

const char* ArgumentError::name() const noexcept {
    constexpr const char* names[] = {"ArgumentTypeError",     "ArgumentValueError",
                                     "ArgumentOverflowError", "ArgumentKeyError",
                                     "ArgumentIndexError",    "ArgumentNotImplementedError"};
    return names[static_cast<std::size_t>(kind_)];
}

std::vector<ErrorAttribute> ArgumentError::attributes() const {
    const auto& [index, name, field, expected, got] = details();
    return {{"index", index}, {"name", name}, {"field", field}, {"expected", expected}, {"got", got}};
}

namespace {

/// The first reports, for the message: a missing wait in a loop is reported once per iteration.
std::string first_of(const std::vector<Finding>& findings) {
    constexpr std::size_t shown = 5;
    std::string text;
    for (const Finding& each : std::span(findings).first(std::min(findings.size(), shown)))
        text += (text.empty() ? "" : "\n\n") + each.report;
    if (findings.size() > shown) {
        text += fmt::format("\n\nand {} more, in the attribute `findings`. Fix the first error and rerun.",
                            findings.size() - shown);
    }
    return text;
}

}  // namespace

CheckError::CheckError(std::vector<Finding> findings)
    : Error(first_of(findings)), findings_(std::move(findings)) {}

RaceError::RaceError(std::vector<Finding> all) : CheckError(std::move(all)) {
    for (const Finding& each : findings()) {
        if (each.kind == "races") races_.push_back(each.report);
    }
}

}  // namespace bascule

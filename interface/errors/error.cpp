#include <algorithm>
#include <span>

#include <fmt/format.h>
#include <fmt/ranges.h>

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
std::string first_of(const std::vector<std::string>& races) {
    constexpr std::size_t shown = 5;
    const std::size_t count = std::min(races.size(), shown);
    std::string text = fmt::format("{}", fmt::join(std::span(races).first(count), "\n\n"));
    if (races.size() > count) {
        text += fmt::format("\n\nand {} more, in the attribute `races`. Fix the first error and rerun.",
                            races.size() - count);
    }
    return text;
}

}  // namespace

RaceError::RaceError(std::vector<std::string> races) : Error(first_of(races)), races_(std::move(races)) {}

}  // namespace bascule

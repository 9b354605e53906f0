// Functions that throw an ArgumentError.
#pragma once

#include <string_view>

#include <fmt/format.h>

#include <bascule/interface/errors/error.hpp>

namespace bascule {

using ErrorKind = ArgumentError::Kind;

/// Throws: ArgumentError with this text.
template <class... Values>
[[noreturn, gnu::cold]] void reject(ErrorKind kind, fmt::format_string<Values...> text, Values&&... values) {
    throw ArgumentError(kind, fmt::format(text, std::forward<Values>(values)...));
}

/// The same, with details.
template <class... Values>
[[noreturn, gnu::cold]] void reject(ErrorKind kind, ArgumentError::Details details,
                                    fmt::format_string<Values...> text, Values&&... values) {
    throw ArgumentError(kind, fmt::format(text, std::forward<Values>(values)...), std::move(details));
}

/// The same; `field` is the key, the option or the parameter that is wrong.
template <class... Values>
[[noreturn, gnu::cold]] void reject_field(ErrorKind kind, std::string_view field,
                                          fmt::format_string<Values...> text, Values&&... values) {
    reject(kind, {.field = std::string(field)}, text, std::forward<Values>(values)...);
}

/// Returns the result of `action`. Adds this argument to its ArgumentErrors, unless they name one already.
template <class Action>
auto naming_argument(int index, const std::string& name, const Action& action) {
    try {
        return action();
    } catch (const ArgumentError& error) {
        if (error.details().index >= 0) throw;
        throw error.with_argument(index, name);
    }
}

}  // namespace bascule

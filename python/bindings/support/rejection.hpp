// ArgumentErrors in one call.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <bascule/interface/errors/error.hpp>

namespace bascule::python {

using ErrorKind = ArgumentError::Kind;

/// Throws: ArgumentError with this text.
template <class... Values>
[[noreturn, gnu::cold]] void reject(ErrorKind kind, fmt::format_string<Values...> text, Values&&... values) {
    throw ArgumentError(kind, fmt::format(text, std::forward<Values>(values)...));
}

/// The same; `field` is the key, the option or the parameter that is wrong.
template <class... Values>
[[noreturn, gnu::cold]] void reject_field(ErrorKind kind, std::string_view field,
                                          fmt::format_string<Values...> text, Values&&... values) {
    throw ArgumentError(kind, fmt::format(text, std::forward<Values>(values)...),
                        {.field = std::string(field)});
}

}  // namespace bascule::python

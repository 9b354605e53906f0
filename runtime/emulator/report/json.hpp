// Records for other programs, as the text of JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace emulated::report {

/// What is not UTF-8, as a name in PTX or a path may be, is replaced.
inline std::string to_text(const nlohmann::json& record) {
    return record.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace emulated::report

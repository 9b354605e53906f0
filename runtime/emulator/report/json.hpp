// JSON records for other programs.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace emulated::report {

/// Replaces invalid UTF-8, which names in PTX and paths may contain.
inline std::string to_text(const nlohmann::json& record) {
    return record.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace emulated::report

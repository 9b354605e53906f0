#include <filesystem>
#include <map>
#include <optional>

#include <bascule/jit/headers/include_directives.hpp>
#include <bascule/jit/headers/memory_headers.hpp>

namespace bascule {

std::vector<std::pair<std::string, std::string>> memory_headers(const CompileOptions& options) {
    std::map<std::filesystem::path, std::string> names;
    for (const auto& [name, text] : options.headers)
        names.emplace(std::filesystem::path(name).lexically_normal(), name);
    std::vector<std::pair<std::string, std::string>> headers;
    for (const auto& [name, text] : options.headers) {
        const std::filesystem::path directory = std::filesystem::path(name).parent_path();
        const auto beside = [&](const std::string& included) -> std::optional<std::string> {
            const auto found = names.find((directory / included).lexically_normal());
            if (found == names.end() || found->second == included) return std::nullopt;
            return found->second;
        };
        headers.emplace_back(name, with_renamed_includes(text, beside));
    }
    return headers;
}

}  // namespace bascule

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <unistd.h>

#include <fmt/format.h>

#include <bascule/interface/errors/error.hpp>
#include <bascule/jit/diagnostics/diagnostics.hpp>
#include <bascule/jit/files/environment.hpp>
#include <bascule/jit/files/kept_source.hpp>
#include <bascule/jit/headers/header_manifest.hpp>

namespace bascule {
namespace {

[[noreturn]] void fail_kept(const std::string& path, int code) {
    throw FileError(
        fmt::format("`keep_sources`: cannot write {}: {}. Name a directory that you can write to, in the "
                    "option or in BASCULE_KEEP_SOURCES, or none.",
                    path, std::strerror(code)),
        path, code);
}

}  // namespace

std::string program_name(const Source& source, const CompileOptions& options) {
    std::string canonical = canonical_name(source.text);
    if (options.keep_sources.empty()) return canonical;
    return absolute_path(options.keep_sources) + canonical.substr(canonical.rfind('/'));
}

void keep_source(const Source& source, const CompileOptions& options) {
    if (options.keep_sources.empty()) return;
    const std::filesystem::path path = program_name(source, options);
    std::error_code error;
    if (std::filesystem::file_size(path, error) == source.text.size() && !error) return;  // named by its hash
    std::filesystem::create_directories(path.parent_path(), error);
    if (error) fail_kept(path.parent_path(), error.value());
    // Renamed when it is whole: another process may write the same.
    const std::string temporary = fmt::format("{}.{}", path.string(), getpid());
    errno = 0;
    std::ofstream file(temporary, std::ios::binary);
    file << source.text;
    file.close();
    if (!file) fail_kept(temporary, errno == 0 ? EIO : errno);
    std::filesystem::rename(temporary, path, error);
    if (error) fail_kept(path, error.value());
}

std::string keep_sources_from_environment() {
    return path_from_environment("BASCULE_KEEP_SOURCES").value_or("");
}

}  // namespace bascule

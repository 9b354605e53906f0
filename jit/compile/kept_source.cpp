#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <random>
#include <system_error>
#include <unistd.h>

#include <fmt/format.h>

#include <bascule/interface/errors/error.hpp>
#include <bascule/jit/compile/kept_source.hpp>
#include <bascule/jit/files/file_identity.hpp>

namespace bascule {
namespace {

[[noreturn]] void fail_kept(const std::string& path, int code) {
    throw FileError(fmt::format("`keep_sources`: cannot write {}: {}. Name a directory that you can write "
                                "to, in the option or in BASCULE_KEEP_SOURCES, or none.",
                                path, std::strerror(code)),
                    path, code);
}

}  // namespace

void keep_source(const Source& source, const CompileOptions& options) {
    if (options.keep_sources.empty()) return;
    const std::filesystem::path path = program_name(source, options);
    std::error_code error;
    const bool is_link = std::filesystem::is_symlink(path, error);
    if (!is_link && read_file(path) == source.text) return;
    std::filesystem::create_directories(path.parent_path(), error);
    if (error) fail_kept(path.parent_path(), error.value());
    // Renamed when it is complete, because another process may write the same file. A link at the path is not followed.
    std::random_device random;
    const std::string temporary = fmt::format("{}.{:08x}{:08x}", path.string(), random(), random());
    const int file = open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    std::FILE* stream = file < 0 ? nullptr : fdopen(file, "wb");
    if (stream == nullptr) fail_kept(temporary, errno);
    errno = 0;
    const bool written = std::fwrite(source.text.data(), 1, source.text.size(), stream) == source.text.size();
    const bool closed = std::fclose(stream) == 0;
    if (written && closed && std::rename(temporary.c_str(), path.c_str()) == 0) return;
    const int code = errno == 0 ? EIO : errno;
    unlink(temporary.c_str());
    fail_kept(path, code);
}

}  // namespace bascule

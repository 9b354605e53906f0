#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <system_error>
#include <unistd.h>

#include <fmt/format.h>

#include <bascule/interface/errors/rejection.hpp>
#include <bascule/interface/errors/wording.hpp>
#include <bascule/jit/files/file_identity.hpp>
#include <bascule/jit/files/paths.hpp>
#include <bascule/jit/program/program.hpp>

namespace bascule {
namespace {

[[noreturn]] void fail_kept(const std::string& path, int code) {
    throw FileError(fmt::format("`keep_sources`: cannot write {}: {}. Name a directory that you can write "
                                "to, in the option or in BASCULE_KEEP_SOURCES, or none.",
                                path, std::strerror(code)),
                    path, code);
}

/// The meaning of `#line 7 "file"` and `# 7 "file"` for the next line.
struct LineDirective {
    int line;
    bool names_file;
};

std::optional<LineDirective> line_directive(std::string_view line) {
    const auto skip = [&](std::string_view blanks) {
        line.remove_prefix(std::min(line.find_first_not_of(blanks), line.size()));
    };
    skip(" \t");
    if (!line.starts_with('#')) return {};
    line.remove_prefix(1);
    skip(" \t");
    if (line.starts_with("line ") || line.starts_with("line\t")) line.remove_prefix(5);
    skip(" \t");
    LineDirective found{};
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), found.line);
    if (error != std::errc() || found.line < 0) return {};
    line.remove_prefix(static_cast<std::size_t>(end - line.data()));
    skip(" \t\r");
    found.names_file = line.starts_with('"');
    return found;
}

}  // namespace

Source read_source(const std::string& path) {
    if (path.find('\0') != path.npos) {
        reject(ErrorKind::value, {.field = "file", .got = path},
               "the name \"{}\" has a NUL character, and no file's name has one.", shortened(path));
    }
    errno = 0;
    std::ifstream file(path, std::ios::binary);
    // Opening a directory succeeds; only reading it fails.
    const bool readable = file && (file.peek() != std::ifstream::traits_type::eof() || errno == 0);
    std::ostringstream text;
    if (readable) text << file.rdbuf();
    if (!readable) {
        const int code = errno;
        throw FileError(fmt::format("cannot read the file {}: {}.", path, std::strerror(code)), path, code);
    }
    Source source;
    source.text = text.str();
    source.name = path;
    const auto slash = path.rfind('/');
    source.directory = slash == std::string::npos ? "." : path.substr(0, std::max<std::size_t>(slash, 1));
    return source;
}

std::string_view without_byte_order_mark(std::string_view text) noexcept {
    constexpr std::string_view mark = "\xEF\xBB\xBF";
    return text.substr(text.starts_with(mark) ? mark.size() : 0);
}

std::string_view source_line_of(std::string_view text, int line) {
    for (int i = 1; i < line; ++i) {
        const std::size_t end = text.find('\n');
        if (end == text.npos) return {};
        text.remove_prefix(end + 1);
    }
    text = text.substr(0, text.find('\n'));
    if (text.ends_with('\r')) text.remove_suffix(1);
    return text;
}

int line_in_text(std::string_view text, int line) {
    int found = line;
    // The line after the last directive is `begin`; the compiler calls it `called`.
    int at = 1, begin = 1, called = 1;
    bool renamed = false;  // true if these lines belong to another file
    const auto look = [&] {
        if (!renamed && line >= called && line - called < at - begin) found = begin + line - called;
    };
    for (; !text.empty(); ++at) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        if (const auto directive = line_directive(text.substr(0, end))) {
            look();
            renamed = renamed || directive->names_file;
            begin = at + 1;
            called = directive->line;
        }
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    look();
    return found;
}

std::string canonical_name(const std::string& text) {
    return fmt::format("/bascule/{}.cu", to_string(digest_of(text)));
}

std::string program_name(const Source& source, const CompileOptions& options) {
    std::string canonical = canonical_name(source.text);
    if (options.keep_sources.empty()) return canonical;
    return absolute_path(options.keep_sources) + canonical.substr(canonical.rfind('/'));
}

void keep_source(const Source& source, const CompileOptions& options) {
    if (options.keep_sources.empty()) return;
    const std::filesystem::path path = program_name(source, options);
    std::error_code error;
    const bool is_link = std::filesystem::is_symlink(path, error);
    if (!is_link && read_file(path) == source.text) return;
    std::filesystem::create_directories(path.parent_path(), error);
    if (error) fail_kept(path.parent_path(), error.value());
    // The file is renamed when it is complete, because another process may write the same one. This replaces a link.
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

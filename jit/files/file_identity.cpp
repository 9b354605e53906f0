#include <algorithm>
#include <cerrno>
#include <cstring>
#include <elf.h>
#include <fcntl.h>
#include <fstream>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <fmt/format.h>

#include <bascule/jit/files/file_identity.hpp>

namespace bascule {
namespace {

Place place_of(const struct stat& status) {
    Place place;
    place.kind = S_ISREG(status.st_mode) ? PlaceKind::file : PlaceKind::other;
    place.identity = {status.st_dev, status.st_ino, static_cast<std::uint64_t>(status.st_size),
                      nanoseconds(status.st_mtim), nanoseconds(status.st_ctim)};
    return place;
}

constexpr std::uint64_t most_bytes = std::uint64_t{1} << 30;

constexpr std::uint64_t most_note_bytes = 1U << 16;

template <class Record>
std::optional<Record> read_record(std::ifstream& file, std::uint64_t offset) {
    Record record;
    file.seekg(static_cast<std::streamoff>(offset));
    if (!file.read(reinterpret_cast<char*>(&record), sizeof record)) return std::nullopt;
    return record;
}

constexpr std::size_t padded(std::size_t bytes) { return (bytes + 3) / 4 * 4; }

/// The GNU build ID among these notes.
std::optional<std::string> build_id_among(std::string_view notes) {
    while (notes.size() >= sizeof(Elf64_Nhdr)) {
        Elf64_Nhdr note;
        std::memcpy(&note, notes.data(), sizeof note);
        notes.remove_prefix(sizeof note);
        const std::size_t name_bytes = padded(note.n_namesz), bytes = padded(note.n_descsz);
        if (name_bytes > notes.size() || bytes > notes.size() - name_bytes) return std::nullopt;
        const std::string_view name = notes.substr(0, note.n_namesz);
        const std::string_view id = notes.substr(name_bytes, note.n_descsz);
        if (note.n_type == NT_GNU_BUILD_ID && name == std::string_view("GNU\0", 4)) {
            std::string hex;
            for (const unsigned char byte : id) hex += fmt::format("{:02x}", byte);
            return hex;
        }
        notes.remove_prefix(name_bytes + bytes);
    }
    return std::nullopt;
}

std::optional<std::string> build_id(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    const auto header = read_record<Elf64_Ehdr>(file, 0);
    if (!header || !std::equal(header->e_ident, header->e_ident + SELFMAG, ELFMAG)) return std::nullopt;
    if (header->e_ident[EI_CLASS] != ELFCLASS64) return std::nullopt;
    for (unsigned i = 0; i < header->e_phnum; ++i) {
        const auto segment =
            read_record<Elf64_Phdr>(file, header->e_phoff + std::uint64_t{i} * header->e_phentsize);
        if (!segment) return std::nullopt;
        if (segment->p_type != PT_NOTE || segment->p_filesz > most_note_bytes) continue;
        std::string notes(segment->p_filesz, '\0');
        file.seekg(static_cast<std::streamoff>(segment->p_offset));
        if (!file.read(notes.data(), static_cast<std::streamsize>(notes.size()))) return std::nullopt;
        if (auto id = build_id_among(notes)) return id;
    }
    return std::nullopt;
}

}  // namespace

Digest digest_of(std::string_view bytes) noexcept {
    const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
    return {hash.high64, hash.low64};
}

std::string to_string(const Digest& digest) { return fmt::format("{:016x}{:016x}", digest.high, digest.low); }

Place place_at(const std::string& path) noexcept {
    struct stat status {};
    if (stat(path.c_str(), &status) == 0) return place_of(status);
    const bool missing = errno == ENOENT || errno == ENOTDIR || errno == ELOOP || errno == ENAMETOOLONG;
    return {missing ? PlaceKind::missing : PlaceKind::unknown, {}};
}

PlaceKind includable_at(const std::string& path) noexcept {
    const PlaceKind kind = place_at(path).kind;
    if (kind != PlaceKind::file) return kind;
    return faccessat(AT_FDCWD, path.c_str(), R_OK, AT_EACCESS) == 0 ? kind : PlaceKind::other;
}

bool is_endless(const std::string& path) noexcept {
    struct stat status {};
    return stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode);
}

std::optional<std::string> read_file(const std::string& path) {
    // O_NONBLOCK, because a pipe that replaced the file would block this call.
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0) return std::nullopt;
    struct stat status {};
    bool good = fstat(file, &status) == 0 && S_ISREG(status.st_mode);
    std::string text;
    std::size_t got = 0;
    if (good)
        text.resize(std::min<std::uint64_t>(static_cast<std::uint64_t>(status.st_size), most_bytes) + 1);
    while (good) {
        const ssize_t count = read(file, text.data() + got, text.size() - got);
        if (count < 0 && errno == EINTR) continue;
        if (count == 0) break;
        if (count > 0) got += static_cast<std::size_t>(count);
        good = count > 0 && got <= most_bytes;
        if (got == text.size()) text.resize(2 * got);
    }
    close(file);
    if (!good) return std::nullopt;
    text.resize(got);
    return text;
}

std::int64_t now_ns() noexcept {
    timespec now{};
    clock_gettime(CLOCK_REALTIME, &now);
    return nanoseconds(now);
}

std::string library_identity(const std::string& path) {
    const Place place = place_at(path);
    if (place.kind != PlaceKind::file) return {};
    if (const auto id = build_id(path); id && id->size() >= 32) {
        return fmt::format("build {} {} {}", *id, place.identity.bytes, place.identity.modified_ns);
    }
    const std::optional<std::string> bytes = read_file(path);
    return bytes ? "content " + to_string(digest_of(*bytes)) : "";
}

}  // namespace bascule

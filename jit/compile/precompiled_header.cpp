#include <algorithm>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <map>
#include <mutex>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <fmt/format.h>

#include <bascule/interface/errors/rejection.hpp>
#include <bascule/jit/compile/precompiled_header.hpp>
#include <bascule/jit/diagnostics/diagnostics.hpp>
#include <bascule/jit/files/file_identity.hpp>
#include <bascule/jit/files/record.hpp>
#include <bascule/jit/process/fork_and_exit.hpp>
#include <bascule/jit/text/lexer.hpp>

namespace bascule {

// --- The directory of a file

/// A directory for large temporary files of this process. Made with mode 0700 in TMPDIR, or else in /dev/shm or /tmp.
/// Owns the directory and its contents and removes them. If a process was killed, the next one that makes such a
/// directory removes its files. A forked child removes nothing.
class ProcessDirectory {
  public:
    /// Returns null if `bytes` do not fit, or nothing can be written. Does not throw.
    static std::shared_ptr<const ProcessDirectory> make(std::uint64_t bytes);
    ~ProcessDirectory();
    ProcessDirectory(ProcessDirectory&&) = delete;

    const std::string& path() const noexcept { return path_; }

  private:
    ProcessDirectory(std::string path, int lock);

    std::string path_;
    int lock_;  // held as long as the process lives: it shows others that the directory is in use
    std::uint64_t fork_generation_;
};

namespace {

constexpr const char* name_prefix = "bascule-process-";

bool has_room(const std::string& directory, std::uint64_t bytes) {
    struct statvfs status {};
    return statvfs(directory.c_str(), &status) == 0 &&
           std::uint64_t{status.f_bavail} * status.f_frsize >= bytes && access(directory.c_str(), W_OK) == 0;
}

/// Prefers a file system in memory to a disk, unless TMPDIR names a directory.
std::optional<std::string> place_for(std::uint64_t bytes) {
    const char* named = std::getenv("TMPDIR");
    if (named != nullptr && *named == '/') {
        return has_room(named, bytes) ? std::optional<std::string>(named) : std::nullopt;
    }
    for (const char* directory : {"/dev/shm", "/tmp"}) {
        if (has_room(directory, bytes)) return directory;
    }
    return std::nullopt;
}

/// The descriptor that holds the lock; -1 if another process holds it, or the directory does not belong to this user.
int lock_directory(const std::string& path) {
    const int file = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat status {};
    if (file >= 0 && fstat(file, &status) == 0 && status.st_uid == geteuid() &&
        flock(file, LOCK_EX | LOCK_NB) == 0) {
        return file;
    }
    if (file >= 0) close(file);
    return -1;
}

void remove_all(const std::string& path) {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
}

/// Removes directories that killed processes left.
void sweep(const std::string& place) {
    std::error_code error;
    std::filesystem::directory_iterator entry(place, error);
    for (const std::filesystem::directory_iterator end; !error && entry != end; entry.increment(error)) {
        if (!entry->path().filename().string().starts_with(name_prefix)) continue;
        const std::string path = entry->path().string();
        const int lock = lock_directory(path);
        if (lock < 0) continue;
        remove_all(path);
        close(lock);
    }
}

}  // namespace

std::shared_ptr<const ProcessDirectory> ProcessDirectory::make(std::uint64_t bytes) {
    const std::optional<std::string> place = place_for(bytes);
    if (!place) return nullptr;
    sweep(*place);
    std::string path = *place + "/" + name_prefix + "XXXXXX";
    if (mkdtemp(path.data()) == nullptr) return nullptr;
    const int lock = lock_directory(path);
    if (lock < 0) return nullptr;
    return std::shared_ptr<const ProcessDirectory>(new ProcessDirectory(std::move(path), lock));
}

ProcessDirectory::ProcessDirectory(std::string path, int lock)
    : path_(std::move(path)), lock_(lock), fork_generation_(bascule::fork_generation()) {}

ProcessDirectory::~ProcessDirectory() {
    if (fork_generation_ == bascule::fork_generation()) remove_all(path_);
    close(lock_);
}

// --- Files

namespace {

/// The directory of a file on disk, removed after its last use.
using Directory = std::shared_ptr<const ProcessDirectory>;

/// CUB reaches 610 headers and cuda/std/array 239; cuda_fp16.h reaches about 40, too few to be worth a file.
constexpr std::size_t least_headers = 100;
/// The most disk space for all files of a process. CUB's file takes 300 MB.
constexpr std::uint64_t most_bytes = std::uint64_t{1} << 30;

struct Entry {
    enum class State : std::uint8_t { seen, writing, ready, unusable };
    State state = State::seen;
    Directory directory;
    std::uint64_t bytes = 0;
    std::uint64_t used = 0;  // the value of a counter at the last use
};

struct Table {
    std::map<std::string, Entry> entries;
    std::uint64_t uses = 0;
    std::uint64_t fork_generation = 0;
};

/// Guarded by fork_safe_mutex(). A forked child begins with an empty table, because the files belong to its parent.
Table& table() {
    static Table& table = *new Table;
    static const int at_exit = std::atexit([] {
        std::map<std::string, Entry> entries;
        const std::lock_guard lock(fork_safe_mutex());
        entries.swap(bascule::table().entries);
    });
    static_cast<void>(at_exit);
    if (table.fork_generation != fork_generation()) {
        table.fork_generation = fork_generation();
        table.entries.clear();
    }
    return table;
}

/// The part of a text before its first declaration.
struct Prefix {
    std::string directives;  // without comments and blank lines
    int lines = 0;
};

/// Returns an empty prefix for a text without declarations, and if that part ends inside an #if, because the compiler
/// then writes no file.
Prefix prefix_of(const std::string& text) {
    const LexedText lexed = lex(text);
    int open = 0;
    for (const Conditional& conditional : lexed.conditionals) {
        if (conditional.position > 0) break;
        open += conditional.kind == Conditional::Kind::begin ? 1 : 0;
        open -= conditional.kind == Conditional::Kind::end ? 1 : 0;
    }
    const Token& first = lexed.tokens.front();
    if (open != 0 || first.kind == Token::Kind::end) return {};
    Prefix prefix;
    prefix.lines = first.line - 1;
    const auto end = static_cast<std::size_t>(first.text.data() - text.data());
    for (std::size_t at = 0; at < end;) {
        const Piece piece = piece_at(text, at);
        const std::string_view words = std::string_view(text).substr(at, piece.end - at);
        if (piece.kind == Piece::Kind::blank) {
            prefix.directives += words.find('\n') == words.npos ? ' ' : '\n';
        } else if (piece.kind != Piece::Kind::comment) {
            prefix.directives += words;
        }
        at = piece.end;
    }
    return prefix;
}

/// Adds paths and contents of the headers to the key, but not their times. Returns the number of headers.
std::size_t add_headers(ByteWriter& key, const TrackedHeaders& headers) {
    for (const TrackedFile& file : headers.files) {
        key.text(file.path);
        key.text(to_string(file.digest));
    }
    for (const TrackedPlace& place : headers.places) {
        key.number(static_cast<std::uint64_t>(place.kind));
        key.text(place.path);
    }
    return headers.files.size();
}

/// Returns an empty key for a text with few headers.
std::string file_key(const Prefix& prefix, const Nvrtc& nvrtc, const std::vector<std::string>& options,
                     const std::vector<Nvrtc::Header>& texts, const HeaderManifest& headers) {
    ByteWriter key;
    key.text(nvrtc.path());
    key.text(prefix.directives);
    for (const std::string& option : options) key.text(option);
    for (const Nvrtc::Header& header : texts) {
        key.text(header.name);
        key.text(header.text);
    }
    key.text(headers.directory);
    key.text(headers.working_directory);
    std::size_t count = add_headers(key, headers.user);
    if (const auto toolkit = TrackedHeaders::from_bytes(headers.toolkit)) count += add_headers(key, *toolkit);
    return count < least_headers ? std::string() : to_string(digest_of(std::move(key).take()));
}

std::string file_in(const Directory& directory) { return directory->path() + "/headers.pch"; }

std::vector<std::string> options_for(const char* action, const Directory& directory) {
    return {fmt::format("-{}-pch={}", action, file_in(directory)), "-pch-messages=false"};
}

/// Removes the least recently used files from the table and returns them; destroying the result deletes them.
std::vector<Directory> keep_within(std::uint64_t limit, std::map<std::string, Entry>& entries) {
    std::vector<Directory> removed;
    while (true) {
        std::uint64_t total = 0;
        Entry* oldest = nullptr;
        for (auto& [key, entry] : entries) {
            if (entry.state != Entry::State::ready) continue;
            total += entry.bytes;
            if (oldest == nullptr || entry.used < oldest->used) oldest = &entry;
        }
        if (total <= limit) return removed;
        removed.push_back(std::move(oldest->directory));
        *oldest = {};
    }
}

void refuse_old(const Nvrtc& nvrtc) {
    reject(ErrorKind::value, {.field = "pch", .got = "True"},
           "the option `pch` is True: precompiled headers need NVRTC 12.8 or newer, and {} is loaded. Omit "
           "the option, or install a newer NVRTC with `pip install nvidia-cuda-nvrtc`.",
           to_string(nvrtc.version()));
}

}  // namespace

PrecompiledHeader::PrecompiledHeader(const Program& program, const Nvrtc& nvrtc,
                                     const std::vector<std::string>& options,
                                     const std::vector<Nvrtc::Header>& texts, const HeaderManifest* headers)
    : headers_(headers) {
    const std::optional<bool> asked = program.options.pch;
    if (asked == true && !nvrtc.has_precompiled_headers()) refuse_old(nvrtc);
    if (asked == false || headers == nullptr || headers->empty() || !nvrtc.has_precompiled_headers()) return;
    const Prefix prefix = prefix_of(program.source.text);
    if (prefix.directives.find("include") == std::string::npos) return;
    key_ = file_key(prefix, nvrtc, options, texts, *headers);
    if (key_.empty()) return;
    first_line_behind_ = prefix.lines + 1;
    program_name_ = program_name(program.source, program.options);
    {
        const std::lock_guard lock(fork_safe_mutex());
        const auto [found, is_new] = table().entries.try_emplace(key_);
        Entry& entry = found->second;
        if (entry.state == Entry::State::ready) {
            entry.used = ++table().uses;
            directory_ = entry.directory;
        } else if (entry.state == Entry::State::seen && (!is_new || asked == true)) {
            entry.state = Entry::State::writing;
            creates_ = true;
        }
    }
    if (creates_) directory_ = ProcessDirectory::make(most_bytes);
    if (directory_ == nullptr) return;
    nvrtc.enlarge_precompiled_header_heap();
    options_ = options_for(creates_ ? "create" : "use", directory_);
}

PrecompiledHeader::~PrecompiledHeader() {
    if (!creates_) return;
    const std::lock_guard lock(fork_safe_mutex());
    const auto entry = table().entries.find(key_);
    if (entry != table().entries.end() && entry->second.state == Entry::State::writing) {
        entry->second.state = Entry::State::unusable;
    }
}

bool PrecompiledHeader::accepts(const Nvrtc::Result& result) {
    if (options_.empty()) return true;
    const bool concerns_file = result.log.find("precompiled header") != std::string::npos ||
                               result.log.find("PCH") != std::string::npos;
    const std::vector<Diagnostic> diagnostics = parse_log(result.log);
    // A warning about a header is only given when the header is read, and would be missing later. An error in a header
    // may be caused by the file.
    const bool only_own_text = std::ranges::all_of(diagnostics, [&](const Diagnostic& each) {
        return concerns_name_expression(each) ||
               (each.file == program_name_ && each.line >= first_line_behind_);
    });
    const bool good =
        !concerns_file && only_own_text && !result.bad_option && (result.succeeded || !diagnostics.empty());
    // If a header changed meanwhile, the file does not match its key.
    const bool is_of_headers = creates_ && headers_->untouched();
    std::error_code missing;
    const std::uint64_t bytes = std::filesystem::file_size(file_in(directory_), missing);
    std::vector<Directory> removed;  // destroyed after the lock
    const std::lock_guard lock(fork_safe_mutex());
    Entry& entry = table().entries[key_];
    const bool created = is_of_headers && good && !missing;
    if (created) {
        entry = {Entry::State::ready, directory_, bytes, ++table().uses};
        creates_ = false;
        options_ = options_for("use", directory_);
        removed = keep_within(most_bytes, table().entries);
    } else if (concerns_file || (creates_ && entry.state == Entry::State::writing)) {
        removed.push_back(std::move(entry.directory));
        const bool spoilt = !concerns_file && good && !is_of_headers;  // another compile may write it
        entry = {.state = spoilt ? Entry::State::seen : Entry::State::unusable, .directory = nullptr};
    }
    return good ||
           (creates_ && result.succeeded && !concerns_file);  // a warning about a header is not a failure
}

}  // namespace bascule

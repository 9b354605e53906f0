#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <fstream>
#include <memory>
#include <random>
#include <sstream>
#include <sys/file.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

#include <fmt/format.h>

#include <bascule/jit/files/file_identity.hpp>
#include <bascule/jit/files/paths.hpp>
#include <bascule/jit/lookup/cache_directory.hpp>
#include <bascule/jit/process/compile_thread.hpp>
#include <bascule/jit/process/fork_and_exit.hpp>

namespace bascule {
namespace {

constexpr std::int64_t most_file_bytes = std::int64_t{1} << 30;
constexpr std::string_view temporary_prefix = "tmp-";
constexpr int most_publish_attempts = 3;

/// Repeats a file call while signals interrupt it, and returns its result.
template <class Call>
auto uninterrupted(Call&& call) {
    auto result = call();
    while (result < 0 && errno == EINTR) result = call();
    return result;
}

/// Owns one file descriptor.
class Descriptor {
  public:
    explicit Descriptor(int number) noexcept : number_(number) {}
    Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
    ~Descriptor() {
        if (number_ >= 0) close(number_);
    }
    int get() const noexcept { return number_; }
    explicit operator bool() const noexcept { return number_ >= 0; }

    /// Closes now, because some file systems report failed writes only then. Returns errno, or 0 for success; a close
    /// that a signal interrupted counts as success, because the file is closed.
    int close_now() noexcept { return close(std::exchange(number_, -1)) == 0 || errno == EINTR ? 0 : errno; }
    /// Returns the number without closing it.
    int release() noexcept { return std::exchange(number_, -1); }

  private:
    int number_;
};

std::string without_trailing_slashes(std::string path) {
    while (path.size() > 1 && path.ends_with('/')) path.pop_back();
    return path;
}

std::string words_for(int error) { return std::strerror(error); }

/// Root is trusted, because root can change what this process runs anyway.
bool is_trusted(uid_t owner) { return owner == geteuid() || owner == 0; }

/// Why others can replace a directory on the way to `path`; empty if nobody can.
std::string replaceable(const std::string& path) {
    std::string shared;  // a sticky directory above, in which every user can create files
    for (std::size_t slash = 0; slash != path.npos; slash = path.find('/', slash + 1)) {
        const std::string ancestor = slash == 0 ? "/" : path.substr(0, slash);
        struct stat status {};
        if (stat(ancestor.c_str(), &status) != 0) return "";  // it will be made by this user
        if (!shared.empty() && !is_trusted(status.st_uid)) {
            return fmt::format("{} belongs to another user and lies in {}, where every user can write",
                               ancestor, shared);
        }
        if ((status.st_mode & S_IWOTH) == 0) continue;
        if ((status.st_mode & S_ISVTX) == 0) {
            return fmt::format("every user can replace what is in {} (chmod +t {} would prevent it)",
                               ancestor, ancestor);
        }
        shared = ancestor;
    }
    return "";
}

/// Why entries in the directory must not be run; nothing if they may.
std::optional<std::string> distrust(const struct stat& status) {
    if (!is_trusted(status.st_uid)) return "it belongs to another user";
    if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0) return "others can write to it (chmod 700 would do)";
    return std::nullopt;
}

/// Makes the directory and its missing parents, for this user only. Returns true too if another process was faster.
bool make_directories(const std::string& path) {
    for (std::size_t slash = path.find('/', 1);; slash = path.find('/', slash + 1)) {
        const std::string ancestor = path.substr(0, slash);
        if (uninterrupted([&] { return mkdir(ancestor.c_str(), 0700); }) != 0 && errno != EEXIST &&
            errno != EISDIR) {
            // If the directory exists, some file systems report that they are read-only, or that access is denied.
            const int error = errno;
            struct stat status {};
            const bool exists = stat(ancestor.c_str(), &status) == 0;
            errno = error;
            if (!exists) return false;
        }
        if (slash == path.npos) return true;
    }
}

/// Opens the directory if it can be trusted. Sets `problem` if it exists and cannot be used.
Descriptor open_directory(const std::string& path, std::string& problem) {
    Descriptor directory(
        uninterrupted([&] { return open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC); }));
    if (!directory) {
        if (errno == ENOENT) return directory;  // nothing there yet: not a problem
        struct stat status {};
        const int error = errno;
        const bool is_link = lstat(path.c_str(), &status) == 0 && S_ISLNK(status.st_mode);
        problem = is_link ? "it is a symbolic link (name the directory itself)" : words_for(error);
        return directory;
    }
    struct stat status {};
    if (uninterrupted([&] { return fstat(directory.get(), &status); }) != 0) {
        problem = words_for(errno);
        return Descriptor(-1);
    }
    if (auto reason = distrust(status)) {
        problem = *reason;
        return Descriptor(-1);
    }
    return directory;
}

Descriptor open_or_make_directory(const std::string& path, std::string& problem) {
    Descriptor directory = open_directory(path, problem);
    if (directory || !problem.empty()) return directory;
    if (!make_directories(path)) {
        problem = fmt::format("it cannot be made: {}", words_for(errno));
        return directory;
    }
    Descriptor made = open_directory(path, problem);
    if (!made && problem.empty()) problem = words_for(ENOENT);
    return made;
}

bool is_trusted_file(const struct stat& status) {
    return S_ISREG(status.st_mode) && is_trusted(status.st_uid) && status.st_nlink == 1 &&
           (status.st_mode & (S_IWGRP | S_IWOTH)) == 0 && status.st_size <= most_file_bytes;
}

/// Returns errno, or 0.
int read_all(int file, std::string& bytes) {
    std::size_t got = 0;
    while (got < bytes.size()) {
        const ssize_t count =
            uninterrupted([&] { return ::read(file, bytes.data() + got, bytes.size() - got); });
        if (count < 0) return errno;
        if (count == 0) break;
        got += static_cast<std::size_t>(count);
    }
    bytes.resize(got);
    return 0;
}

int write_all(int file, std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t count = uninterrupted([&] { return ::write(file, bytes.data(), bytes.size()); });
        if (count < 0) return errno;
        if (count == 0) return EIO;  // no progress and no error: trying again might never end
        bytes.remove_prefix(static_cast<std::size_t>(count));
    }
    return 0;
}

/// A name that no other process and no earlier run uses; a forked child draws other numbers too.
std::string temporary_name() {
    std::random_device source;
    return fmt::format("{}{}-{:08x}{:08x}", temporary_prefix, getpid(), source(), source());
}

thread_local bool holds_lock = false;

/// State and start time of a process from /proc. The start time tells it from a later process with the same number.
struct ProcessFacts {
    char state = 0;  ///< 0: there is no such process
    std::string start;
};

ProcessFacts facts_of_process(const std::string& number) {
    std::ifstream file("/proc/" + number + "/stat");
    std::string text;
    std::getline(file, text);
    text.erase(0, text.rfind(')') + 1);  // the part after the name, which may contain anything
    std::istringstream words(text);
    ProcessFacts facts;
    words >> facts.state;
    for (int i = 0; i < 19; ++i) words >> facts.start;  // the 22nd field
    return words ? facts : ProcessFacts{};
}

/// Writes into a locked file which process holds it.
void sign(int file) {
    const std::string text = fmt::format("{} {}\n", getpid(), facts_of_process("self").start);
    if (ftruncate(file, 0) == 0) static_cast<void>(pwrite(file, text.data(), text.size(), 0));
}

/// Returns the ID of the other process that has signed the lock file, if it runs on this machine.
/// Returns 0 if that process is stopped or dead.
int running_holder(int file) {
    std::array<char, 64> bytes{};
    if (pread(file, bytes.data(), bytes.size() - 1, 0) <= 0) return 0;
    std::istringstream words(bytes.data());
    std::string number;
    std::string start;
    words >> number >> start;
    const ProcessFacts facts = facts_of_process(number);
    const bool runs =
        facts.state != 0 && std::string_view("TtZX").find(facts.state) == std::string_view::npos;
    const int holder = std::atoi(number.c_str());
    return runs && facts.start == start && holder != getpid() ? holder : 0;
}

/// Polls, because a blocking wait would have no time limit. The wait ends after `longest` unless another process that
/// runs on this machine holds the lock. A child can hold it after its parent has ended.
bool lock_within(int file, std::chrono::milliseconds longest) {
    constexpr std::chrono::milliseconds shortest_pause{1}, longest_pause{20};
    const WaitForProcess wait;
    auto end = std::chrono::steady_clock::now() + longest;
    auto pause = shortest_pause;
    while (uninterrupted([&] { return flock(file, LOCK_EX | LOCK_NB); }) != 0) {
        if (errno != EWOULDBLOCK) return false;
        if (pause == longest_pause) wait.set_process(running_holder(file));
        if (std::chrono::steady_clock::now() >= end) {
            if (running_holder(file) == 0) return false;
            end += longest;
        }
        std::this_thread::sleep_for(pause);
        pause = std::min(2 * pause, longest_pause);
    }
    sign(file);
    return true;
}

/// Writes a temporary file and renames it to `name`. Returns errno, or 0. Leaves no temporary file.
int publish_in(int directory, const std::string& name, std::string_view bytes) {
    const std::string temporary = temporary_name();
    Descriptor file(uninterrupted([&] {
        return openat(directory, temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                      0600);
    }));
    if (!file) return errno;
    // The file is not flushed to the disk: after a power failure an incomplete file fails verification.
    int error = write_all(file.get(), bytes);
    if (const int late = file.close_now(); error == 0) error = late;
    const auto rename = [&] { return renameat(directory, temporary.c_str(), directory, name.c_str()); };
    if (error == 0 && uninterrupted(rename) != 0) error = errno;
    if (error != 0) uninterrupted([&] { return unlinkat(directory, temporary.c_str(), 0); });
    return error;
}

}  // namespace

CachePlace default_cache_place() {
    if (const auto named = path_from_environment("BASCULE_CACHE_DIR")) return *named;
    const std::string caches = path_from_environment("XDG_CACHE_HOME").value_or("");
    if (caches.starts_with('/')) return caches + "/bascule";
    const std::string home = without_trailing_slashes(path_from_environment("HOME").value_or(""));
    if (!home.starts_with('/') || home == "/") return {};
    const std::string path = home + "/.cache/bascule";
    return {path, replaceable(path)};
}

CacheDirectory::CacheDirectory(std::string path) : path_(without_trailing_slashes(std::move(path))) {}

CacheDirectory::Answer CacheDirectory::read(const std::string& name, File& file, std::string& problem) const {
    const Descriptor directory = open_directory(path_, problem);
    if (!directory) return problem.empty() ? Answer::missing : Answer::unusable;
    const Descriptor opened(uninterrupted([&] {
        return openat(directory.get(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    }));
    if (!opened) {
        if (errno == ENOENT) return Answer::missing;
        if (errno == ELOOP) return Answer::refused;
        problem = words_for(errno);
        return Answer::unusable;
    }
    struct stat status {};
    if (uninterrupted([&] { return fstat(opened.get(), &status); }) != 0) {
        problem = words_for(errno);
        return Answer::unusable;
    }
    if (!is_trusted_file(status)) return Answer::refused;
    file.modified_ns = nanoseconds(status.st_mtim);
    file.bytes.resize(static_cast<std::size_t>(status.st_size));
    if (const int error = read_all(opened.get(), file.bytes); error != 0) {
        problem = words_for(error);
        return Answer::unusable;
    }
    return Answer::read;
}

std::optional<std::string> CacheDirectory::publish(const std::string& name, std::string_view bytes) const {
    int error = 0;
    for (int attempt = 0; attempt < most_publish_attempts; ++attempt) {
        std::string problem;
        const Descriptor directory = open_or_make_directory(path_, problem);
        if (!directory) return problem;
        error = publish_in(directory.get(), name, bytes);
        if (error == 0) return std::nullopt;
        if (error != ENOENT && error != ESTALE) break;  // another process removes files here
    }
    return words_for(error);
}

std::optional<std::string> CacheDirectory::list(std::vector<Listed>& files) const {
    std::string problem;
    Descriptor directory = open_directory(path_, problem);
    if (!directory) return problem.empty() ? std::nullopt : std::optional(problem);
    const std::unique_ptr<DIR, int (*)(DIR*)> entries(fdopendir(directory.get()), &closedir);
    if (entries == nullptr) return words_for(errno);
    const int number = directory.release();  // closedir closes it
    for (;;) {
        errno = 0;
        const dirent* entry = readdir(entries.get());
        if (entry == nullptr) return errno == 0 ? std::nullopt : std::optional(words_for(errno));
        struct stat status {};
        // Skips a file that was removed meanwhile.
        if (fstatat(number, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
        if (!S_ISREG(status.st_mode)) continue;
        files.push_back(
            {entry->d_name, static_cast<std::uint64_t>(status.st_size), nanoseconds(status.st_mtim)});
    }
}

std::optional<std::string> CacheDirectory::remove(const std::vector<Listed>& files) const {
    std::string problem;
    const Descriptor directory = open_directory(path_, problem);
    if (!directory) return problem.empty() ? std::nullopt : std::optional(problem);
    for (const Listed& file : files) {
        const auto unlink = [&] { return unlinkat(directory.get(), file.name.c_str(), 0); };
        if (uninterrupted(unlink) != 0 && errno != ENOENT && problem.empty()) problem = words_for(errno);
    }
    return problem.empty() ? std::nullopt : std::optional(problem);
}

void CacheDirectory::stamp(const std::string& name, std::int64_t modified_ns) const {
    std::string problem;
    const Descriptor directory = open_directory(path_, problem);
    if (!directory) return;
    const timespec times[2] = {{0, UTIME_OMIT}, {modified_ns / 1'000'000'000, modified_ns % 1'000'000'000}};
    static_cast<void>(utimensat(directory.get(), name.c_str(), times, AT_SYMLINK_NOFOLLOW));
}

std::optional<CacheDirectory::Lock> CacheDirectory::lock(const std::string& name,
                                                         std::chrono::milliseconds longest) const {
    // The parent process may hold the lock and wait for this child.
    if (holds_lock || fork_generation() > 0) return std::nullopt;
    std::string problem;
    const Descriptor directory = open_or_make_directory(path_, problem);
    if (!directory) return std::nullopt;
    Descriptor file(uninterrupted([&] {
        return openat(directory.get(), name.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    }));
    if (!file || !lock_within(file.get(), longest)) return std::nullopt;
    return Lock(*this, name, file.release());
}

CacheDirectory::Lock::Lock(const CacheDirectory& directory, std::string name, int file) noexcept
    : directory_(&directory), name_(std::move(name)), file_(file) {
    holds_lock = true;
}

CacheDirectory::Lock::Lock(Lock&& other) noexcept
    : directory_(other.directory_), name_(std::move(other.name_)), file_(std::exchange(other.file_, -1)) {}

CacheDirectory::Lock::~Lock() {
    if (file_ < 0) return;
    holds_lock = false;
    // Removed before unlocking: a process that has opened it already gets the lock of a file without a name, and then
    // finds the program on disk.
    static_cast<void>(directory_->remove({{name_, 0, 0}}));
    flock(file_, LOCK_UN);  // needed because a child that was forked meanwhile has the file open too
    close(file_);
}

bool CacheDirectory::is_temporary(std::string_view name) {
    if (!name.starts_with(temporary_prefix)) return false;
    name.remove_prefix(temporary_prefix.size());
    const std::size_t dash = name.find('-');
    return dash != 0 && dash != name.npos && name.size() == dash + 1 + 16 &&
           name.find_first_not_of("0123456789") == dash &&
           name.substr(dash + 1).find_first_not_of("0123456789abcdef") == name.npos;
}

}  // namespace bascule

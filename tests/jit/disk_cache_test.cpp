#include <algorithm>
#include <chrono>
#include <csignal>
#include <fcntl.h>
#include <fstream>
#include <random>
#include <sstream>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <bascule/jit/lookup/disk_cache.hpp>

#include "support.hpp"

namespace bascule::testing {
namespace {

namespace fs = std::filesystem;

struct Warnings {
    std::vector<std::string> texts;
    DiskCache::WarningHandler handler() {
        return [this](const std::string& text) { texts.push_back(text); };
    }
};

const Program& one_program() {
    static const Program& one = *new Program(
        program("#include <cuda/std/span>\n"
                "struct Point { float x; char c; };\n"
                "namespace ns { __global__ void scale(const float* __restrict__ x, int n, float4 f, Point p, "
                "char c,\n"
                "    bascule::array_view<const double, 3> v, bascule::masked_view<float4> m,\n"
                "    cuda::std::span<Point> s, void (*)(int), __grid_constant__ const long long l) {} }"));
    return one;
}
const Image& one_image() {
    static const Image& image = *new Image(compiler().compile(one_program()));
    return image;
}
CacheKey one_key() { return key_of(one_program(), *compiler().nvrtc()); }

std::string contents(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

std::vector<std::string> files_in(const std::string& directory) {
    std::vector<std::string> files;
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(directory, ignored))
        files.push_back(entry.path().string());
    return files;
}

void overwrite(const std::string& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

TEST_CASE("what is stored comes back whole") {
    const TemporaryDirectory directory;
    Warnings warnings;
    DiskCache cache(directory.path() + "/sub/cache", warnings.handler());
    CHECK(cache.load(one_key(), {""}).entry.image == nullptr);
    cache.store(one_key(), 0, {}, one_image());
    const auto image = cache.load(one_key(), {""}).entry.image;
    REQUIRE(image != nullptr);
    const Image& expected = one_image();
    CHECK(image->ptx == expected.ptx);
    CHECK(image->cubin == expected.cubin);
    CHECK(image->log == expected.log);
    CHECK(image->arch == expected.arch);
    CHECK(image->absent == expected.absent);
    CHECK(image->nvrtc_version == expected.nvrtc_version);
    CHECK(image->compile_milliseconds == expected.compile_milliseconds);
    REQUIRE(image->kernels.size() == 1);
    const KernelImage &got = image->kernels[0], &wanted = expected.kernels[0];
    CHECK(got.name == wanted.name);
    CHECK(got.expression == wanted.expression);
    CHECK(got.lowered_name == wanted.lowered_name);
    CHECK(got.reflected == wanted.reflected);
    CHECK(got.line == wanted.line);
    CHECK(got.signature.kernel == wanted.signature.kernel);
    CHECK(got.signature.parameters == wanted.signature.parameters);
    CHECK(got.signature.bytes == wanted.signature.bytes);
    CHECK(got.signature.parameters[7].type.layout.has_value());
    CHECK(warnings.texts.empty());
}

TEST_CASE("the directory is for its user alone, and nothing temporary stays") {
    const TemporaryDirectory directory;
    const std::string place = directory.path() + "/made";
    DiskCache cache(place, nullptr);
    cache.load(one_key(), {""});
    CHECK_FALSE(fs::exists(place));  // the directory is made when there is something to store
    const mode_t before = umask(0);
    cache.store(one_key(), 0, {}, one_image());
    umask(before);
    struct stat status {};
    REQUIRE(stat(place.c_str(), &status) == 0);
    CHECK((status.st_mode & 07777) == 0700);
    REQUIRE(files_in(place).size() == 1);
    REQUIRE(stat(files_in(place)[0].c_str(), &status) == 0);
    CHECK((status.st_mode & 07777) == 0600);
}

TEST_CASE("an entry cut at any length is a miss, and is replaced") {
    const TemporaryDirectory directory;
    Warnings warnings;
    DiskCache cache(directory.path(), warnings.handler());
    cache.store(one_key(), 0, {}, one_image());
    const std::string path = files_in(directory.path())[0];
    const std::string whole = contents(path);
    for (std::size_t length = 0; length < whole.size(); length += length < 400 ? 1 : 97) {
        CAPTURE(length);
        overwrite(path, whole.substr(0, length));
        const DiskCache::Found found = cache.load(one_key(), {""});
        CHECK(found.entry.image == nullptr);
        CHECK(found.place == 0);
    }
    // A power failure may leave a file of its full size of which the end, or everything, was never written.
    for (std::size_t written : {std::size_t{0}, whole.size() / 2, whole.size() - 1}) {
        overwrite(path, whole.substr(0, written) + std::string(whole.size() - written, '\0'));
        if (contents(path) != whole) CHECK(cache.load(one_key(), {""}).entry.image == nullptr);
    }
    overwrite(path, whole + "x");
    CHECK(cache.load(one_key(), {""}).entry.image == nullptr);
    cache.store(one_key(), 0, {}, one_image());
    CHECK(cache.load(one_key(), {""}).entry.image != nullptr);
    CHECK(contents(path) == whole);
    CHECK(warnings.texts.empty());
}

TEST_CASE("one bit that flips anywhere in an entry makes it a miss") {
    const TemporaryDirectory directory;
    DiskCache cache(directory.path(), nullptr);
    cache.store(one_key(), 0, {}, one_image());
    const std::string path = files_in(directory.path())[0];
    const std::string whole = contents(path);
    std::mt19937 random(20261121);
    for (std::size_t at = 0; at < whole.size(); ++at) {
        std::string flipped = whole;
        flipped[at] = static_cast<char>(flipped[at] ^ (1 << (random() % 8)));
        CacheEntry entry;
        CHECK_MESSAGE(read_entry(flipped, one_key(), {""}, entry) == EntryVerdict::useless, "byte ", at);
    }
}

TEST_CASE("intact bytes that say something else than an entry are a miss") {
    // The digest is right in all of these, but invalid content after it must not be trusted either.
    const std::string whole = to_bytes(one_key(), {}, one_image());
    const auto read = [&](const std::string& content, CacheEntry& entry) {
        std::string bytes = whole.substr(0, 8);
        const std::uint64_t length = content.size();
        const Digest digest = digest_of(content);
        bytes.append(reinterpret_cast<const char*>(&length), 8);
        bytes.append(reinterpret_cast<const char*>(&digest), 16);
        return read_entry(bytes + content, one_key(), {""}, entry);
    };
    const auto is_useless = [&](const std::string& content) {
        CacheEntry entry;
        return read(content, entry) == EntryVerdict::useless && entry.image == nullptr;
    };
    const std::string content = whole.substr(32);
    CHECK_FALSE(is_useless(content));
    CHECK(is_useless(content + "x"));
    CHECK(is_useless("{}"));
    for (std::size_t length = 0; length < content.size(); length += length < 400 ? 1 : 97) {
        CAPTURE(length);
        CHECK(is_useless(content.substr(0, length)));
    }
    // Impossible lengths, counts and choices must not be followed.
    const std::size_t key_bytes = 8 + one_key().text.size() + 8;
    for (std::size_t at = 0; at + 8 <= content.size(); at += at < 8 || at >= key_bytes ? 1 : key_bytes - at) {
        CAPTURE(at);
        std::string changed = content;
        changed.replace(at, 8, 8, '\xff');
        CacheEntry entry;
        read(changed, entry);  // whatever it contains, this must return
    }
}

TEST_CASE("a place that cannot be read is not written to while a damaged entry can be replaced") {
    const TemporaryDirectory directory;
    DiskCache cache(directory.path(), nullptr);
    const auto name = [](int place) { return entry_name(one_key().hash, place); };
    directory.write(name(0), "damaged");
    sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
    const std::string unreadable = directory.path() + "/" + name(1);  // opening a socket's file is an error
    REQUIRE(unreadable.size() < sizeof address.sun_path);
    std::ranges::copy(unreadable, address.sun_path);
    const int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
    REQUIRE(bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
    close(socket);
    CHECK(cache.load(one_key(), {""}).place == 0);
}

TEST_CASE("another key with the same hash is a miss") {
    const TemporaryDirectory directory;
    DiskCache cache(directory.path(), nullptr);
    cache.store(one_key(), 0, {}, one_image());
    CacheKey other = one_key();
    other.text += " ";  // the hash is unchanged: a collision
    CHECK(cache.load(other, {""}).entry.image == nullptr);
    CHECK(cache.load(one_key(), {""}).entry.image != nullptr);
}

TEST_CASE("eight header states are kept, and the ninth takes the oldest one's place") {
    const TemporaryDirectory directory, headers;
    DiskCache cache(directory.path(), nullptr);
    for (int state = 0; state < 9; ++state) {
        HeaderManifest manifest;
        manifest.user.places = {{headers.path() + "/" + std::to_string(state), PlaceKind::file}};
        const DiskCache::Found found = cache.load(one_key(), {""});
        CHECK(found.entry.image == nullptr);
        CHECK(found.place == state % 8);
        cache.store(one_key(), found.place, manifest, one_image());
        const std::string path = directory.path() + "/" +
                                 fs::path(files_in(directory.path())[0]).stem().string() + "." +
                                 std::to_string(found.place);
        const timespec times[2] = {{1000 + state, 0}, {1000 + state, 0}};
        REQUIRE(utimensat(AT_FDCWD, path.c_str(), times, 0) == 0);
    }
    CHECK(files_in(directory.path()).size() == 8);
    const auto found_in_state = [&](int state) {
        const std::string path = headers.write(std::to_string(state), "");
        const bool found = cache.load(one_key(), {""}).entry.image != nullptr;
        fs::remove(path);
        return found;
    };
    CHECK_FALSE(found_in_state(0));
    for (int state = 1; state < 9; ++state) CHECK(found_in_state(state));
}

TEST_CASE("a directory that others can write to, or that is a link, is refused with one warning") {
    const TemporaryDirectory directory;
    const std::string place = directory.path() + "/cache", link = directory.path() + "/link";
    {
        DiskCache cache(place, nullptr);
        cache.store(one_key(), 0, {}, one_image());
        REQUIRE(cache.load(one_key(), {""}).entry.image != nullptr);
    }
    fs::create_directory_symlink(place, link);
    const auto refuses = [&](const std::string& path, const char* reason) {
        Warnings warnings;
        DiskCache cache(path, warnings.handler());
        CHECK(cache.load(one_key(), {""}).entry.image == nullptr);
        cache.store(one_key(), 0, {}, one_image());
        CHECK(cache.load(one_key(), {""}).entry.image == nullptr);
        REQUIRE(warnings.texts.size() == 1);
        CHECK(contains(warnings.texts[0], directory.path()));
        CHECK(contains(warnings.texts[0], reason));
        CHECK(contains(warnings.texts[0], "BASCULE_CACHE_DIR"));
    };
    refuses(link, "symbolic link");
    refuses(link + "/", "symbolic link");
    for (const mode_t mode : {0777, 0770, 0702}) {
        chmod(place.c_str(), mode);
        refuses(place, "others can write");
    }
    chmod(place.c_str(), 0755);
    CHECK(DiskCache(place, nullptr).load(one_key(), {""}).entry.image != nullptr);
    if (geteuid() == 0) {
        REQUIRE(chown(place.c_str(), 12345, 12345) == 0);
        refuses(place, "another user");
    }
    refuses(directory.write("file", ""), "Not a directory");
}

TEST_CASE("what root owns serves everybody, and what another user owns nobody else") {
    if (geteuid() != 0) return;
    const TemporaryDirectory directory;
    const std::string place = directory.path() + "/cache";
    DiskCache cache(place, nullptr);
    cache.store(one_key(), 0, {}, one_image());
    const std::string path = files_in(place)[0];
    chmod(directory.path().c_str(), 0755);
    chmod(place.c_str(), 0755);
    chmod(path.c_str(), 0644);
    const auto found_by_another_user = [&] {
        REQUIRE(seteuid(65534) == 0);
        const bool found = cache.load(one_key(), {""}).entry.image != nullptr;
        REQUIRE(seteuid(0) == 0);
        return found;
    };
    CHECK(found_by_another_user());
    REQUIRE(chown(path.c_str(), 12345, 12345) == 0);
    CHECK_FALSE(found_by_another_user());
    REQUIRE(chown(path.c_str(), 0, 0) == 0);
    REQUIRE(chown(place.c_str(), 12345, 12345) == 0);
    CHECK_FALSE(found_by_another_user());
}

TEST_CASE("an entry that is no file of ours is a miss, and is replaced") {
    const TemporaryDirectory directory;
    const std::string place = directory.path() + "/cache";
    Warnings warnings;
    DiskCache cache(place, warnings.handler());
    cache.store(one_key(), 0, {}, one_image());
    const std::string path = files_in(place)[0], elsewhere = directory.path() + "/elsewhere";
    const auto is_replaced = [&] {
        const DiskCache::Found found = cache.load(one_key(), {""});
        CHECK(found.entry.image == nullptr);
        cache.store(one_key(), found.place, {}, one_image());
        CHECK(cache.load(one_key(), {""}).entry.image != nullptr);
    };
    fs::create_hard_link(path, elsewhere);
    is_replaced();
    CHECK(fs::hard_link_count(path) == 1);
    fs::remove(path);
    fs::create_symlink(elsewhere, path);
    is_replaced();
    CHECK(fs::is_regular_file(fs::symlink_status(path)));
    chmod(path.c_str(), 0666);
    is_replaced();
    if (geteuid() == 0) {
        REQUIRE(chown(path.c_str(), 12345, 12345) == 0);
        is_replaced();
    }
    fs::remove(path);
    REQUIRE(mkfifo(path.c_str(), 0600) == 0);
    is_replaced();
    CHECK(warnings.texts.empty());
}

TEST_CASE("a directory that vanishes between is made again") {
    const TemporaryDirectory directory;
    Warnings warnings;
    DiskCache cache(directory.path() + "/cache", warnings.handler());
    cache.store(one_key(), 0, {}, one_image());
    fs::remove_all(directory.path() + "/cache");
    CHECK(cache.load(one_key(), {""}).entry.image == nullptr);
    cache.store(one_key(), 0, {}, one_image());
    CHECK(cache.load(one_key(), {""}).entry.image != nullptr);
    CHECK(warnings.texts.empty());
}

TEST_CASE("where nothing can be written, one warning says so") {
    Warnings warnings;
    DiskCache cache({"/proc/bascule/cache"}, warnings.handler());
    for (int i = 0; i < 3; ++i) {
        CHECK(cache.load(one_key(), {""}).entry.image == nullptr);
        cache.store(one_key(), 0, {}, one_image());
    }
    CHECK(warnings.texts.size() == 1);
}

std::int64_t modified_ns(const std::string& path) {
    struct stat status {};
    REQUIRE(stat(path.c_str(), &status) == 0);
    return std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec;
}

TEST_CASE("a hit says when it was used, at most once an hour, and a clock that was wrong is put right") {
    const TemporaryDirectory directory;
    DiskCache cache(directory.path(), nullptr);
    cache.store(one_key(), 0, {}, one_image());
    const std::string path = files_in(directory.path())[0];
    const std::int64_t minute = 60'000'000'000, now = now_ns(), years = 10 * 365 * 24 * 60 * minute;
    const auto stamp_after_a_hit_at = [&](std::int64_t stamp) {
        CacheDirectory(directory.path()).stamp(fs::path(path).filename(), stamp);
        REQUIRE(modified_ns(path) == stamp);
        CHECK(cache.load(one_key(), {""}).entry.image != nullptr);
        return modified_ns(path);
    };
    CHECK(stamp_after_a_hit_at(now - 59 * minute) == now - 59 * minute);
    CHECK(stamp_after_a_hit_at(now + 59 * minute) == now + 59 * minute);
    for (const std::int64_t away : {-61 * minute, 61 * minute, -years, years}) {
        CHECK(stamp_after_a_hit_at(now + away) >= now);
        CHECK(modified_ns(path) < now + 59 * minute);
    }
}

TEST_CASE("an entry larger than the limit is not kept, and a limit that is no size is said once") {
    const TemporaryDirectory directory;
    Warnings warnings;
    DiskCache cache(directory.path() + "/cache", warnings.handler(), {.bytes = 0, .problem = "what it is"});
    for (int i = 0; i < 2; ++i) cache.store(one_key(), 0, {}, one_image());
    CHECK_FALSE(fs::exists(directory.path() + "/cache"));
    CHECK(warnings.texts == std::vector<std::string>{"what it is"});
    cache.set_limit_bytes(CacheLimit::unlimited);
    cache.store(one_key(), 0, {}, one_image());
    CHECK(cache.load(one_key(), {""}).entry.image != nullptr);
}

TEST_CASE("the list has every entry with its kernels, and says what is wrong with one") {
    const TemporaryDirectory directory;
    DiskCache cache(directory.path(), nullptr);
    std::optional<std::string> problem;
    CHECK(DiskCache(directory.path() + "/missing", nullptr).list(problem).empty());
    cache.store(one_key(), 0, {}, one_image());
    directory.write("other", "not an entry");
    const std::string name = entry_name(one_key().hash, 0);
    const std::string whole = contents(directory.path() + "/" + name);
    const auto the_problem = [&] {
        const auto entries = cache.list(problem);
        REQUIRE(entries.size() == 1);
        return entries[0].description.problem;
    };
    CHECK(the_problem().empty());
    const DiskCache::Listed entry = cache.list(problem)[0];
    CHECK(entry.name == name);
    CHECK(entry.bytes == whole.size());
    CHECK(entry.used_ns == modified_ns(directory.path() + "/" + name));
    REQUIRE(entry.description.image);
    CHECK(entry.description.image->kernels[0].expression == "ns::scale");
    CHECK(to_string(entry.description.image->arch) == "compute_80");
    CHECK(entry.description.image->nvrtc_version == one_image().nvrtc_version);
    CHECK(entry.description.image->ptx.empty());

    overwrite(directory.path() + "/" + name, whole.substr(0, whole.size() / 2));
    CHECK(the_problem() == "damaged");
    CacheKey old = key_from_text("11:bascule 0.0\n");
    overwrite(directory.path() + "/" + name, to_bytes(old, {}, one_image()));
    CHECK(contains(the_problem(), "another version"));
    fs::remove(directory.path() + "/" + name);
    overwrite(directory.path() + "/" + std::string(32, 'a') + ".0", whole);
    CHECK(contains(the_problem(), "renamed"));
    CHECK_FALSE(problem);
    chmod(directory.path().c_str(), 0777);
    CHECK(cache.list(problem).empty());
    CHECK(contains(problem.value_or(""), "others can write"));
}

TEST_CASE("an entry is adopted once, beside other header states, and only when it is intact") {
    const TemporaryDirectory from, to, headers;
    std::optional<std::string> problem;
    DiskCache source(from.path(), nullptr), target(to.path() + "/new", nullptr);
    source.store(one_key(), 0, {}, one_image());
    const std::string bytes = source.bytes_of(fs::path(files_in(from.path())[0]).filename()).value_or("");
    HeaderManifest other;
    other.user.places = {{headers.path() + "/missing", PlaceKind::file}};
    target.store(one_key(), 0, other, one_image());
    CHECK(target.load(one_key(), {""}).entry.image == nullptr);
    CHECK(target.adopt(bytes, problem));
    CHECK_FALSE(target.adopt(bytes, problem));
    CHECK_FALSE(problem);
    CHECK(target.load(one_key(), {""}).entry.image != nullptr);
    CHECK(files_in(to.path() + "/new").size() == 2);
    CHECK_FALSE(target.adopt(bytes.substr(1), problem));
    CHECK(problem == "damaged");
    CHECK_FALSE(source.bytes_of("../" + std::string(31, 'a') + ".0").has_value());
}

TEST_CASE("names that are not UTF-8 come back as they are") {
    const TemporaryDirectory directory;
    DiskCache cache(directory.path(), nullptr);
    Image image = one_image();
    image.kernels[0].name = "\xff";
    cache.store(one_key(), 0, {}, image);
    CHECK(cache.load(one_key(), {""}).entry.image->kernels[0].name == "\xff");
}

TEST_CASE("the directory is the one named, else the user's own, else none") {
    const Environment named("BASCULE_CACHE_DIR", nullptr), caches("XDG_CACHE_HOME", nullptr),
        home("HOME", "/usr");
    CHECK(default_cache_place().path == "/usr/.cache/bascule");
    for (const char* nowhere : {"", "relative", "/"}) {
        const Environment other("HOME", nowhere);
        CAPTURE(nowhere);
        CHECK(default_cache_place().path.empty());
    }
    const Environment no_home("HOME", nullptr);
    CHECK(default_cache_place().path.empty());
    const Environment relative("XDG_CACHE_HOME", "relative");
    CHECK(default_cache_place().path.empty());
    const Environment absolute("XDG_CACHE_HOME", "/caches");
    CHECK(default_cache_place().path == "/caches/bascule");
    const Environment directory("BASCULE_CACHE_DIR", "/mine");
    CHECK(default_cache_place().path == "/mine");
    const Environment off("BASCULE_CACHE_DIR", "");
    CHECK(default_cache_place().path.empty());
}

TEST_CASE("a home below a directory that everybody can write has a cache only where nobody can replace it") {
    const Environment named("BASCULE_CACHE_DIR", nullptr), caches("XDG_CACHE_HOME", nullptr);
    const TemporaryDirectory directory;
    const std::string shared = directory.path() + "/shared", own = shared + "/own";
    fs::create_directories(own);
    const Environment home("HOME", own.c_str());
    const auto problem = [&](mode_t mode) {
        REQUIRE(chmod(shared.c_str(), mode) == 0);
        CHECK(default_cache_place().path == own + "/.cache/bascule");
        return default_cache_place().problem;
    };
    CHECK(problem(0755).empty());
    CHECK(problem(01777).empty());  // like /tmp and /scratch
    CHECK(problem(0777) ==
          fmt::format("every user can replace what is in {} (chmod +t {} would prevent it)", shared, shared));
    REQUIRE(chmod(own.c_str(), 0777) == 0);
    CHECK(problem(0755).starts_with("every user can replace what is in " + own));
    REQUIRE(chmod(own.c_str(), 0755) == 0);
    if (geteuid() == 0) {  // only root can change the owner
        REQUIRE(chown(own.c_str(), 12345, 12345) == 0);
        CHECK(problem(01777) ==
              fmt::format("{} belongs to another user and lies in {}, where every user can write", own,
                          shared));
    }
}

TEST_CASE("a place with a problem keeps nothing and says so once") {
    const TemporaryDirectory directory;
    Warnings warnings;
    DiskCache cache({directory.path() + "/new", "it may not be"}, warnings.handler());
    for (int i = 0; i < 2; ++i) {
        CHECK(cache.load(one_key(), {""}).entry.image == nullptr);
        cache.store(one_key(), 0, {}, one_image());
    }
    REQUIRE(warnings.texts.size() == 1);
    CHECK(warnings.texts[0].starts_with("Compiled programs cannot be kept in " + directory.path() +
                                        "/new: it may not be. They are compiled again in each process"));
    std::optional<std::string> problem;
    CHECK(cache.list(problem).empty());
    CHECK(problem == "it may not be");
    CHECK_FALSE(fs::exists(directory.path() + "/new"));
}

/// A process that holds a lock as another process of Bascule would, until it is told to release it or is killed.
class Holder {
  public:
    /// `signature` replaces what a holder writes into the file.
    explicit Holder(const std::string& path, const std::string& signature = "") {
        int ready[2], end[2];
        REQUIRE(pipe(ready) == 0);
        REQUIRE(pipe(end) == 0);
        process_ = fork();
        if (process_ == 0) {
            close(end[1]);
            const int file = open(path.c_str(), O_RDWR | O_CREAT, 0600);
            flock(file, LOCK_EX);
            std::string fields;
            std::getline(std::ifstream("/proc/self/stat"), fields);
            std::istringstream words(fields.substr(fields.rfind(')') + 1));
            std::string start;
            for (int i = 0; i < 20; ++i) words >> start;
            const std::string mine = signature.empty() ? fmt::format("{} {}", getpid(), start) : signature;
            static_cast<void>(!write(file, mine.data(), mine.size()));
            static_cast<void>(!write(ready[1], "r", 1));
            char byte = 0;
            static_cast<void>(!read(end[0], &byte, 1));
            _exit(0);
        }
        char byte = 0;
        REQUIRE(read(ready[0], &byte, 1) == 1);
        for (const int each : {ready[0], ready[1], end[0]}) close(each);
        end_ = end[1];
    }
    ~Holder() {
        kill(process_, SIGKILL);
        waitpid(process_, nullptr, 0);
        close(end_);
    }
    void send(int signal) const {
        kill(process_, signal);
        if (signal == SIGSTOP) waitpid(process_, nullptr, WUNTRACED);
    }
    void release() const { static_cast<void>(!write(end_, "e", 1)); }

  private:
    pid_t process_ = 0;
    int end_ = -1;
};

TEST_CASE("a lock is waited for as long as its process goes on, and no longer") {
    using namespace std::chrono_literals;
    const TemporaryDirectory temporary;
    const CacheDirectory directory(temporary.path() + "/cache");
    REQUIRE(directory.lock("first", 1ms));  // makes the directory
    const std::string path = temporary.path() + "/cache/held";
    {
        const Holder holder(path);
        holder.send(SIGSTOP);
        CHECK_FALSE(directory.lock("held", 50ms));
        holder.send(SIGCONT);
        std::thread releasing([&] {
            std::this_thread::sleep_for(300ms);  // longer than the wait for a stopped process
            holder.release();
        });
        CHECK(directory.lock("held", 50ms));
        releasing.join();
    }
    for (const char* other : {"1 1", "not a process", "999999999 1"}) {
        const Holder holder(path, other);
        CHECK_FALSE(directory.lock("held", 50ms));
    }
    {
        const Holder holder(path);
        holder.send(SIGKILL);
        CHECK(directory.lock("held", 10s));  // immediately: the system has unlocked it
    }
}

}  // namespace
}  // namespace bascule::testing

#include <chrono>
#include <fcntl.h>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include <doctest/doctest.h>

#include <bascule/jit/headers/header_scan.hpp>

#include "support.hpp"

namespace bascule::testing {
namespace {

HeaderScan scan(const std::string& text, const std::vector<std::string>& include_paths,
                const std::vector<SearchPath>& toolkit = {}) {
    Source source;
    source.text = text;
    CompileOptions options;
    options.include_paths = include_paths;
    return scan_headers(source, options, toolkit);
}

std::set<std::string> files_of(const HeaderManifest& manifest) {
    std::set<std::string> files;
    for (const TrackedFile& file : manifest.user.files) files.insert(file.path);
    if (const auto toolkit = TrackedHeaders::from_bytes(manifest.toolkit)) {
        for (const TrackedFile& file : toolkit->files) files.insert(file.path);
    }
    return files;
}

std::size_t count_places(const HeaderManifest& manifest) {
    const auto toolkit = TrackedHeaders::from_bytes(manifest.toolkit);
    return manifest.user.places.size() + (toolkit ? toolkit->places.size() : 0);
}

/// Makes the headers look an hour old when they were read, so that only their identities are checked.
void age(TrackedHeaders& headers) { headers.taken_ns += 3'600'000'000'000; }

void set_times(const std::string& path, const struct stat& like) {
    const timespec times[2] = {like.st_atim, like.st_mtim};
    utimensat(AT_FDCWD, path.c_str(), times, 0);
}

TEST_CASE("a text without headers has an empty manifest, which always holds") {
    const HeaderScan found = scan("__global__ void k() {}", {"/tmp"});
    CHECK(found.certain);
    CHECK(found.manifest.empty());
    CHECK(found.manifest.holds("/anywhere"));
}

TEST_CASE("headers are followed through headers, each from its own directory first") {
    const TemporaryDirectory directory;
    directory.write("a.h", "#include \"sub/b.h\"\n");
    const std::string b = directory.write("sub/b.h", "#include \"c.h\"\n");
    const std::string near = directory.write("sub/c.h", "");
    const std::string far = directory.write("c.h", "");
    const HeaderScan found = scan("#include <a.h>", {directory.path()});
    CHECK(found.certain);
    CHECK(files_of(found.manifest) == std::set<std::string>{directory.path() + "/a.h", b, near});
    std::filesystem::remove(near);
    CHECK(files_of(scan("#include <a.h>", {directory.path()}).manifest).contains(far));
}

TEST_CASE("an edit is noticed, and a touch is none") {
    const TemporaryDirectory directory;
    const std::string path = directory.write("a.h", "int a;");
    HeaderManifest manifest = scan("#include \"a.h\"", {directory.path()}).manifest;
    CHECK(manifest.holds(""));
    CHECK(manifest.untouched());
    directory.write("a.h", "int a;");
    CHECK(manifest.holds(""));
    CHECK_FALSE(manifest.untouched());
    directory.write("a.h", "int b;");
    CHECK_FALSE(manifest.holds(""));
    directory.write("a.h", "int a;");
    CHECK(manifest.holds(""));
    std::filesystem::remove(path);
    CHECK_FALSE(manifest.holds(""));
}

/// Makes a change after the next tick of the file system's clock.
template <class Change>
void later(const Change& change) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    change();
}

TEST_CASE("a link or a directory that was exchanged and put back is touched") {
    namespace fs = std::filesystem;
    const TemporaryDirectory directory;
    const fs::path root = directory.path();
    directory.write("a/deep/x.h", "int a;");
    directory.write("b/deep/x.h", "int b;");
    fs::create_directory_symlink(root / "a", root / "link");
    fs::create_symlink(root / "a/deep/x.h", root / "file.h");
    const auto untouched_after = [&](const std::string& text, const auto& change) {
        const HeaderManifest manifest = scan(text, {root / "link", root}).manifest;
        REQUIRE(manifest.untouched());
        later(change);
        CHECK(manifest.holds(""));  // the header's content is unchanged
        return manifest.untouched();
    };
    const char* deep = "#include <deep/x.h>";
    CHECK_FALSE(untouched_after(deep, [&] {
        fs::rename(root / "link", root / "kept");
        fs::create_directory_symlink(root / "b", root / "link");
        fs::rename(root / "kept", root / "link");
    }));
    CHECK_FALSE(untouched_after(deep, [&] {
        fs::rename(root / "a", root / "kept");
        fs::rename(root / "b", root / "a");
        fs::rename(root / "a", root / "b");
        fs::rename(root / "kept", root / "a");
    }));
    CHECK_FALSE(untouched_after(deep, [&] {
        fs::rename(root / "a/deep", root / "kept");
        fs::create_directory(root / "a/deep");
        fs::remove(root / "a/deep");
        fs::rename(root / "kept", root / "a/deep");
    }));
    CHECK_FALSE(untouched_after("#include <file.h>", [&] {
        fs::remove(root / "file.h");
        fs::create_symlink(root / "b/deep/x.h", root / "file.h");
        fs::remove(root / "file.h");
        fs::create_symlink(root / "a/deep/x.h", root / "file.h");
    }));
    CHECK_FALSE(untouched_after(deep, [&] {
        fs::permissions(root / "a", fs::perms::none);
        fs::permissions(root / "a", fs::perms::owner_all);
    }));
    directory.write("a/y.h", "");
    CHECK_FALSE(untouched_after("#if __has_include(<z.h>)\n#endif\n#include <y.h>", [&] {
        directory.write("a/z.h", "");
        fs::remove(root / "a/z.h");
    }));
}

TEST_CASE("files beside the way to a header touch nothing") {
    const TemporaryDirectory directory;
    directory.write("a/deep/x.h", "int a;");
    const HeaderManifest manifest = scan("#include \"a/deep/x.h\"", {directory.path()}).manifest;
    later([&] { directory.write("a/other.h", ""); });
    CHECK(manifest.untouched());
    later([&] { directory.write("a/deep/other.h", ""); });
    CHECK_FALSE(manifest.untouched());  // `deep` may have been replaced for a while
}

TEST_CASE("headers of another content are not equivalent, wherever they were looked at") {
    const TemporaryDirectory directory;
    directory.write("cuda_fp16.h", "");
    directory.write("a.h", "int a;");
    const auto manifest = [&](std::int64_t installed) {
        return scan("#include <a.h>\n#include <cuda_fp16.h>", {}, {{directory.path(), installed}}).manifest;
    };
    const HeaderManifest first = manifest(0), as_toolkit = manifest(now_ns());
    CHECK(first.toolkit.empty());
    CHECK_FALSE(as_toolkit.toolkit.empty());
    CHECK(first.is_equivalent(as_toolkit));
    directory.write("a.h", "int b;");
    CHECK_FALSE(first.is_equivalent(manifest(0)));
    directory.write("a.h", "int a;");
    CHECK(first.is_equivalent(manifest(0)));
    CHECK_FALSE(first.is_equivalent(scan("#include <a.h>", {directory.path()}).manifest));
}

TEST_CASE("a header whose size says nothing is read each time") {
    const HeaderScan found = scan("#include </proc/self/stat>", {});
    CHECK_FALSE(found.certain);
    CHECK(contains(found.doubt, "/proc/self/stat"));
    CHECK(read_file("/proc/self/stat").value_or("").size() > 10);
}

TEST_CASE("an edit with its time put back is noticed") {
    const TemporaryDirectory directory;
    const std::string path = directory.write("a.h", "int a;");
    HeaderManifest manifest = scan("#include \"a.h\"", {directory.path()}).manifest;
    age(manifest.user);
    struct stat before {};
    stat(path.c_str(), &before);
    while (true) {  // until the file system's clock has ticked
        directory.write("a.h", "int b;");
        set_times(path, before);
        struct stat after {};
        stat(path.c_str(), &after);
        if (after.st_ctim.tv_sec != before.st_ctim.tv_sec || after.st_ctim.tv_nsec != before.st_ctim.tv_nsec)
            break;
    }
    CHECK_FALSE(manifest.holds(""));
}

TEST_CASE("a file that changed within a tick of its clock is noticed") {
    const TemporaryDirectory directory;
    directory.write("a.h", "int a;");
    HeaderManifest manifest = scan("#include \"a.h\"", {directory.path()}).manifest;
    // The worst case of a coarse clock: different content with exactly the same identity.
    directory.write("a.h", "int b;");
    manifest.user.files[0].identity = place_at(manifest.user.files[0].path).identity;
    CHECK_FALSE(manifest.holds(""));
    CHECK_FALSE(manifest.untouched());
    age(manifest.user);
    CHECK(manifest.holds(""));  // an old file with its identity is trusted without reading it
}

TEST_CASE("a header that comes to stand before another is noticed, in whatever directory") {
    const TemporaryDirectory first, second;
    second.write("lib/a.h", "");
    HeaderManifest manifest = scan("#include <lib/a.h>", {first.path(), second.path()}).manifest;
    CHECK(manifest.holds(""));
    first.write("lib/other.h", "");
    CHECK_FALSE(manifest.holds(""));  // too strict: only the missing directory was recorded
    manifest = scan("#include <lib/a.h>", {first.path(), second.path()}).manifest;
    CHECK(manifest.holds(""));
    first.write("lib/a.h", "");
    CHECK_FALSE(manifest.holds(""));
}

TEST_CASE("a file that becomes another path's by a link is noticed, for #pragma once") {
    const TemporaryDirectory directory;
    const std::string one = directory.write("one.h", "#pragma once\n"),
                      two = directory.write("two.h", "#pragma once\n");
    const char* text = "#include <one.h>\n#include <two.h>\n";
    const HeaderManifest apart = scan(text, {directory.path()}).manifest;
    CHECK(apart.holds(""));
    std::filesystem::remove(two);
    std::filesystem::create_hard_link(one, two);
    CHECK_FALSE(apart.holds(""));
    const HeaderManifest together = scan(text, {directory.path()}).manifest;
    CHECK(together.holds(""));
    std::filesystem::remove(two);
    directory.write("two.h", "#pragma once\n");
    CHECK_FALSE(together.holds(""));
    CHECK(apart.holds(""));
}

TEST_CASE("what was probed for is noticed when it comes and when it goes") {
    const TemporaryDirectory directory;
    const char* text = "#if __has_include(<a.h>)\n#endif\n";
    const HeaderManifest without = scan(text, {directory.path()}).manifest;
    CHECK(without.holds(""));
    const std::string path = directory.write("a.h", "#include HEADER");  // doubtful, but not read
    CHECK_FALSE(without.holds(""));
    const HeaderScan with = scan(text, {directory.path()});
    CHECK(with.certain);
    CHECK(with.manifest.holds(""));
    directory.write("a.h", "another text");
    CHECK(with.manifest.holds(""));
    std::filesystem::remove(path);
    CHECK_FALSE(with.manifest.holds(""));
    CHECK(without.holds(""));
}

TEST_CASE("places that are missing with their directory are remembered as one") {
    const TemporaryDirectory directory;
    std::string text;
    for (int i = 0; i < 500; ++i) text += "#include <lib/part" + std::to_string(i) + ".h>\n";
    CHECK(count_places(scan(text, {directory.path()}).manifest) == 1);
}

TEST_CASE("a directory of a header's name is passed over, as the compiler does") {
    const TemporaryDirectory first, second;
    std::filesystem::create_directories(first.path() + "/a.h");
    const std::string path = second.write("a.h", "");
    const HeaderManifest manifest = scan("#include <a.h>", {first.path(), second.path()}).manifest;
    CHECK(files_of(manifest) == std::set<std::string>{path});
    std::filesystem::remove(first.path() + "/a.h");
    first.write("a.h", "");
    CHECK_FALSE(manifest.holds(""));
}

TEST_CASE("a link that leads elsewhere is noticed") {
    const TemporaryDirectory directory;
    directory.write("one/a.h", "1");
    directory.write("two/a.h", "2");
    std::filesystem::create_symlink("one", directory.path() + "/link");
    const HeaderManifest manifest = scan("#include <a.h>", {directory.path() + "/link"}).manifest;
    CHECK(manifest.holds(""));
    std::filesystem::remove(directory.path() + "/link");
    std::filesystem::create_symlink("two", directory.path() + "/link");
    CHECK_FALSE(manifest.holds(""));
}

TEST_CASE("a manifest is of its directory, and of the working directory where that was asked") {
    const TemporaryDirectory one, two;
    one.write("a.h", "");
    Source source;
    source.text = "#include \"a.h\"";
    source.directory = one.path();
    const HeaderManifest manifest = scan_headers(source, {}, {}).manifest;
    CHECK(manifest.holds(one.path()));
    CHECK_FALSE(manifest.holds(two.path()));

    const std::filesystem::path before = std::filesystem::current_path();
    std::filesystem::current_path(one.path());
    const HeaderManifest relative = scan("#include \"a.h\"", {"."}).manifest;
    CHECK(relative.holds(""));
    std::filesystem::current_path(two.path());
    CHECK_FALSE(relative.holds(""));
    std::filesystem::current_path(before);
}

TEST_CASE("in-memory headers are followed, and win over files of their name") {
    const TemporaryDirectory directory;
    directory.write("memory.h", "#include HEADER");
    const std::string deep = directory.write("deep.h", "");
    Source source;
    source.text = "#include \"memory.h\"";
    CompileOptions options;
    options.include_paths = {directory.path()};
    options.headers = {{"memory.h", "#include <deep.h>\n"}};
    const HeaderScan found = scan_headers(source, options, {});
    CHECK(found.certain);
    CHECK(files_of(found.manifest) == std::set<std::string>{deep});
}

TEST_CASE("raw options that are known to read no file leave a program certain, all others do not") {
    const auto with = [&](const std::string& extra) {
        CompileOptions options;
        options.extra = {extra};
        Source source;
        source.text = "#include <a.h>";
        return scan_headers(source, options, {}).certain;
    };
    for (const char* option : {"-w", "--fmad=false", "-diag-suppress=177", "--ptxas-options=-v",
                               "-Xptxas=-v,-O1,--maxrregcount=32", "-Xptxas=-dlcm=ca"}) {
        CAPTURE(std::string(option));
        CHECK(with(option));
    }
    for (const char* option :
         {"-include=a.h", "-pch", "--use-pch=a", "-fdevice-time-trace=t", "--undefine-macro=A",
          "--no-source-include", "--ptxas-options=--options-file=a", "-Xptxas=-optf=a", "-Xptxas=-v,-optf=a",
          "--ptxas-options=-optf a", "-Xptxas=-v -optf=a", "-Xptxas=@a", "-Xptxas", "-Xptxas=-v,",
          "-Xnvvm=-optf=a", "-optf=a", "--whatever"}) {
        CAPTURE(std::string(option));
        CHECK_FALSE(with(option));
    }
}

TEST_CASE("defines are texts too") {
    const auto with = [&](const std::string& name, const std::string& value) {
        CompileOptions options;
        options.defines = {{name, value}};
        Source source;
        source.text = "#define PASTE(a, b) a##b";
        return scan_headers(source, options, {}).certain;
    };
    CHECK(with("A", "1"));
    CHECK(with("A", "__has_"));
    CHECK_FALSE(with("A", "__has_include"));
    CHECK_FALSE(with("A(x)", "__has_include(x)"));
    CHECK_FALSE(with("A", "__TIME__"));
    CHECK_FALSE(with("A", "__has_ include"));  // which PASTE can make
}

TEST_CASE("headers that include each other, or themselves by longer and longer paths, end") {
    const TemporaryDirectory directory;
    directory.write("d/a.h", "#include \"b.h\"\n#include \"../d/a.h\"\n#include \"./a.h\"\n");
    directory.write("d/b.h", "#include \"a.h\"\n#include \"../d/../d/b.h\"\n");
    CHECK(scan("#include <d/a.h>", {directory.path()}).certain);
}

TEST_CASE("three thousand headers deep ends, without a stack that grows") {
    const TemporaryDirectory directory;
    for (int i = 0; i < 3'000; ++i) {
        directory.write(std::to_string(i) + ".h", "#include \"" + std::to_string(i + 1) + ".h\"\n");
    }
    const HeaderScan found = scan("#include \"0.h\"", {directory.path()});
    CHECK(found.certain);
    CHECK(files_of(found.manifest).size() == 3'000);
}

TEST_CASE("a pipe that takes a header's place holds nobody up") {
    const TemporaryDirectory directory;
    const std::string path = directory.write("a.h", "");
    const HeaderManifest manifest = scan("#include <a.h>", {directory.path()}).manifest;
    std::filesystem::remove(path);
    REQUIRE(mkfifo(path.c_str(), 0600) == 0);
    CHECK_FALSE(manifest.holds(""));
    CHECK(contains(message_of<FileError>([&] { scan("#include <a.h>", {directory.path()}); }),
                   "a pipe or a device"));
}

TEST_CASE("a file that came into a toolkit after its installation is a user's") {
    const TemporaryDirectory directory;
    directory.write("cuda_fp16.h", "");
    directory.write("mine.h", "int a;");
    const char* text = "#include <cuda_fp16.h>\n#include <mine.h>\n#if __has_include(<later.h>)\n#endif\n";
    const auto count = [](const std::string& toolkit) {
        const auto headers = TrackedHeaders::from_bytes(toolkit);
        return headers ? headers->files.size() : 0;
    };
    const std::int64_t installed = installed_ns(directory.path());
    CHECK(installed > place_at(directory.path() + "/cuda_fp16.h").identity.changed_ns);
    // While the installation may still be going on, no file counts as the toolkit's.
    CHECK(count(scan(text, {}, {{directory.path(), installed}}).manifest.toolkit) == 0);
    // If the installation ended now, cuda_fp16.h counts as the toolkit's, and mine.h as the user's, by their names.
    const HeaderManifest installed_now = scan(text, {}, {{directory.path(), now_ns()}}).manifest;
    CHECK(count(installed_now.toolkit) == 1);
    CHECK(installed_now.holds(""));
    directory.write("mine.h", "int b;");
    CHECK_FALSE(installed_now.holds(""));
    directory.write("mine.h", "int a;");

    // If the installation ended an hour before these files were written, both count as the user's.
    const HeaderManifest manifest =
        scan(text, {}, {{directory.path(), installed - 3'600'000'000'000}}).manifest;
    CHECK(count(manifest.toolkit) == 0);
    CHECK(manifest.holds(""));
    directory.write("mine.h", "int b;");
    CHECK_FALSE(manifest.holds(""));
    directory.write("mine.h", "int a;");
    CHECK(manifest.holds(""));
    directory.write("later.h", "");
    CHECK_FALSE(manifest.holds(""));
}

TEST_CASE("a header that appears in a toolkit is noticed, whatever this process has verified") {
    const TemporaryDirectory directory;
    directory.write("cuda_fp16.h", "");
    const std::vector<SearchPath> toolkit = {{directory.path(), now_ns()}};
    const HeaderManifest manifest =
        scan("#include <cuda_fp16.h>\n#if __has_include(<later.h>)\n#endif\n", {}, toolkit).manifest;
    CHECK(manifest.holds(""));
    directory.write("later.h", "");
    CHECK_FALSE(manifest.holds(""));
}

TEST_CASE("only what is CCCL's may wrap a probe") {
    const TemporaryDirectory directory;
    directory.write("cuda/std/version", "#define X_HAS_INCLUDE(x) __has_include(x)\n");
    directory.write("mine.h", "#define X_HAS_INCLUDE(x) __has_include(x)\n");
    CHECK(scan("#include <cuda/std/version>\n", {directory.path()}).certain);
    CHECK_FALSE(scan("#include <cuda/std/version>\n#if X_HAS_INCLUDE(<a>)\n", {directory.path()}).certain);
    CHECK_FALSE(scan("#include <mine.h>\n", {directory.path()}).certain);
}

TEST_CASE("each header that a macro may name is tracked, by definitions wherever they are") {
    const TemporaryDirectory directory;
    directory.write("first.h", "#define NEXT <third.h>\n");
    directory.write("second.h", "#undef NEXT\n");
    directory.write("third.h", "");
    const std::string text =
        "#ifdef A\n#define H \"first.h\"\n#else\n#define H \"second.h\"\n#endif\n#include H\n"
        "#ifdef NEXT\n#include NEXT\n#endif\n";
    const HeaderScan found = scan(text, {directory.path()});
    REQUIRE(found.certain);
    CHECK(found.manifest.user.files.size() == 3);
    for (const char* name : {"first.h", "second.h", "third.h"}) {
        CAPTURE(std::string(name));
        const HeaderManifest manifest = scan(text, {directory.path()}).manifest;
        CHECK(manifest.holds(""));
        directory.write(name, "#define CHANGED\n");
        CHECK_FALSE(manifest.holds(""));
        if (std::string(name) == "first.h") directory.write(name, "#define NEXT <third.h>\n");
    }
    // The compiler may define a macro such as __X, so the text does not show which header is included.
    CHECK_FALSE(
        scan("#ifndef __X\n#define __X \"first.h\"\n#endif\n#include __X\n", {directory.path()}).certain);
}

TEST_CASE("the names that Thrust composes are known, with macros of the user's in them") {
    const TemporaryDirectory directory;
    directory.write("cub/cub.cuh", "#include <thrust/sort.h>\n");
    directory.write("thrust/sort.h",
                    "#define __THRUST_ROOT thrust/__THRUST_NAME\n#define __THRUST_NAME cpp\n"
                    "#define __THRUST_HEADER(name) <__THRUST_ROOT/name>\n#include __THRUST_HEADER(sort.h)\n");
    directory.write("thrust/cpp/sort.h", "");
    directory.write("thrust/omp/sort.h", "");
    CHECK(scan("#include <cub/cub.cuh>\n", {directory.path()}).manifest.user.files.size() == 3);
    const HeaderScan found = scan("#define cpp omp\n#include <cub/cub.cuh>\n", {directory.path()});
    CHECK(found.certain);
    CHECK(found.manifest.user.files.size() == 4);
}

TEST_CASE("a manifest survives its bytes, and damaged bytes are refused or are another manifest") {
    const TemporaryDirectory directory;
    directory.write("a.h", "#include <missing.h>\n");
    const HeaderManifest manifest = scan("#include \"a.h\"", {directory.path()}).manifest;
    const std::string bytes = manifest.to_bytes();
    const auto back = HeaderManifest::from_bytes(bytes);
    REQUIRE(back);
    CHECK(back->user == manifest.user);
    CHECK(back->to_bytes() == bytes);
    for (std::size_t length = 0; length < bytes.size(); ++length) {
        CHECK_FALSE(HeaderManifest::from_bytes(bytes.substr(0, length)));
    }
    for (std::size_t at = 0; at < bytes.size(); ++at) {
        std::string flipped = bytes;
        flipped[at] = static_cast<char>(flipped[at] ^ 0x80);
        const auto other = HeaderManifest::from_bytes(flipped);
        if (other) CHECK(other->to_bytes() == flipped);
    }
}

/// The files that NVRTC reports as read. It runs in a child process, because it ends its process if it cannot write the
/// report.
std::set<std::string> files_read_by_nvrtc(const Program& program, const std::string& report) {
    const pid_t child = fork();
    if (child == 0) {
        Program traced = program;
        traced.options.extra.push_back("-fdevice-time-trace=" + report);
        try {
            bascule::compile(traced, Nvrtc(toolkit()));
        } catch (...) {
            _exit(1);
        }
        _exit(0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    REQUIRE(status == 0);
    std::ifstream file(report + ".json");
    REQUIRE(file);
    std::set<std::string> files;
    std::ostringstream text;
    text << file.rdbuf();
    const std::string trace = text.str();  // NVRTC appends to an existing report, so each has its own
    const std::regex header(R"re("detail":"([^"]*)"\},"dur":[0-9]+,"name":"Processing Header File")re");
    for (std::sregex_iterator match(trace.begin(), trace.end(), header), end; match != end; ++match) {
        std::error_code error;
        const auto path = std::filesystem::canonical((*match)[1].str(), error);
        if (!error) files.insert(path.string());  // NVRTC's built-in headers are not files
    }
    return files;
}

TEST_CASE("every header that NVRTC says it read is in the manifest") {
    const TemporaryDirectory directory, reports;
    directory.write(
        "own.h",
        "#if defined(__CUDACC_RTC__) && __has_include(<cuda_fp16.h>)\n#include \"sub/fp.h\"\n#endif\n");
    directory.write("sub/fp.h", "#include <cuda_fp16.h>\n#include \"near.h\"\n");
    directory.write("sub/near.h", "");
    for (const std::string text :
         {"#include \"own.h\"\n__global__ void k(__half* p) { *p = 1; }",
          "#include <own.h>\n#include <cooperative_groups.h>\n__global__ void k() {}",
          "#include <cub/block/block_reduce.cuh>\n#include <cuda/std/array>\n"
          "__global__ void k(int* p) { *p = cub::BlockReduce<int, 64>().Sum(*p); }"}) {
        CAPTURE(text);
        Program one = program(text);
        one.options.include_paths = {directory.path()};
        const HeaderScan found = scan_headers(one.source, one.options, installed_paths());
        CHECK(found.certain);
        std::set<std::string> tracked;
        for (const std::string& path : files_of(found.manifest)) {
            tracked.insert(std::filesystem::canonical(path).string());
        }
        const std::set<std::string> read =
            files_read_by_nvrtc(one, reports.path() + "/trace" + std::to_string(text.size()));
        // Before 13.0 the report has no headers in it.
        if (compiler().nvrtc()->version().major >= 13) CHECK(read.size() >= 3);
        for (const std::string& path : read) {
            CAPTURE(path);
            CHECK(tracked.contains(path));
        }
        CHECK(found.manifest.holds(""));
        CHECK(found.manifest.untouched());
    }
}

}  // namespace
}  // namespace bascule::testing

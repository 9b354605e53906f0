#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include <doctest/doctest.h>

#include <bascule/jit/compile/precompiled_header.hpp>
#include <bascule/jit/headers/header_scan.hpp>

#include "support.hpp"

namespace bascule::testing {
namespace {

/// A directory with many.h, which includes 120 small headers, enough for precompiling.
const TemporaryDirectory& many_headers() {
    static const TemporaryDirectory& directory = *[] {
        auto* made = new TemporaryDirectory;
        std::string all;
        for (int i = 0; i < 120; ++i) {
            const std::string name = "part" + std::to_string(i) + ".h";
            made->write(name, "inline __device__ int part" + std::to_string(i) + "() { return 1; }\n");
            all += "#include \"" + name + "\"\n";
        }
        made->write("many.h", all +
                                  "template <int i> __device__ int at(const int (&a)[3]) {\n"
                                  "    static_assert(i < 3, \"out of bounds\");\n    return a[i];\n}\n");
        return made;
    }();
    return directory;
}

constexpr const char* array_kernel = R"(
__global__ void NAME(int* x) {
    const int a[3] = {1, part0(), VALUE};
    x[0] = at<2>(a);
})";

/// A program of `text` with NAME and VALUE replaced. `pch`: its option.
Program heavy(const std::string& text, int number, std::optional<bool> pch) {
    Program made = program(text);
    made.options.pch = pch;
    made.options.lineinfo = true;
    made.options.include_paths = {many_headers().path()};
    for (const auto& [word, value] :
         {std::pair{"NAME", "k" + std::to_string(number)}, std::pair{"VALUE", std::to_string(number)}}) {
        for (std::size_t at = 0; (at = made.source.text.find(word, at)) != std::string::npos;) {
            made.source.text.replace(at, std::string(word).size(), value);
        }
    }
    return made;
}

HeaderManifest reached_by(const Program& program) {
    const HeaderScan scan = scan_headers(program.source, program.options, installed_paths());
    REQUIRE(scan.certain);
    return scan.manifest;
}

Image compile_tracked(const Program& program) {
    const HeaderManifest reached = reached_by(program);
    return bascule::compile(program, *compiler().nvrtc(), &reached);
}

/// What the next compile of a text with these headers does with a precompiled file: "create", "use" or "" (neither).
std::string next_step(const Program& program) {
    const HeaderManifest reached = reached_by(program);
    const PrecompiledHeader next(program, *compiler().nvrtc(), {}, {}, &reached);
    if (next.options().empty()) return "";
    return next.options()[0].substr(1, next.options()[0].find('-', 1) - 1);
}

bool same(const Image& a, const Image& b) {
    bool equal =
        a.ptx == b.ptx && a.cubin == b.cubin && a.log == b.log && a.kernels.size() == b.kernels.size();
    for (std::size_t i = 0; equal && i < a.kernels.size(); ++i) {
        equal = a.kernels[i].lowered_name == b.kernels[i].lowered_name &&
                a.kernels[i].reflected == b.kernels[i].reflected && a.kernels[i].line == b.kernels[i].line;
    }
    return equal;
}

bool skipped() {
    if (compiler().nvrtc()->has_precompiled_headers()) return false;
    MESSAGE("this NVRTC has no precompiled headers");
    return true;
}

TEST_CASE("images made with precompiled headers are the same bytes as those made without") {
    if (skipped()) return;
    std::vector<std::string> texts = {
        "// Blocks.\n#include <cooperative_groups.h>\n"
        "namespace cg = cooperative_groups;\n"
        "__global__ void NAME(int* x) { cg::this_thread_block().sync(); *x = VALUE; }",
        "#define HERE __FILE__\n#include <cuda/std/array>\n"
        "__global__ void NAME(int* x) {\n"
        "    cuda::std::array<int, 3> a{1, 2, VALUE};\n"
        "    for (const char* c = HERE; *c != 0; ++c) x[a[*c % 3]] = *c + __LINE__;\n"
        "}",
    };
    if (std::getenv("LONG_TESTS") != nullptr) {  // each compile takes seconds
        texts.emplace_back(
            "#include <cub/block/block_reduce.cuh>\n"
            "__global__ void NAME(const int* x, int* sum) {\n"
            "    using Reduce = cub::BlockReduce<int, 128>;\n"
            "    __shared__ typename Reduce::TempStorage storage;\n"
            "    int total = Reduce(storage).Sum(x[threadIdx.x]);\n"
            "    if (threadIdx.x == 0) *sum = total + VALUE;\n"
            "}");
    }
    for (const std::string& text : texts) {
        CAPTURE(text);
        for (int number : {1, 2}) {  // the first compile writes the precompiled header, the second reads it
            Program with = heavy(text, number, true), without = heavy(text, number, false);
            with.arch = without.arch = parse_arch("sm_80");
            CHECK(same(compile_tracked(with), compile_tracked(without)));
        }
    }
}

TEST_CASE("a header that changed while it was precompiled leaves no file, and can be precompiled again") {
    if (skipped()) return;
    const TemporaryDirectory directory;
    directory.write("value.h", "#define OF_HEADER 1\n");
    const std::string text = std::string("#include <many.h>\n#include \"value.h\"\n") + array_kernel;
    Program one = heavy(text + "__global__ void of_header(int* x) { *x = OF_HEADER; }", 1, true);
    one.options.include_paths.push_back(directory.path());
    const HeaderManifest reached = reached_by(one);
    directory.write("value.h", "#define OF_HEADER 2\n");
    bascule::compile(one, *compiler().nvrtc(), &reached);
    directory.write("value.h", "#define OF_HEADER 1\n");
    CHECK(next_step(one) == "create");
}

TEST_CASE("headers are precompiled by the second compile of them, or by the first if that is asked for") {
    if (skipped()) return;
    const std::string text = std::string("#define OF_THIS_TEST\n#include <many.h>\n") + array_kernel;
    CHECK(next_step(heavy(text, 1, false)) == "");
    CHECK(next_step(heavy(text, 1, std::nullopt)) == "");
    {
        const Program second = heavy(text, 2, std::nullopt);
        const HeaderManifest reached = reached_by(second);
        const PrecompiledHeader writing(second, *compiler().nvrtc(), {}, {}, &reached);
        REQUIRE(writing.options().size() == 2);
        CHECK(writing.options()[0].starts_with("-create-pch="));
        CHECK(next_step(heavy(text, 3, true)) == "");  // another compile is writing the file
    }
    CHECK(next_step(heavy(text, 3, true)) == "");  // a write that was abandoned is not tried again
    CHECK(next_step(heavy("#define ANOTHER\n" + text, 3, true)) == "create");
}

TEST_CASE("texts with few headers, and those whose headers are not known, have none precompiled") {
    const auto asks = [](const Program& program, const HeaderManifest* reached) {
        return !PrecompiledHeader(program, *compiler().nvrtc(), {}, {}, reached).options().empty();
    };
    if (skipped()) return;
    const Program none = heavy("__global__ void NAME() {}", 1, true);
    const Program few = heavy("#include <cuda_fp16.h>\n__global__ void NAME() {}", 1, true);
    const Program many = heavy(std::string("#include <many.h>\n") + array_kernel, 1, true);
    const Program behind =
        heavy("__device__ int x;\n#include <many.h>\n" + std::string(array_kernel), 1, true);
    const Program open =
        heavy("#if 1\n#include <many.h>\n" + std::string(array_kernel) + "\n#endif\n", 1, true);
    for (const Program& each : {none, few, behind, open}) {
        const HeaderManifest reached = reached_by(each);
        CHECK_FALSE(asks(each, &reached));
    }
    CHECK_FALSE(asks(many, nullptr));
}

TEST_CASE("threads that compile with the same headers get what each alone would") {
    if (skipped()) return;
    const std::string text = std::string("#define OF_THREADS\n#include <many.h>\n") + array_kernel;
    std::atomic<int> right{0};
    std::vector<std::thread> threads;
    for (int first : {0, 10, 20}) {
        threads.emplace_back([&, first] {
            for (int number = first; number < first + 3; ++number) {
                const Image image = compile_tracked(heavy(text, number, true));
                right += image.ptx.find(".entry _Z" + std::to_string(number < 10 ? 2 : 3) + "k" +
                                        std::to_string(number) + "Pi") != std::string::npos;
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    CHECK(right == 9);
    CHECK(same(compile_tracked(heavy(text, 30, true)), compile_tracked(heavy(text, 30, false))));
}

TEST_CASE("a forked child has files of its own, and leaves its parent's") {
    if (skipped()) return;
    const std::string text = std::string("#define OF_FORK\n#include <many.h>\n") + array_kernel;
    const HeaderManifest reached = reached_by(heavy(text, 1, true));
    const auto path_for = [&](int number) {
        const PrecompiledHeader next(heavy(text, number, true), *compiler().nvrtc(), {}, {}, &reached);
        return next.options().empty() ? std::string() : next.options()[0];
    };
    Nvrtc::Result written;
    written.succeeded = true;
    std::string path;
    {
        PrecompiledHeader first(heavy(text, 1, true), *compiler().nvrtc(), {}, {}, &reached);
        path = first.options().at(0).substr(std::string("-create-pch=").size());
        std::ofstream(path) << "written";
        CHECK(first.accepts(written));
    }
    REQUIRE(path_for(2) == "-use-pch=" + path);
    const pid_t child = fork();
    if (child == 0) {
        const std::string own = path_for(3);
        _exit(own.starts_with("-create-pch=") && own != "-create-pch=" + path ? 0 : 1);
    }
    int status = -1;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(status == 0);
    CHECK(std::filesystem::exists(path));
    CHECK(path_for(4) == "-use-pch=" + path);
}

TEST_CASE("a compile that fails says the same with and without precompiled headers") {
    if (skipped()) return;
    const std::string text =
        "#define OF_ERRORS\n#include <many.h>\n__global__ void NAME(int* x) { *x = missing; }";
    for (int number : {1, 2}) {
        CHECK(message_of<CompileError>([&] { compile_tracked(heavy(text, number, true)); }) ==
              message_of<CompileError>([&] { compile_tracked(heavy(text, number, false)); }));
    }
    const std::string in_header =
        "#define OF_ERRORS\n#include <many.h>\n"
        "__global__ void NAME(int* x) { *x = at<5>({1, 2, 3}); }";
    CHECK(message_of<CompileError>([&] { compile_tracked(heavy(in_header, 1, true)); }) ==
          message_of<CompileError>([&] { compile_tracked(heavy(in_header, 1, false)); }));
    const std::string right = std::string("#define OF_ERRORS\n#include <many.h>\n") + array_kernel;
    CHECK(same(compile_tracked(heavy(right, 3, true)), compile_tracked(heavy(right, 3, false))));
}

}  // namespace
}  // namespace bascule::testing

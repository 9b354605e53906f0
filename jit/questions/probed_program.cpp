#include <algorithm>

#include <fmt/format.h>

#include <bascule/interface/errors/error.hpp>
#include <bascule/jit/compile/image.hpp>
#include <bascule/jit/files/paths.hpp>
#include <bascule/jit/headers/header_manifest.hpp>
#include <bascule/jit/questions/probed_program.hpp>

namespace bascule {
namespace {

bool is_same_code(const Image& a, const Image& b) {
    const auto same_kernel = [](const KernelImage& one, const KernelImage& other) {
        return one.lowered_name == other.lowered_name && one.reflected == other.reflected;
    };
    return a.ptx == b.ptx &&
           std::equal(a.kernels.begin(), a.kernels.end(), b.kernels.begin(), b.kernels.end(), same_kernel);
}

}  // namespace

std::shared_ptr<const Image> ProbedProgram::ask(Program question) const {
    if (made.headers_known) {
        question.headers = made.headers;
        return cache.image(question).image;
    }
    try {
        std::shared_ptr<const Image> answer = cache.image(question).image;
        if (is_current()) return answer;
    } catch (const CompileError&) {
        if (is_current()) throw;
    }
    throw Error(
        fmt::format("{}:{} does not compile to the same code as before, perhaps because a header has "
                    "changed, so the compiler can no longer be asked about its structs and variables. "
                    "Compile the text again.",
                    program.source.name, program.source.first_line));
}

bool ProbedProgram::is_current() const {
    if (made.headers_known) {
        const std::string& directory = program.source.directory;
        return made.headers == nullptr ||
               made.headers->holds(directory.empty() ? "" : absolute_path(directory));
    }
    try {
        return is_same_code(*cache.image(program).image, *made.image);
    } catch (const CompileError&) {
        return false;
    }
}

}  // namespace bascule

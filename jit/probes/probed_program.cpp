#include <algorithm>

#include <fmt/format.h>

#include <bascule/interface/errors/error.hpp>
#include <bascule/jit/headers/header_manifest.hpp>
#include <bascule/jit/probes/probed_program.hpp>

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
    question.headers = made.headers;
    std::shared_ptr<const Image> answer = cache.image(question).image;
    if (made.headers_known || is_current()) return answer;
    throw Error(
        fmt::format("{}:{} has become another program since it was compiled, perhaps because a header has "
                    "changed, and the compiler "
                    "would have to be asked about that code again: compile the text again.",
                    program.source.name, program.source.first_line));
}

bool ProbedProgram::is_current() const {
    if (made.headers_known) {
        const std::string& directory = program.source.directory;
        return made.headers == nullptr ||
               made.headers->holds(directory.empty() ? "" : absolute_path(directory));
    }
    return is_same_code(*cache.image(program).image, *made.image);
}

}  // namespace bascule

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include <bascule/interface/errors/error.hpp>
#include <bascule/jit/files/paths.hpp>
#include <bascule/jit/headers/header_manifest.hpp>
#include <bascule/jit/questions/probed_program.hpp>
#include <bascule/jit/signatures/reflection.hpp>

namespace bascule {
namespace {

bool is_same_code(const Image& a, const Image& b) {
    const auto same_kernel = [](const KernelImage& one, const KernelImage& other) {
        return one.lowered_name == other.lowered_name && one.reflected == other.reflected;
    };
    return a.ptx == b.ptx &&
           std::equal(a.kernels.begin(), a.kernels.end(), b.kernels.begin(), b.kernels.end(), same_kernel);
}

/// The numbers in "bascule::values<4, 8>*".
std::vector<std::int64_t> numbers_in(std::string_view text) {
    std::vector<std::int64_t> numbers;
    const char* at = text.data() + std::min(text.find('<'), text.size());
    const char* const end = text.data() + text.size();
    while (at != end) {
        std::int64_t number = 0;
        const auto [next, failure] = std::from_chars(at, end, number);
        if (failure == std::errc()) numbers.push_back(number);
        at = failure == std::errc() ? next : at + 1;
    }
    return numbers;
}

Variable read_variable(const KernelImage& image) {
    const Signature signature = read_signature(image.reflected, image.name, {"element", "layout"});
    const std::vector<std::int64_t> layout = signature.parameters.size() == 2
                                                 ? numbers_in(signature.parameters[1].spelling)
                                                 : std::vector<std::int64_t>{};
    if (layout.empty() || layout[0] <= 0) {
        throw Error(
            fmt::format("cannot read the type of variable '{}' from '{}'. Please report this with your "
                        "NVRTC's version.",
                        image.name, image.reflected));
    }
    const Parameter& element = signature.parameters[0];
    Variable variable;
    variable.name = image.name;
    variable.lowered_name = image.lowered_name;
    variable.constant = element.type.constant;
    variable.shape = Dimensions(std::span(layout).subspan(1));
    const auto bytes = static_cast<std::uint32_t>(layout[0]);
    const bool named = element.type.element_kind == ParameterType::Element::named;
    const auto lanes = static_cast<std::uint32_t>(std::max(element.type.lanes, 1));
    if (named && element.type.dtype.itemsize * lanes == bytes) {
        variable.dtype = element.type.dtype;
        if (element.type.lanes > 0) variable.shape.push_back(element.type.lanes);
    } else {
        variable.dtype = {DType::Kind::opaque, bytes};
    }
    return variable;
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

Variable reflect_variable(const ProbedProgram& probed, const std::string& name) {
    Program question = probed.program;
    question.purpose = Program::Purpose::variable;
    question.instances = {{name, "&" + name}};
    question.functions_too = false;
    question.arch.is_virtual = true;  // the compiler sees the same text, and makes no machine code
    return read_variable(probed.ask(std::move(question))->kernels.at(0));
}

}  // namespace bascule

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include <bascule/interface/errors/error.hpp>
#include <bascule/jit/compile/image.hpp>
#include <bascule/jit/questions/variable_probe.hpp>
#include <bascule/jit/signatures/reflection.hpp>

namespace bascule {
namespace {

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

Variable reflect_variable(const ProbedProgram& probed, const std::string& name) {
    Program question = probed.program;
    question.purpose = Program::Purpose::variable;
    question.instances = {{name, "&" + name}};
    question.functions_too = false;
    question.arch.is_virtual = true;  // the compiler sees the same text, and makes no machine code
    return read_variable(probed.ask(std::move(question))->kernels.at(0));
}

}  // namespace bascule

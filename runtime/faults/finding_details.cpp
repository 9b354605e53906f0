#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <bascule/jit/program/program.hpp>
#include <bascule/jit/text/lexer.hpp>
#include <bascule/jit/text/name_rows.hpp>
#include <bascule/jit/text/tokenizer.hpp>
#include <bascule/runtime/driver/found_errors.hpp>
#include <bascule/runtime/faults/failure_details.hpp>
#include <bascule/runtime/faults/finding_details.hpp>
#include <bascule/runtime/trace/launch_site.hpp>

namespace bascule {
namespace {

/// The sizes of the elements of those pointers whose subscripts are explained.
constexpr struct {
    std::string_view types;
    std::int64_t bytes;
} element_sizes[] = {
    {"char signedchar unsignedchar bool int8_t uint8_t", 1},
    {"short unsignedshort int16_t uint16_t half __half __nv_bfloat16", 2},
    {"int unsigned unsignedint float int32_t uint32_t", 4},
    {"longlong unsignedlonglong double int64_t uint64_t long unsignedlong size_t", 8},
};

/// The size of the elements of a pointer, such as `const float* __restrict__`; 0 if it is another type.
std::int64_t element_size(std::string_view type) {
    std::string element;
    int stars = 0;
    for (const Token& token : lex(type).tokens) {
        if (token.is("*")) ++stars;
        if (token.kind == Token::Kind::word &&
            !fits_one("const volatile __restrict__ __restrict", token.text))
            element += token.text;
    }
    const auto* row =
        std::ranges::find_if(element_sizes, [&](const auto& each) { return fits_one(each.types, element); });
    return stars == 1 && row != std::end(element_sizes) ? row->bytes : 0;
}

/// The definition of the kernel that is called `name` in reports; nullopt if the text has several, or none.
std::optional<KernelDeclaration> definition_of(const std::string& text, std::string_view name) {
    std::vector<KernelDeclaration> found = find_kernels(text);
    name = name.substr(0, name.find_first_of("<("));
    std::erase_if(found, [&](const KernelDeclaration& each) { return each.name != name || each.is_divided; });
    return found.size() == 1 ? std::optional(found.front()) : std::nullopt;
}

/// Whether the name at `i` is the array of a subscript, and not a declaration, a member or an address.
bool is_subscripted(const std::vector<Token>& tokens, std::size_t i) {
    const Token &before = tokens[i - 1], &earlier = tokens[i - 2];
    const bool is_member = before.is(".") || before.is("->");
    const bool begins = tokens[i - 3].is(";") || tokens[i - 3].is("{") || tokens[i - 3].is("}");
    const bool is_declared = before.kind == Token::Kind::word
                                 ? !before.is("return")
                                 : before.is("*") && begins && earlier.kind == Token::Kind::word;
    return tokens[i + 1].is("[") && !is_member && !is_declared && !before.is("&");
}

/// "y[i + 1] is y[1024]", if the access is certainly that of the subscript of `y` in this line of the text: only `y`
/// points into the allocation, the kernel uses it for nothing but subscripts, and the line has one of them.
std::string index_of(const EmulatedFinding& found, const std::string& text, int line) {
    const auto points = [](std::uint64_t argument) { return argument != 0; };
    const auto argument = std::ranges::find_if(found.arguments, points);
    const auto position = static_cast<std::size_t>(argument - found.arguments.begin());
    const std::optional<KernelDeclaration> kernel = definition_of(text, found.finding.kernel);
    if (!kernel || found.is_inlined || kernel->parameters.size() != found.arguments.size() ||
        std::ranges::count_if(found.arguments, points) != 1)
        return "";
    const std::string& name = kernel->parameters[position];
    const std::int64_t size = element_size(kernel->parameter_types[position]);
    const auto offset = static_cast<std::int64_t>(found.finding.address - *argument);
    if (size == 0 || found.finding.bytes != static_cast<std::uint64_t>(size) || offset % size != 0) return "";

    const std::vector<Token> tokens = lex(text).tokens;
    std::size_t open = 0;  // the bracket behind the name in the line
    int depth = 0;
    for (std::size_t i = 3; tokens[i].kind != Token::Kind::end; ++i) {
        if (tokens[i].line < kernel->line || (depth == 0 && !tokens[i].is("{"))) continue;
        depth += tokens[i].is("{") - tokens[i].is("}");
        if (depth == 0) break;
        if (!tokens[i].is(name)) continue;
        if (!is_subscripted(tokens, i) || (tokens[i].line == line && open != 0)) return "";
        if (tokens[i].line == line) open = i + 1;
    }
    if (open == 0) return "";
    std::size_t close = open;
    for (depth = 1; depth > 0 && tokens[close].kind != Token::Kind::end;) {
        ++close;
        depth += tokens[close].is("[") - tokens[close].is("]");
    }
    const char* begin = tokens[open].text.data() + 1;
    const std::string_view written(begin, static_cast<std::size_t>(tokens[close].text.data() - begin));
    const std::string value = std::to_string(offset / size);
    return depth > 0 || written == value ? "" : fmt::format("{0}[{1}] is {0}[{2}]", name, written, value);
}

}  // namespace

Finding complete_finding(EmulatedFinding found) {
    Finding& finding = found.finding;
    const std::optional<Source> source = user_source(finding.file);
    if (source && finding.line > 0 && finding.space == "global")
        finding.index = index_of(found, source->text, line_in_text(source->text, finding.line));
    place_in_user_file(finding);
    if (finding.other) place_in_user_file(*finding.other);
    finding.launch = LaunchSite{static_cast<std::uint32_t>(found.site)}.place();
    finding.report = with_user_places(std::move(finding.report));
    if (const std::size_t at = finding.report.find("\n  in block");
        !finding.index.empty() && at != std::string::npos)
        finding.report.insert(at, "\n  " + finding.index);
    if (!finding.launch.empty()) finding.report += "\n  launched at " + finding.launch;
    return std::move(finding);
}

void describe_findings() noexcept { set_finding_describer(&complete_finding); }

}  // namespace bascule

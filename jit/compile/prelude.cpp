#include <algorithm>
#include <array>
#include <string_view>

#include <bascule/jit/compile/prelude.hpp>

namespace bascule {
namespace {

/// Whether the text may name something in the prelude. Comments count too, which does no harm.
bool may_name_prelude(std::string_view text) {
    // %:%: is another spelling of ##, and ??= one of #. A backslash at the end of a line may join two parts of a word.
    static constexpr std::array<std::string_view, 7> words = {
        "bascule", "include", "##", "%:%:", "??", "\\\n", "\\\r"};
    return std::ranges::any_of(words, [&](std::string_view word) { return text.find(word) != text.npos; });
}

}  // namespace

const std::string& prelude_for(const Program& program) {
    const CompileOptions& options = program.options;
    const bool whole =
        program.purpose == Program::Purpose::variable || options.debug || !options.extra.empty() ||
        may_name_prelude(program.source.text) ||
        std::ranges::any_of(options.defines,
                            [](const auto& define) {
                                return may_name_prelude(define.first) || may_name_prelude(define.second) ||
                                       define.first == "BASCULE_CHECK_BOUNDS";
                            }) ||
        std::ranges::any_of(program.instances,
                            [](const Instance& instance) { return may_name_prelude(instance.expression); });
    return whole ? whole_prelude() : signature_prelude();
}

}  // namespace bascule

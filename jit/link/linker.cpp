// Checks the names of code before it is linked: nvJitLink crashes if machine code defines a name twice, and linkers'
// messages do not name the user's texts.
#include <algorithm>
#include <map>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bascule/interface/errors/error.hpp>
#include <bascule/jit/link/code_outline.hpp>
#include <bascule/jit/link/linker.hpp>
#include <bascule/jit/signatures/demangle.hpp>
#include <bascule/jit/text/name_rows.hpp>

namespace bascule {
namespace {

using Linkage = CodeSymbol::Linkage;

/// A symbol, and the index of the code that contains it.
struct Place {
    const CodeSymbol* symbol;
    std::size_t code;
};

/// Names that the driver, the device runtime library or the linker defines: functions, tables of functions, reserved memory.
bool comes_with_device(std::string_view name) noexcept {
    return fits_one("vprintf malloc free __assertfail .nv.* cuda* __cuda* __nv_* __UDT* __UFT*", name);
}

std::string described(const CodeSymbol& symbol) {
    static constexpr const char* kinds[] = {"kernel", "function", "variable"};
    return fmt::format("{} '{}'", kinds[static_cast<std::size_t>(symbol.kind)], readable_name(symbol.name));
}

[[noreturn]] void fail(const std::string& message, const CodeSymbol& symbol) {
    throw CompileError(message, {.name_expression = readable_name(symbol.name)});
}

std::string base_name(const std::string& name) {
    const std::string text = readable_name(name);
    return text.substr(0, text.find('('));
}

/// A sentence about the definition that was probably meant by an undefined name; empty if no name is similar.
std::string likely_meaning(const Place& needed, const std::vector<Place>& all, std::span<const Code> codes) {
    for (const Place& each : all) {
        if (each.symbol->linkage == Linkage::external || each.code == needed.code) continue;
        const std::string& name = codes[each.code].name;
        if (each.symbol->name == needed.symbol->name) {
            return fmt::format(" {} has one that is static: remove `static`.", name);
        }
        if (base_name(each.symbol->name) == base_name(needed.symbol->name)) {
            if (each.symbol->name.starts_with("_Z") != needed.symbol->name.starts_with("_Z"))
                return fmt::format(" {} has {}: extern \"C\" stands in one of the two alone.", name,
                                   described(*each.symbol));
            return fmt::format(" {} has {}: the declarations differ.", name, described(*each.symbol));
        }
    }
    return {};
}

std::string names_of(std::span<const Code> codes) {
    std::vector<std::string_view> names;
    for (const Code& code : codes) names.push_back(code.name);
    return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

void check_symbols(std::span<const Code> codes) {
    std::vector<CodeOutline> outlines;
    for (const Code& code : codes) outlines.push_back(outline_of(code));
    std::vector<Place> all;
    std::map<std::string_view, Place> defined;
    for (std::size_t i = 0; i < codes.size(); ++i) {
        for (const CodeSymbol& symbol : outlines[i].symbols) {
            all.push_back({&symbol, i});
            if (symbol.linkage != Linkage::global && symbol.linkage != Linkage::weak) continue;
            const auto [known, added] = defined.try_emplace(symbol.name, Place{&symbol, i});
            if (added) continue;
            if (symbol.linkage == Linkage::global && known->second.symbol->linkage == Linkage::global) {
                fail(fmt::format(
                         "{} is defined in {} and in {}. Define it in one text and declare it `extern` in "
                         "the others, or make it `static`.",
                         described(symbol), codes[known->second.code].name, codes[i].name),
                     symbol);
            }
            if (symbol.linkage == Linkage::global) known->second = {&symbol, i};
        }
    }
    const bool has_unknown =
        std::ranges::any_of(codes, [](const Code& code) { return code.kind == CodeKind::lto_ir; });
    if (has_unknown) return;
    for (const Place& place : all) {
        const CodeSymbol& symbol = *place.symbol;
        if (symbol.linkage != Linkage::external || !symbol.is_needed) continue;
        if (defined.contains(symbol.name) || comes_with_device(symbol.name)) continue;
        fail(fmt::format("{} is used in {}, and none of the linked texts defines it ({}).{}",
                         described(symbol), codes[place.code].name, names_of(codes),
                         likely_meaning(place, all, codes)),
             symbol);
    }
}

}  // namespace bascule

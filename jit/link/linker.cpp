// Checks the names of code before it is linked: nvJitLink crashes if machine code defines a name twice, and linkers'
// messages do not name the user's texts.
#include <algorithm>
#include <chrono>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bascule/interface/errors/error.hpp>
#include <bascule/jit/files/file_identity.hpp>
#include <bascule/jit/link/linker.hpp>
#include <bascule/jit/signatures/demangle.hpp>
#include <bascule/jit/text/name_rows.hpp>

namespace bascule {
namespace {

using Linkage = CodeSymbol::Linkage;

/// A symbol, and the index of the code that contains it.
struct SymbolPlace {
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
std::string likely_meaning(const SymbolPlace& needed, const std::vector<SymbolPlace>& all,
                           std::span<const Code> codes) {
    for (const SymbolPlace& each : all) {
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
    std::vector<SymbolPlace> all;
    std::map<std::string_view, SymbolPlace> defined;
    for (std::size_t i = 0; i < codes.size(); ++i) {
        for (const CodeSymbol& symbol : outlines[i].symbols) {
            all.push_back({&symbol, i});
            if (symbol.linkage != Linkage::global && symbol.linkage != Linkage::weak) continue;
            const auto [known, added] = defined.try_emplace(symbol.name, SymbolPlace{&symbol, i});
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
    for (const SymbolPlace& place : all) {
        const CodeSymbol& symbol = *place.symbol;
        if (symbol.linkage != Linkage::external || !symbol.is_needed) continue;
        if (defined.contains(symbol.name) || comes_with_device(symbol.name)) continue;
        fail(fmt::format("{} is used in {}, and none of the linked texts defines it ({}).{}",
                         described(symbol), codes[place.code].name, names_of(codes),
                         likely_meaning(place, all, codes)),
             symbol);
    }
}

LinkedImage::LinkedImage(std::vector<Code> codes, std::vector<KernelImage> kernels, CompileOptions options,
                         std::shared_ptr<const Linker> linker)
    : codes_(std::move(codes)),
      kernels_(std::move(kernels)),
      options_(std::move(options)),
      linker_(std::move(linker)),
      key_(fmt::format("linked by {}, lineinfo {}, debug {}, registers {}", linker_->identity(),
                       options_.lineinfo, options_.debug, options_.max_registers.value_or(0))) {
    for (const Code& code : codes_)
        key_ += fmt::format("\n{} {}", to_string(code.kind), to_string(digest_of(code.bytes)));
    // The image has the kernels' signatures, and the same code may come with other parameter names.
    for (const KernelImage& kernel : kernels_)
        key_ +=
            fmt::format("\n{} {} {}", kernel.expression, kernel.lowered_name, to_string(kernel.signature));
}

Image LinkedImage::make(Arch arch) const {
    check_symbols(codes_);
    const auto start = std::chrono::steady_clock::now();
    Code linked{"the linked code", linker_->link(codes_, arch, options_), CodeKind::unknown};
    linked.kind = kind_of_code(linked.bytes);
    Image image = image_of_code(linked);
    image.arch = arch;
    // The compiler of a text knows more about its kernels than their names contain.
    for (const KernelImage& kernel : kernels_) {
        const auto linked_kernel =
            std::ranges::find(image.kernels, kernel.lowered_name, &KernelImage::lowered_name);
        if (linked_kernel != image.kernels.end()) *linked_kernel = kernel;
    }
    image.compile_milliseconds =
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    return image;
}

}  // namespace bascule

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include <bascule/interface/errors/error.hpp>
#include <bascule/jit/link/code.hpp>

namespace bascule {
namespace {

using namespace std::string_view_literals;

struct Beginning {
    std::string_view bytes;
    CodeKind kind;
};
constexpr std::array beginnings = {
    Beginning{"\x7f"
              "ELF"sv,
              CodeKind::cubin},
    Beginning{"\xed\x43\x4e\x7f"sv, CodeKind::lto_ir}, Beginning{"\x50\xed\x55\xba"sv, CodeKind::fat_binary},
    Beginning{"\xb1\x43\x62\x46"sv, CodeKind::fat_binary},  // nvcc's wrapper around one
};

/// The text after leading white space and comments.
std::string_view without_comments(std::string_view text) noexcept {
    while (true) {
        text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
        const bool line = text.starts_with("//");
        if (!line && !text.starts_with("/*")) return text;
        const std::size_t end = line ? text.find('\n') : text.find("*/", 2);
        if (end == text.npos) return {};
        text.remove_prefix(end + (line ? 1 : 2));
    }
}

}  // namespace

CodeKind kind_of_code(std::string_view bytes) noexcept {
    for (const Beginning& each : beginnings) {
        if (bytes.starts_with(each.bytes)) return each.kind;
    }
    return without_comments(bytes).starts_with(".version") ? CodeKind::ptx : CodeKind::unknown;
}

const char* to_string(CodeKind kind) noexcept {
    static constexpr const char* names[] = {"PTX", "a cubin", "LTO-IR", "a fat binary", "no code of CUDA's"};
    return names[static_cast<std::size_t>(kind)];
}

const CodeSymbol* CodeOutline::find(std::string_view name) const noexcept {
    const auto found = std::ranges::find(symbols, name, &CodeSymbol::name);
    return found == symbols.end() ? nullptr : &*found;
}

CodeOutline outline_of(const Code& code) {
    if (code.kind == CodeKind::ptx) return outline_of_ptx(code);
    if (code.kind == CodeKind::cubin) return outline_of_cubin(code);
    return {};
}

std::vector<KernelImage> kernels_of(const CodeOutline& outline) {
    std::vector<KernelImage> kernels;
    std::map<std::string, int> of_name;
    for (const CodeSymbol& symbol : outline.symbols) {
        if (symbol.kind != CodeSymbol::Kind::kernel || symbol.linkage == CodeSymbol::Linkage::external)
            continue;
        KernelImage& kernel = kernels.emplace_back();
        kernel.lowered_name = symbol.name;
        kernel.signature = signature_from_name(symbol.name, symbol.parameters);
        kernel.name = kernel.signature.kernel;
        ++of_name[kernel.name];
    }
    for (KernelImage& kernel : kernels) {
        if (of_name[kernel.name] > 1)
            kernel.name += fmt::format("({})", demangle_kernel(kernel.lowered_name).parameters);
        kernel.expression = kernel.name;
    }
    return kernels;
}

Image image_of_code(const Code& code) {
    if (code.kind != CodeKind::ptx && code.kind != CodeKind::cubin)
        throw CompileError(fmt::format("{} is {}, and not PTX or a cubin.", code.name, to_string(code.kind)));
    const CodeOutline outline = outline_of(code);
    Image image;
    image.arch = outline.arch;
    (code.kind == CodeKind::ptx ? image.ptx : image.cubin) = code.bytes;
    image.kernels = kernels_of(outline);
    return image;
}

}  // namespace bascule

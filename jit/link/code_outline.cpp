#include <algorithm>
#include <map>

#include <fmt/format.h>

#include <bascule/interface/errors/error.hpp>
#include <bascule/jit/link/code_outline.hpp>

namespace bascule {

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

#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include <bascule/jit/files/digest.hpp>
#include <bascule/jit/link/code_outline.hpp>
#include <bascule/jit/link/linked_image.hpp>

namespace bascule {

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

// The result of a compile: code for one architecture, and the properties of its kernels.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <bascule/interface/arguments/signature.hpp>
#include <bascule/jit/options/compile_options.hpp>

namespace bascule {

/// One kernel of an image.
struct KernelImage {
    std::string name{};          ///< as declared: "ns::scale"
    std::string expression{};    ///< the name expression that was asked for: "ns::scale<float>"
    std::string lowered_name{};  ///< the name in the image; empty in an image that has only signatures
    std::string reflected{};     ///< the mangled name that `signature` was read from
    Signature signature{};
    int line = 1;  ///< of the declaration, in the text
};

/// A compiled program. Immutable and shared once made.
struct Image {
    Arch arch;
    std::string ptx;
    std::string cubin;  ///< empty for a virtual architecture
    /// NVRTC's warnings at canonical places; readable_log (diagnostics.hpp) maps them to a source.
    std::string log;
    std::vector<KernelImage> kernels;
    /// Declared kernels that this image lacks, with the reasons: templates, overloads, code that an #if removed.
    std::vector<std::pair<std::string, std::string>> absent;
    std::string nvrtc_version;        ///< "13.0"
    double compile_milliseconds = 0;  ///< spent in NVRTC

    /// The kernel that was asked for by this expression, or null.
    const KernelImage* find(std::string_view expression) const noexcept {
        const auto kernel = std::ranges::find(kernels, expression, &KernelImage::expression);
        return kernel == kernels.end() ? nullptr : &*kernel;
    }
};

}  // namespace bascule

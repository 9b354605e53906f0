// What a compile gave: code for one architecture and everything known about its kernels.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <bascule/interface/signature.hpp>
#include <bascule/jit/source.hpp>

namespace bascule {

/// One kernel of an image.
struct KernelImage {
    std::string name;          ///< as asked for: "ns::scale"
    std::string lowered_name;  ///< as the image calls it
    Signature signature;
    int line = 1;  ///< of the declaration, in the text
};

/// A compiled program. Immutable and shared once made.
struct Image {
    Arch arch;
    std::string ptx;
    std::string cubin;  ///< empty for a virtual architecture
    std::string
        log;  ///< NVRTC's warnings at canonical places; readable_log (diagnostics.hpp) maps them to a source
    std::vector<KernelImage> kernels;
    /// Kernels that the text declares and this image lacks, each with the reason: templates, overloads, what
    /// an #if removed.
    std::vector<std::pair<std::string, std::string>> absent;
    std::string nvrtc_version;        ///< "13.0"
    double compile_milliseconds = 0;  ///< spent in NVRTC

    const KernelImage* find(std::string_view name) const noexcept;
};

}  // namespace bascule

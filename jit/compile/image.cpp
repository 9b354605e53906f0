#include <algorithm>

#include <bascule/jit/compile/image.hpp>

namespace bascule {

const KernelImage* Image::find(std::string_view expression) const noexcept {
    const auto kernel = std::find_if(kernels.begin(), kernels.end(),
                                     [&](const KernelImage& each) { return each.expression == expression; });
    return kernel == kernels.end() ? nullptr : &*kernel;
}

}  // namespace bascule

#include <algorithm>

#include <bascule/jit/compile/image.hpp>
#include <bascule/jit/types/reflection.hpp>

namespace bascule {

Signature read_signature(const KernelImage& kernel) {
    // An instance is called as it was asked for; a cast that picks an overload is no name.
    const bool is_instance = kernel.expression.starts_with(kernel.name);
    Signature signature = read_signature(kernel.reflected, is_instance ? kernel.expression : kernel.name,
                                         kernel.parameter_names);
    auto layout = kernel.view_layouts.begin();
    for (Parameter& parameter : signature.parameters) {
        if (parameter.type.kind != ParameterType::Kind::span) continue;
        if (layout != kernel.view_layouts.end()) parameter.type.layout = *layout++;
    }
    return signature;
}

const KernelImage* Image::find(std::string_view expression) const noexcept {
    const auto kernel = std::find_if(kernels.begin(), kernels.end(),
                                     [&](const KernelImage& each) { return each.expression == expression; });
    return kernel == kernels.end() ? nullptr : &*kernel;
}

}  // namespace bascule

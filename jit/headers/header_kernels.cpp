#include <algorithm>
#include <string>

#include <bascule/jit/files/file_identity.hpp>
#include <bascule/jit/headers/header_kernels.hpp>
#include <bascule/jit/headers/header_scan.hpp>

namespace bascule {
namespace {

void add_templates(const std::string& text, std::vector<KernelDeclaration>& templates) {
    for (KernelDeclaration& declaration : find_kernels(text)) {
        const bool is_known =
            std::any_of(templates.begin(), templates.end(), [&](const KernelDeclaration& each) {
                return each.name == declaration.name && each.parameter_types == declaration.parameter_types &&
                       each.template_parameters == declaration.template_parameters;
            });
        if (declaration.is_template && !is_known) templates.push_back(std::move(declaration));
    }
}

}  // namespace

std::vector<KernelDeclaration> header_templates(const Source& source, const CompileOptions& options) {
    std::vector<KernelDeclaration> templates;
    for (const auto& [name, text] : options.headers) add_templates(text, templates);
    for (const TrackedFile& header : scan_headers(source, options, {}).manifest.user.files) {
        if (const auto text = read_file(header.path)) add_templates(*text, templates);
    }
    return templates;
}

}  // namespace bascule

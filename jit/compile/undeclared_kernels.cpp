#include <algorithm>

#include <bascule/jit/compile/compile_plan.hpp>
#include <bascule/jit/compile/undeclared_kernels.hpp>
#include <bascule/jit/signatures/mangled_signature.hpp>
#include <bascule/jit/templates/kernel_declaration.hpp>
#include <bascule/jit/templates/specialization.hpp>

namespace bascule {
namespace {

EntryName name_of_entry(const std::string& entry) {
    const DemangledKernel kernel = demangle_kernel(entry);
    const bool is_unnamed = (kernel.name + kernel.parameters).find("(anonymous") != std::string::npos;
    if (!kernel.is_typed) return {entry.starts_with("_Z") ? "" : entry, entry, ""};  // extern "C"
    if (is_unnamed) return {"", entry, ""};
    return {kernel.name, entry, overload_expression(kernel.name, "void (*)(" + kernel.parameters + ")")};
}

}  // namespace

std::vector<std::string> entries_of(std::string_view ptx) {
    static constexpr std::string_view directive = ".entry ";
    std::vector<std::string> entries;
    for (std::size_t at = ptx.find(directive); at != ptx.npos; at = ptx.find(directive, at)) {
        at += directive.size();
        entries.emplace_back(ptx.substr(at, ptx.find_first_of("( \t\r\n", at) - at));
    }
    return entries;
}

std::vector<EntryName> undeclared_entries(const Image& image, const std::vector<KernelDeclaration>& in_text) {
    const auto is_template = [&](std::string_view name) {
        return std::ranges::any_of(in_text, [&](const KernelDeclaration& declaration) {
            return declaration.is_template && declaration.name == name;
        });
    };
    std::vector<EntryName> found;
    for (const std::string& lowered_name : entries_of(image.ptx)) {
        const auto known = std::ranges::find(image.kernels, lowered_name, &KernelImage::lowered_name);
        if (known != image.kernels.end()) continue;
        EntryName entry = name_of_entry(lowered_name);
        const std::size_t open = entry.name.find('<');
        const bool is_instance = open != std::string::npos && is_template(entry.name.substr(0, open));
        if (!entry.name.empty() && !is_instance) found.push_back(std::move(entry));
    }
    return found;
}

void name_as_in_text(std::span<KernelImage> undeclared, const Image& image,
                     const std::vector<KernelDeclaration>& in_text) {
    for (const KernelDeclaration& declaration : in_text) {
        const auto is_like = [&](const auto& each) {
            return last_component(each.name) == last_component(declaration.name);
        };
        const auto is_namesake = [&](const KernelDeclaration& each) {
            return is_like(each) && (each.is_template || each.name != declaration.name);
        };
        const auto first = std::ranges::find_if(undeclared, is_like);
        const auto is_absent = [&](const auto& absent) {
            return absent.first == declaration.name && absent.second == not_seen;
        };
        if (first == undeclared.end() || !first->name.ends_with("::" + declaration.name) ||
            std::ranges::none_of(image.absent, is_absent) || std::ranges::any_of(in_text, is_namesake) ||
            std::ranges::any_of(image.kernels, is_like))
            continue;
        const auto is_other = [&](const KernelImage& each) {
            return is_like(each) && each.name != first->name;
        };
        if (std::ranges::any_of(undeclared, is_other)) continue;
        for (KernelImage& kernel : undeclared) {
            if (!is_like(kernel)) continue;
            if (kernel.expression == kernel.name) kernel.expression = declaration.name;
            kernel.name = declaration.name;
        }
    }
}

void name_sole_kernels(Image& image, const Program& program) {
    for (KernelImage& kernel : image.kernels) {
        const auto is_asked = [&](const Instance& each) { return each.expression == kernel.expression; };
        const auto is_other = [&](const KernelImage& other) {
            return other.name == kernel.name && other.lowered_name != kernel.lowered_name;
        };
        if (std::ranges::none_of(program.instances, is_asked) &&
            std::ranges::none_of(image.kernels, is_other) && kernel.expression.starts_with("static_cast<"))
            kernel.expression = kernel.name;
    }
    std::erase_if(image.absent, [&](const auto& absent) {
        return std::ranges::any_of(image.kernels, [&](const KernelImage& kernel) {
            return kernel.name == absent.first || kernel.expression == absent.first;
        });
    });
}

}  // namespace bascule

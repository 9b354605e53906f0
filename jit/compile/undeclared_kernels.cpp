#include <algorithm>

#include <bascule/jit/compile/undeclared_kernels.hpp>
#include <bascule/jit/types/demangle.hpp>

namespace bascule {
namespace {

/// "ns::scale<float>" of "void ns::scale<float>(float*)"; empty where C++ has no name for it.
std::string name_of_entry(const std::string& entry) {
    if (!entry.starts_with("_Z")) return entry;  // extern "C"
    std::string text = demangle(entry);
    if (text.find("(anonymous") != text.npos) return {};
    if (text.starts_with("void ")) text.erase(0, 5);  // of a template, the return type is part of the name
    int depth = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '<') ++depth;
        if (text[i] == '>') --depth;
        if (text[i] == '(' && depth == 0) return text.substr(0, i);
    }
    return {};
}

bool contains(const std::vector<std::string>& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

std::vector<EntryName> undeclared_entries(std::string_view ptx, const std::vector<std::string>& known,
                                          const std::vector<std::string>& declared) {
    static constexpr std::string_view directive = ".entry ";
    std::vector<EntryName> found;
    for (std::size_t at = ptx.find(directive); at != ptx.npos; at = ptx.find(directive, at)) {
        at += directive.size();
        const std::string entry(ptx.substr(at, ptx.find_first_of("( \t\r\n", at) - at));
        if (contains(known, entry)) continue;
        std::string name = name_of_entry(entry);
        if (name.empty() || contains(declared, name.substr(0, name.find('<')))) continue;
        found.push_back({std::move(name), entry});
    }
    return found;
}

}  // namespace bascule

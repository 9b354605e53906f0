// What a compile is asked for, as a value.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <bascule/jit/program/source.hpp>

namespace bascule {

struct HeaderManifest;
struct Image;

/// Makes an image in another way than by compiling a text. Immutable; any thread may use it.
class ImageMaker {
  public:
    virtual ~ImageMaker() = default;
    /// Everything that determines the result, except the architecture.
    virtual std::string key() const = 0;
    /// Throws: CompileError, LibraryError.
    virtual Image make(Arch arch) const = 0;
};

/// A kernel template's instance or a variable that a compile is asked for by name, even if no kernel uses it.
struct Instance {
    std::string kernel;      ///< as declared: "ns::scale"; for a variable its name: "ns::table<float>"
    std::string expression;  ///< "ns::scale<float>"; for a variable its address: "&ns::table<float>"

    bool is_variable() const noexcept { return expression.starts_with('&'); }
    bool operator==(const Instance&) const = default;
};

/// Template arguments that the user gave, as C++ text: "float", "256".
struct TemplateArguments {
    std::vector<std::string> positional;
    std::vector<std::pair<std::string, std::string>> named;  ///< by template parameter

    bool empty() const noexcept { return positional.empty() && named.empty(); }
    bool operator==(const TemplateArguments&) const = default;
};

/// A text or other input, its options, the architecture, and the purpose of the compile.
struct Program {
    enum class Purpose : std::uint8_t {
        code,
        signatures,  ///< only the instances' signatures: their bodies are not compiled
        variable,    ///< one variable's type and lowered name; its name is in `instances`
        made,        ///< the result of `maker`
    };

    Source source;
    CompileOptions options;
    Arch arch;
    std::vector<Instance> instances{};  ///< empty: all functions of the text that are not templates
    Purpose purpose = Purpose::code;
    bool functions_too = false;  ///< in addition to the instances, all functions that are not templates
    /// The headers that it must be made from, because another image was; null: the headers as they are now.
    std::shared_ptr<const HeaderManifest> headers{};
    /// Makes the image instead of NVRTC; `source` then has a name and no text. Null: the text is compiled.
    std::shared_ptr<const ImageMaker> maker{};
};

}  // namespace bascule

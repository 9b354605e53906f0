// Everything that decides what a compile gives, as a value.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <bascule/jit/text/source.hpp>

namespace bascule {

struct HeaderManifest;
struct Image;

/// Makes an image otherwise than by compiling a text. Immutable; any thread may use it.
class ImageMaker {
  public:
    virtual ~ImageMaker() = default;
    /// All that decides what it makes, beside the architecture.
    virtual std::string key() const = 0;
    /// Throws: CompileError, LibraryError.
    virtual Image make(Arch arch) const = 0;
};

/// What a compile is asked for by a name of its own: an instance of a kernel template, or a variable, also one that no kernel
/// uses.
struct Instance {
    std::string kernel;      ///< as declared: "ns::scale"; of a variable its name: "ns::table<float>"
    std::string expression;  ///< "ns::scale<float>"; of a variable its address: "&ns::table<float>"

    bool is_variable() const noexcept { return expression.starts_with('&'); }
    bool operator==(const Instance&) const = default;
};

/// What is compiled, how, for which architecture, and what for.
struct Program {
    enum class Purpose : std::uint8_t {
        code,
        signatures,  ///< the instances' signatures alone: their bodies are not looked at
        variable,    ///< one variable's type and lowered name; `instances` has its name twice (variable.hpp)
        made,        ///< what `maker` makes
    };

    Source source;
    CompileOptions options;
    Arch arch;
    std::vector<Instance> instances{};  ///< none: every function of the text that is not a template
    Purpose purpose = Purpose::code;
    bool functions_too = false;  ///< beside the instances every function that is not a template
    /// The headers that it must be made from, because another image was; null: those of here and now.
    std::shared_ptr<const HeaderManifest> headers{};
    /// Makes the image instead of NVRTC; `source` has a name and no text then. Null: the text is compiled.
    std::shared_ptr<const ImageMaker> maker{};
};

}  // namespace bascule

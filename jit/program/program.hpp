// The input of a compile, CUDA C++ text and options, and its result, an image with its kernels. All are values.
#pragma once

#include <algorithm>
#include <memory>

#include <bascule/interface/arguments/signature.hpp>
#include <bascule/jit/options/compile_options.hpp>

namespace bascule {

/// CUDA C++ text. A value: it owns its text, and making it reads nothing. `name` and `first_line` are only for
/// messages, never for the compiler: they place errors in the user's own file.
struct Source {
    std::string text;
    std::string name = "<string>";  ///< "kernels.cu", "train.py"
    int first_line = 1;             ///< of the text in `name`
    std::string directory;          ///< searched first for quoted includes; empty for a string
};

/// Reads a file. Throws: FileError with the path and the system's reason; ArgumentError (value) for a NUL in the path.
Source read_source(const std::string& path);

/// The name under which a text is compiled: equal texts are one program, whatever their origin.
std::string canonical_name(const std::string& text);
/// The canonical name or, with `keep_sources`, the path of the file, which the image's line information names.
std::string program_name(const Source& source, const CompileOptions& options);
/// With `keep_sources`, writes the text to its file for debuggers and profilers, unless the file has this text already. A
/// link is replaced by a file.
/// Throws: FileError with the option.
void keep_source(const Source& source, const CompileOptions& options);

/// The text without a byte order mark, which some editors write and NVRTC accepts nowhere.
std::string_view without_byte_order_mark(std::string_view text) noexcept;

/// Line `line` of the text, counted from 1, without its newline.
std::string_view source_line_of(std::string_view text, int line);
/// The position in the text of the line that a compiler calls `line`; they differ after a `#line 100`.
int line_in_text(std::string_view text, int line);

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

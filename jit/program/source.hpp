// CUDA C++ text, its name for the compiler, and its lines.
#pragma once

#include <string>
#include <string_view>

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
/// With `keep_sources`, writes that file for debuggers and profilers, unless it exists with this text. Replaces a link.
/// Throws: FileError with the option.
void keep_source(const Source& source, const CompileOptions& options);

/// The text without a byte order mark, which some editors write and NVRTC accepts nowhere.
std::string_view without_byte_order_mark(std::string_view text) noexcept;

/// Line `line` of the text, counted from 1, without its newline.
std::string_view source_line_of(std::string_view text, int line);
/// The position in the text of the line that a compiler calls `line`; they differ after a `#line 100`.
int line_in_text(std::string_view text, int line);

}  // namespace bascule

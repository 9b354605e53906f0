// Code that was compiled elsewhere, and its kind.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace bascule {

enum class CodeKind : std::uint8_t {
    ptx,
    cubin,       ///< ELF for one architecture
    lto_ir,      ///< NVVM's intermediate code, for link-time optimisation
    fat_binary,  ///< a container of the kinds above
    unknown,
};

/// Recognises code by its first bytes. Fat binaries are recognised so that the error can name them.
CodeKind kind_of_code(std::string_view bytes) noexcept;
const char* to_string(CodeKind kind) noexcept;  ///< "PTX", "a cubin"

/// One piece of code, with a name for messages, such as the file's. A value type.
struct Code {
    std::string name;
    std::string bytes;
    CodeKind kind = CodeKind::unknown;
};

}  // namespace bascule

// Precompiled headers: NVRTC does not read headers again that this process has compiled before.
#pragma once

#include <bascule/jit/compile/nvrtc.hpp>
#include <bascule/jit/headers/header_manifest.hpp>
#include <bascule/jit/program/program.hpp>

namespace bascule {

class ProcessDirectory;

/// The precompiled headers of one compile. NVRTC reads the part of a text before its first declaration from a file of
/// this process, or writes that file while it compiles. The image is the same, byte for byte.
///
/// The key of a file has everything that decides its content: the directives before the first declaration, the options,
/// and the content of all headers. The second compile that could use a file writes it (with CompileOptions::pch, the
/// first one), because writing adds 30 to 40 % to a compile; later compiles read it. Texts with few headers have no
/// file, because it would not pay. Thread-safe: while one thread writes a file, others compile without it.
class PrecompiledHeader {
  public:
    /// `options` and `texts`: NVRTC's input for this program. `headers`: those that the program reaches, or null if
    /// they are not known; must outlive this object. Throws: ArgumentError (value) when CompileOptions::pch is true and
    /// this NVRTC has no precompiled headers.
    PrecompiledHeader(const Program& program, const Nvrtc& nvrtc, const std::vector<std::string>& options,
                      const std::vector<Nvrtc::Header>& texts, const HeaderManifest* headers);
    /// If a file was being written and was not accepted, marks it as unusable.
    ~PrecompiledHeader();
    PrecompiledHeader(PrecompiledHeader&&) = delete;

    /// Options to add to the program's own; empty if NVRTC is to compile without a file.
    const std::vector<std::string>& options() const noexcept { return options_; }
    /// Whether the compile with these options gave the same result as one without them. Also decides whether the file
    /// is kept. If false, compile again without these options.
    bool accepts(const Nvrtc::Result& result);

  private:
    std::string key_;
    const HeaderManifest* headers_;
    bool creates_ = false;
    int first_line_behind_ = 1;  ///< of the text's first declaration
    std::string program_name_;
    std::shared_ptr<const ProcessDirectory> directory_;  // of the file
    std::vector<std::string> options_;
};

}  // namespace bascule

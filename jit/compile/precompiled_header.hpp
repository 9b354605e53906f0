// Precompiled headers: a text whose headers this process has compiled before is compiled without reading them again.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <bascule/jit/compile/nvrtc.hpp>
#include <bascule/jit/headers/header_manifest.hpp>
#include <bascule/jit/text/program.hpp>

namespace bascule {

class ProcessDirectory;

/// What one compile has to do with the process's precompiled headers. NVRTC reads what precedes a text's first
/// declaration from a file of this process, or writes that file while it compiles; the image is the same byte for byte.
///
/// A file is known by everything that decides its content: the directives before the first declaration, the options,
/// and the content of all headers. It is written by the second compile that could use it (by the first one with
/// CompileOptions::pch), because writing takes half as long as a compile, and read from the next one on. Texts with few
/// headers have none: they gain nothing. Thread-safe: while one thread writes a file, others compile without it.
class PrecompiledHeader {
  public:
    /// `options` and `texts`: what NVRTC gets for this program. `headers`: those that the program reaches; null when
    /// they are not known; outlives this. Throws: ArgumentError (value) when CompileOptions::pch asks for what this NVRTC cannot do.
    PrecompiledHeader(const Program& program, const Nvrtc& nvrtc, const std::vector<std::string>& options,
                      const std::vector<Nvrtc::Header>& texts, const HeaderManifest* headers);
    /// A file that was written and not kept is given up.
    ~PrecompiledHeader();
    PrecompiledHeader(PrecompiledHeader&&) = delete;

    /// For NVRTC, to be added to the program's own; empty when it is to compile without.
    const std::vector<std::string>& options() const noexcept { return options_; }
    /// Whether the compile that these options were for gave what one without them gives; decides about the file. When
    /// false, it must be run again without them.
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

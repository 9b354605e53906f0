// What can go wrong, as types. Every message is a sentence that says what to do next.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <bascule/interface/errors/diagnostic.hpp>

namespace bascule {

/// The base of every exception that Bascule throws on purpose.
class Error : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

/// An argument that a kernel, a launch or an array cannot take. Raised before the first operation is issued.
class ArgumentError : public Error {
  public:
    /// Which of Python's exceptions the message becomes.
    enum class Kind {
        type,           ///< TypeError
        value,          ///< ValueError
        overflow,       ///< OverflowError
        missing_key,    ///< a KeyError that is a ValueError too
        index,          ///< IndexError
        not_supported,  ///< NotImplementedError
    };

    /// What the message was made from; empty members are unknown or do not apply.
    struct Details {
        int index = -1;          ///< of the argument, from 0
        std::string name{};      ///< of the argument, as the kernel's parameter is called
        std::string field{};     ///< of the array interface: "shape", "strides", ...
        std::string expected{};  ///< "const float*"
        std::string got{};       ///< "a float64 array of shape (1000,)"
    };

    ArgumentError(Kind kind, const std::string& message) : Error(message), kind_(kind) {}
    ArgumentError(Kind kind, const std::string& message, Details details)
        : Error(message), kind_(kind), details_(std::move(details)) {}

    Kind kind() const noexcept { return kind_; }
    const Details& details() const noexcept { return details_; }

    /// The same error, its message led by "argument 2 'x': " and its details naming that argument.
    ArgumentError with_argument(int index, const std::string& name) const;

  private:
    Kind kind_;
    Details details_;
};

/// A file that cannot be read.
class FileError : public Error {
  public:
    FileError(const std::string& message, std::string path, int code)
        : Error(message), path_(std::move(path)), code_(code) {}

    const std::string& path() const noexcept { return path_; }
    int code() const noexcept { return code_; }  ///< of errno, such as ENOENT

  private:
    std::string path_;
    int code_;
};

/// CUDA C++ text that NVRTC refused, or a kernel name that the text does not define.
class CompileError : public Error {
  public:
    struct Details {
        std::string log{};              ///< NVRTC's own, places mapped to the user's text
        std::string name_expression{};  ///< the kernel asked for; empty when the text itself is at fault
        std::vector<std::string> options{};
        std::string architecture{};
        std::vector<Diagnostic> diagnostics{};  ///< all that NVRTC said, warnings too, at the user's places
    };

    explicit CompileError(const std::string& message) : Error(message) {}
    CompileError(const std::string& message, Details details)
        : Error(message), details_(std::move(details)) {}

    const Details& details() const noexcept { return details_; }

  private:
    Details details_;
};

/// A shared library (NVRTC, the driver, the emulated device) that cannot be loaded or used.
class LibraryError : public Error {
  public:
    struct Details {
        std::string library{};                   ///< "NVRTC"
        std::vector<std::string> paths_tried{};  ///< in order
        std::string loader_message{};            ///< dlerror's words for the last of them
    };

    explicit LibraryError(const std::string& message) : Error(message) {}
    LibraryError(const std::string& message, Details details)
        : Error(message), details_(std::move(details)) {}

    const Details& details() const noexcept { return details_; }

  private:
    Details details_;
};

/// A driver call that failed.
class CudaError : public Error {
  public:
    struct Details {
        int code = 0;             ///< CUresult
        std::string code_name{};  ///< "CUDA_ERROR_ILLEGAL_ADDRESS"
        std::string call{};       ///< "cuStreamSynchronize"
        std::string doing{};      ///< what it was for: "waiting for the stream"
        std::string report{};     ///< the emulated device's report of the fault; empty on a GPU
        std::string launch{};     ///< of a lost context: which launch most likely lost it, as sentences
    };

    explicit CudaError(const std::string& message) : Error(message) {}
    CudaError(const std::string& message, Details details) : Error(message), details_(std::move(details)) {}

    int code() const noexcept { return details_.code; }
    const Details& details() const noexcept { return details_; }

  private:
    Details details_;
};

/// Operations on different streams that touched the same bytes with nothing between them that orders them.
/// The emulated device found them, however they happened to run.
class RaceError : public Error {
  public:
    /// `races`: a report each, at least one. The message begins "stream race".
    explicit RaceError(std::vector<std::string> races);

    const std::vector<std::string>& races() const noexcept { return races_; }

  private:
    std::vector<std::string> races_;
};

}  // namespace bascule

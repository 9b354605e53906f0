// The types of errors. Every message is a sentence that says what to do next.
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
    /// The Python exception that the error becomes.
    enum class Kind {
        type,           ///< TypeError
        value,          ///< ValueError
        overflow,       ///< OverflowError
        missing_key,    ///< a subclass of KeyError and ValueError
        index,          ///< IndexError
        not_supported,  ///< NotImplementedError
    };

    /// The parts of the message. Empty members are unknown or do not apply.
    struct Details {
        int index = -1;          ///< of the argument, counted from 0
        std::string name{};      ///< of the kernel's parameter
        std::string field{};     ///< of the array interface: "shape", "strides", ...
        std::string expected{};  ///< "const float*"
        std::string got{};       ///< "a float64 array of shape (1000,)"
    };

    ArgumentError(Kind kind, const std::string& message) : Error(message), kind_(kind) {}
    ArgumentError(Kind kind, const std::string& message, Details details)
        : Error(message), kind_(kind), details_(std::move(details)) {}

    Kind kind() const noexcept { return kind_; }
    const Details& details() const noexcept { return details_; }

    /// The same error for this argument: its message begins with "argument 2 'x': ".
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
        std::string log{};              ///< NVRTC's log, with places in the user's text
        std::string name_expression{};  ///< the kernel that was asked for; empty if the text itself is wrong
        std::vector<std::string> options{};
        std::string architecture{};
        std::vector<Diagnostic> diagnostics{};  ///< all of NVRTC's messages, at the user's places
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
        std::string loader_message{};            ///< dlerror's message for the last path
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
        std::string doing{};      ///< the purpose of the call: "waiting for the stream"
        std::string report{};     ///< the emulated device's report of the fault; empty on a GPU
        std::string launch{};  ///< for a lost context: sentences about the launch that most likely caused it
    };

    explicit CudaError(const std::string& message) : Error(message) {}
    CudaError(const std::string& message, Details details) : Error(message), details_(std::move(details)) {}

    int code() const noexcept { return details_.code; }
    const Details& details() const noexcept { return details_; }

  private:
    Details details_;
};

/// Operations on different streams that accessed the same bytes without being ordered. The emulated device finds them
/// in whatever order they ran.
class RaceError : public Error {
  public:
    /// `races` has one report for each race, and at least one. The message begins with "stream race".
    explicit RaceError(std::vector<std::string> races);

    const std::vector<std::string>& races() const noexcept { return races_; }

  private:
    std::vector<std::string> races_;
};

}  // namespace bascule

// The types of errors. Every message is a sentence that says what to do next.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <bascule/interface/errors/finding.hpp>

namespace bascule {

/// A compiler's message about one place in a text.
struct Diagnostic {
    enum class Severity : std::uint8_t { error, warning, remark, note };

    Severity severity = Severity::error;
    std::string number{};   ///< NVRTC's number, such as "177-D" for `-diag-suppress=177`; may be empty
    std::string file{};     ///< empty if the message names no file
    int line = 0;           ///< in `file`, counted from 1; 0 if the message names no line
    int column = 0;         ///< in characters, counted from 1; 0 if unknown
    std::string message{};  ///< without severity and place; details follow on lines of their own
    std::vector<Diagnostic> notes{};  ///< candidates, declarations, and the instantiations that led here
    std::string source_line{};        ///< the line of the file; empty if unknown

    bool is_error() const noexcept { return severity == Severity::error; }
    bool operator==(const Diagnostic&) const = default;
};

/// "error", "warning", "remark", "note".
constexpr const char* to_string(Diagnostic::Severity severity) noexcept {
    constexpr const char* names[] = {"error", "warning", "remark", "note"};
    return names[static_cast<std::size_t>(severity)];
}

/// A fact that an error carries in addition to its message, under the name of the attribute of the Python exception.
struct ErrorAttribute {
    const char* name;
    std::variant<int, std::string, std::vector<std::string>, std::vector<Diagnostic>, std::vector<Finding>>
        value;
};

/// The base of every exception that Bascule throws on purpose.
class Error : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
    /// The name of the class in Python.
    virtual const char* name() const noexcept { return "Error"; }
    virtual std::vector<ErrorAttribute> attributes() const { return {}; }
};

/// The base of errors that carry a struct of details.
template <class Carried>
class DetailedError : public Error {
  public:
    using Details = Carried;
    explicit DetailedError(const std::string& message, Details details = {})
        : Error(message), details_(std::move(details)) {}
    const Details& details() const noexcept { return details_; }

  private:
    Details details_;
};

/// The parts of the message. Empty members are unknown or do not apply.
struct ArgumentErrorDetails {
    int index = -1;          ///< of the argument, counted from 0
    std::string name{};      ///< of the kernel's parameter
    std::string field{};     ///< of the array interface: "shape", "strides", ...
    std::string expected{};  ///< "const float*"
    std::string got{};       ///< "a float64 array of shape (1000,)"
};

/// An argument that a kernel, a launch or an array cannot take. Raised before the first operation is issued.
class ArgumentError : public DetailedError<ArgumentErrorDetails> {
  public:
    /// The built-in exception from which the Python class also derives: KeyError for `missing_key`.
    enum class Kind { type, value, overflow, missing_key, index, not_supported };

    ArgumentError(Kind kind, const std::string& message, Details details = {})
        : DetailedError(message, std::move(details)), kind_(kind) {}

    Kind kind() const noexcept { return kind_; }
    const char* name() const noexcept override;
    std::vector<ErrorAttribute> attributes() const override;

    /// The same error for this argument: its message begins with "argument 2 'x': ".
    ArgumentError with_argument(int index, const std::string& name) const;

  private:
    Kind kind_;
};

/// A file that cannot be read, or that `keep_sources` cannot write.
class FileError : public Error {
  public:
    FileError(const std::string& message, std::string path, int code)
        : Error(message), path_(std::move(path)), code_(code) {}

    const std::string& path() const noexcept { return path_; }
    int code() const noexcept { return code_; }  ///< of errno, such as ENOENT
    const char* name() const noexcept override { return code_ == ENOENT ? "MissingFileError" : "FileError"; }
    std::vector<ErrorAttribute> attributes() const override {
        return {{"errno", code_}, {"filename", path_}};
    }

  private:
    std::string path_;
    int code_;
};

/// The attributes of a CompileError.
struct CompileErrorDetails {
    std::string log{};              ///< NVRTC's log, with places in the user's text
    std::string name_expression{};  ///< the kernel that was asked for; empty if the text itself is wrong
    std::vector<std::string> options{};
    std::string architecture{};
    std::vector<Diagnostic> diagnostics{};  ///< all of NVRTC's messages, at the user's places
};

/// CUDA C++ text that could not be compiled or linked, or that has no such kernel.
class CompileError : public DetailedError<CompileErrorDetails> {
  public:
    using DetailedError::DetailedError;
    const char* name() const noexcept override { return "CompileError"; }
    std::vector<ErrorAttribute> attributes() const override {
        const auto& [log, name_expression, options, architecture, diagnostics] = details();
        return {{"log", log},
                {"name_expression", name_expression},
                {"options", options},
                {"architecture", architecture},
                {"diagnostics", diagnostics}};
    }
};

/// The attributes of a LibraryError.
struct LibraryErrorDetails {
    std::string library{};                   ///< "NVRTC"
    std::vector<std::string> paths_tried{};  ///< in order
    std::string loader_message{};            ///< dlerror's message for the last path
};

/// A shared library (NVRTC, the driver, the emulated device) that cannot be loaded or used.
class LibraryError : public DetailedError<LibraryErrorDetails> {
  public:
    using DetailedError::DetailedError;
    const char* name() const noexcept override { return "LibraryError"; }
    std::vector<ErrorAttribute> attributes() const override {
        const auto& [library, paths, message] = details();
        return {{"library", library}, {"paths_tried", paths}, {"loader_message", message}};
    }
};

/// The attributes of a CudaError.
struct CudaErrorDetails {
    int code = 0;             ///< CUresult
    std::string code_name{};  ///< "CUDA_ERROR_ILLEGAL_ADDRESS"
    std::string call{};       ///< "cuStreamSynchronize"
    std::string doing{};      ///< the purpose of the call: "waiting for the stream"
    std::string report{};     ///< the emulated device's report of the fault; empty on a GPU
    std::string launch{};     ///< for a lost context: sentences about the launch that most likely caused it
};

/// A driver call that failed.
class CudaError : public DetailedError<CudaErrorDetails> {
  public:
    using DetailedError::DetailedError;
    int code() const noexcept { return details().code; }
    const char* name() const noexcept override {
        constexpr int out_of_memory = 2;  // CUDA_ERROR_OUT_OF_MEMORY
        return code() == out_of_memory ? "OutOfMemoryError" : "CudaError";
    }
    std::vector<ErrorAttribute> attributes() const override {
        const auto& [code, code_name, call, doing, report, launch] = details();
        return {{"code", code},   {"code_name", code_name}, {"call", call},
                {"doing", doing}, {"report", report},       {"launch", launch}};
    }
};

/// Errors of kernels that the checks of the emulated device found. The kernels went on, and their results are valid as
/// far as the errors did not change them.
class CheckError : public Error {
  public:
    /// `findings` has at least one element. The message has the reports of the first ones.
    explicit CheckError(std::vector<Finding> findings);

    /// The name of the check that made the first finding.
    const std::string& kind() const noexcept { return findings_.front().kind; }
    const std::vector<Finding>& findings() const noexcept { return findings_; }
    const char* name() const noexcept override { return "CheckError"; }
    std::vector<ErrorAttribute> attributes() const override {
        return {{"kind", kind()}, {"findings", findings_}};
    }

  private:
    std::vector<Finding> findings_;
};

/// Operations on different streams that accessed the same bytes without being ordered. The emulated device finds them
/// in whatever order they ran.
class RaceError : public CheckError {
  public:
    /// `findings` begins with at least one race; findings of other checks may follow. The message begins with "stream race".
    explicit RaceError(std::vector<Finding> findings);

    /// One report for each race.
    const std::vector<std::string>& races() const noexcept { return races_; }
    const char* name() const noexcept override { return "RaceError"; }
    std::vector<ErrorAttribute> attributes() const override {
        return {{"kind", kind()}, {"findings", findings()}, {"races", races_}};
    }

  private:
    std::vector<std::string> races_;
};

}  // namespace bascule

// Shared by several of these tests: an NVRTC, programs, and temporary directories.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

#include <bascule/interface/errors/error.hpp>
#include <bascule/jit/compile/compile.hpp>
#include <bascule/jit/headers/header_scan.hpp>
#include <bascule/jit/lookup/cache.hpp>

namespace bascule::testing {

/// The NVRTC under test: the one that BASCULE_TEST_NVRTC names, else the one that programs find. BASCULE_TEST_INCLUDE
/// lists directories of headers for it, separated by colons.
inline ToolkitLocation toolkit() {
    if (const char* library = std::getenv("BASCULE_TEST_NVRTC")) {
        ToolkitLocation named{{library}, {}, true};
        const char* include = std::getenv("BASCULE_TEST_INCLUDE");
        std::istringstream paths(include == nullptr ? "" : include);
        for (std::string path; std::getline(paths, path, ':');) named.include_paths.push_back(path);
        return named;
    }
    return {};
}

/// One NVRTC for all tests: loading it takes longer than most of them.
struct OneCompiler {
    std::shared_ptr<const Nvrtc> nvrtc() const {
        static const auto& loaded = *new std::shared_ptr(std::make_shared<const Nvrtc>(toolkit()));
        return loaded;
    }
    Image compile(const Program& program) const { return bascule::compile(program, *nvrtc()); }
};
inline OneCompiler compiler() { return {}; }

/// One cache for all tests, with the NVRTC under test.
inline Cache& cache() {
    static Cache& cache = *new Cache(toolkit());
    return cache;
}

/// The directories of the headers of the NVRTC under test.
inline std::vector<SearchPath> installed_paths() {
    std::vector<SearchPath> paths;
    for (const std::string& path : compiler().nvrtc()->include_paths()) {
        paths.push_back({path, installed_ns(path)});
    }
    return paths;
}

inline Program program(std::string text) {
    Program program;
    program.source.text = std::move(text);
    program.source.name = "kernels.cu";
    program.arch = parse_arch("compute_80");
    return program;
}

inline Image compile(std::string text) { return compiler().compile(program(std::move(text))); }

/// The message of the exception of this type that `action` throws, or an empty string.
template <class Exception, class Action>
std::string message_of(Action&& action) {
    try {
        action();
    } catch (const Exception& error) {
        return error.what();
    }
    return {};
}

inline std::string compile_error(const Program& program) {
    return message_of<CompileError>([&] { compiler().compile(program); });
}
inline std::string compile_error(std::string text) { return compile_error(program(std::move(text))); }

inline bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != text.npos;
}

/// An empty directory, removed with everything in it.
class TemporaryDirectory {
  public:
    TemporaryDirectory() {
        std::string pattern = (std::filesystem::temp_directory_path() / "bascule-jit-XXXXXX").string();
        path_ = mkdtemp(pattern.data());
    }
    ~TemporaryDirectory() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    TemporaryDirectory(const TemporaryDirectory&) = delete;
    TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

    std::string path() const { return path_.string(); }
    /// Writes a file and returns its path.
    std::string write(const std::string& name, const std::string& text) const {
        std::filesystem::create_directories((path_ / name).parent_path());
        std::ofstream(path_ / name, std::ios::binary) << text;
        return (path_ / name).string();
    }

  private:
    std::filesystem::path path_;
};

/// Sets a variable for a scope.
class Environment {
  public:
    Environment(const char* name, const char* value) : name_(name) {
        if (const char* before = std::getenv(name)) before_ = before;
        set(value);
    }
    ~Environment() { set(before_ ? before_->c_str() : nullptr); }
    Environment(const Environment&) = delete;
    Environment& operator=(const Environment&) = delete;

  private:
    void set(const char* value) { value == nullptr ? unsetenv(name_) : setenv(name_, value, 1); }
    const char* name_;
    std::optional<std::string> before_;
};

}  // namespace bascule::testing

#include "ptx/names.hpp"

#include <cstdlib>
#include <cxxabi.h>
#include <memory>

namespace emulated::ptx {

std::string demangled(std::string_view name) {
    if (!name.starts_with("_Z")) return std::string(name);  // "f" alone would be read as a type: float
    int status = 0;
    const std::unique_ptr<char, void (*)(void*)> text(
        abi::__cxa_demangle(std::string(name).c_str(), nullptr, nullptr, &status), std::free);
    return status == 0 && text != nullptr ? std::string(text.get()) : std::string(name);
}

}  // namespace emulated::ptx

// A message buffer that the caller passes in the JIT options.
#pragma once

#include <algorithm>
#include <cstdio>
#include <string>

#include <cuda.h>

namespace emulated::driver {

/// Borrows the caller's buffer and its size option; both must outlive it. Writes nothing if they are not given.
class JitLog {
  public:
    JitLog() = default;
    JitLog(unsigned int count, const CUjit_option* options, void** values, CUjit_option buffer,
           CUjit_option buffer_size) {
        for (unsigned int i = 0; i < count; ++i) {
            if (options[i] == buffer) text_ = static_cast<char*>(values[i]);
            if (options[i] != buffer_size) continue;
            size_ = &values[i];
            room_ = reinterpret_cast<std::size_t>(values[i]);
        }
    }

    /// Replaces earlier text. Sets the size option to the length, as a driver does.
    void write(const std::string& message) const {
        if (text_ == nullptr || room_ == 0) return;
        std::snprintf(text_, room_, "%s", message.c_str());
        *size_ = reinterpret_cast<void*>(std::min(room_ - 1, message.size()));
    }

  private:
    char* text_ = nullptr;
    void** size_ = nullptr;
    std::size_t room_ = 0;
};

}  // namespace emulated::driver

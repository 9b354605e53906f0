// Reads values from a fuzzer's bytes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace bascule::fuzz {

/// The rest of the fuzzer's input. Values are zero when its bytes run out.
struct Bytes {
    const std::uint8_t* data;
    std::size_t size;

    template <class T>
    T take() {
        T value{};
        const std::size_t taken = std::min(size, sizeof value);
        if (taken > 0) std::memcpy(&value, data, taken);
        data += taken;
        size -= taken;
        return value;
    }

    bool flag() { return (take<std::uint8_t>() & 1) != 0; }

    /// A value in [0, end).
    std::uint32_t below(std::uint32_t end) { return take<std::uint8_t>() % end; }

    /// Small in half of the cases, because all large ones would be refused.
    std::int64_t extent() { return flag() ? take<std::int64_t>() : std::int64_t{take<std::int8_t>()}; }

    std::string text(std::size_t most) {
        const std::size_t length = std::min<std::size_t>(below(static_cast<std::uint32_t>(most) + 1), size);
        std::string taken(reinterpret_cast<const char*>(data), length);
        data += length;
        size -= length;
        return taken;
    }

    /// One of these or, with the same probability as each, any text.
    template <std::size_t N>
    std::string one_of(const std::string_view (&choices)[N]) {
        const std::uint32_t choice = below(static_cast<std::uint32_t>(N) + 1);
        return choice < N ? std::string(choices[choice]) : text(12);
    }
};

}  // namespace bascule::fuzz

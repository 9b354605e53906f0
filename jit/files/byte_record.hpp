// Texts and numbers as a sequence of bytes, and back: all lengths are checked when they are read.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace bascule {

/// Numbers take 8 bytes in this machine's byte order: a record is only read on machines of the same kind.
class ByteWriter {
  public:
    void number(std::uint64_t value) { bytes_.append(reinterpret_cast<const char*>(&value), sizeof value); }
    void text(std::string_view text) {
        number(text.size());
        bytes_ += text;
    }
    std::string take() && { return std::move(bytes_); }

  private:
    std::string bytes_;
};

/// After the first value that does not fit, all reads return empty values and `good` is false.
class ByteReader {
  public:
    explicit ByteReader(std::string_view bytes) : rest_(bytes) {}

    std::uint64_t number() {
        const std::string_view bytes = take(sizeof(std::uint64_t));
        std::uint64_t value = 0;
        if (good_) std::memcpy(&value, bytes.data(), sizeof value);
        return value;
    }
    /// The length of a list whose elements have at least one number each.
    std::uint64_t count() {
        const std::uint64_t value = number();
        good_ = good_ && value <= rest_.size() / sizeof value;
        return good_ ? value : 0;
    }
    /// A number that is at most `last`, such as an enumerator.
    std::uint64_t choice(std::uint64_t last) {
        const std::uint64_t value = number();
        good_ = good_ && value <= last;
        return good_ ? value : 0;
    }
    std::string_view text() { return take(number()); }

    bool good() const noexcept { return good_; }
    bool at_end() const noexcept { return good_ && rest_.empty(); }

  private:
    std::string_view take(std::uint64_t count) {
        good_ = good_ && count <= rest_.size();
        if (!good_) return {};
        const std::string_view taken = rest_.substr(0, count);
        rest_.remove_prefix(count);
        return taken;
    }

    std::string_view rest_;
    bool good_ = true;
};

}  // namespace bascule

// Shapes and strides: up to 64 integers, without an allocation.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>

namespace bascule {

/// NumPy has the same limit.
inline constexpr int max_dimensions = 64;

/// Up to 64 extents or strides. Copies only the used ones, so that it is cheap on the stack of a launch.
class Dimensions {
  public:
    Dimensions() noexcept {}
    explicit Dimensions(std::span<const std::int64_t> values) noexcept
        : size_(static_cast<int>(values.size())) {
        std::ranges::copy(values, values_);
    }
    Dimensions(const Dimensions& other) noexcept : size_(other.size_) {
        std::copy_n(other.values_, size_, values_);
    }
    Dimensions& operator=(const Dimensions& other) noexcept {
        if (this == &other) return *this;
        size_ = other.size_;
        std::copy_n(other.values_, size_, values_);
        return *this;
    }

    int size() const noexcept { return size_; }
    /// size() must be below max_dimensions.
    void push_back(std::int64_t value) noexcept { values_[size_++] = value; }
    /// size() must not be 0.
    void pop_back() noexcept { --size_; }
    /// New elements are uninitialised: the caller writes them.
    void resize(int size) noexcept { size_ = size; }
    std::int64_t operator[](int d) const noexcept { return values_[d]; }
    std::int64_t& operator[](int d) noexcept { return values_[d]; }
    const std::int64_t* begin() const noexcept { return values_; }
    const std::int64_t* end() const noexcept { return values_ + size_; }

  private:
    int size_ = 0;
    std::int64_t values_[max_dimensions];
};

/// "(2, 3)", "(7,)", "()".
inline std::string to_string(const Dimensions& dimensions) {
    std::string text = "(";
    for (int d = 0; d < dimensions.size(); ++d) text += (d == 0 ? "" : ", ") + std::to_string(dimensions[d]);
    return text + (dimensions.size() == 1 ? ",)" : ")");
}

}  // namespace bascule

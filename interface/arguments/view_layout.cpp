#include <algorithm>
#include <cstring>

#include <bascule/interface/arguments/view_layout.hpp>
#include <bascule/interface/arrays/mask.hpp>

namespace bascule {
namespace {

/// The size of an array with one number per dimension; rank 0 has one too, because C++ has no arrays of length 0.
std::size_t row_bytes(int rank) noexcept {
    return static_cast<std::size_t>(std::max(rank, 1)) * sizeof(std::int64_t);
}

class Writer {
  public:
    explicit Writer(std::byte* out) noexcept : out_(out) {}

    template <class T>
    void value(const T& value) noexcept {
        std::memcpy(out_, &value, sizeof value);
        out_ += sizeof value;
    }
    void row(const Dimensions& values, std::size_t bytes) noexcept {
        const std::size_t used = static_cast<std::size_t>(values.size()) * sizeof(std::int64_t);
        std::memcpy(out_, values.begin(), used);
        std::memset(out_ + used, 0, bytes - used);
        out_ += bytes;
    }

  private:
    std::byte* out_;
};

}  // namespace

ViewBytes view_bytes(bool masked, int rank) noexcept {
    const std::size_t row = row_bytes(rank);
    const std::size_t mask = masked ? sizeof(std::uint64_t) + row + sizeof(std::int64_t) : 0;
    const std::size_t plain = sizeof(std::uint64_t) + 2 * row + mask;
    return {plain, plain + sizeof(ViewTag)};
}

void write_view(const ArrayView& seen, const Parameter& parameter, std::byte* out) noexcept {
    const bool masked = parameter.type.kind == ParameterType::Kind::masked_view;
    const std::size_t row = row_bytes(seen.ndim());
    Writer writer(out);
    writer.value(seen.pointer);
    writer.row(seen.shape, row);
    writer.row(seen.strides, row);
    if (parameter.bytes == view_bytes(masked, seen.ndim()).checked) writer.value(parameter.tag);
    if (!masked) return;
    const MaskView* mask = seen.mask.get();
    writer.value(mask == nullptr ? std::uint64_t{0} : mask->array.pointer);
    writer.row(mask == nullptr ? Dimensions{} : mask->strides, row);
    // Bytes of one element of the mask; 0 for single bits.
    writer.value(mask == nullptr || mask->is_bits() ? std::int64_t{0}
                                                    : std::int64_t{mask->array.dtype.itemsize});
}

}  // namespace bascule

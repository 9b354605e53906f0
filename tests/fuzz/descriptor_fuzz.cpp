// Any descriptor becomes a view whose every byte has an address, or an ArgumentError.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <string_view>

#include <bascule/interface/array_interface.hpp>
#include <bascule/interface/error.hpp>

namespace {

/// Takes values off the fuzzer's bytes; zeros when they run out.
struct Bytes {
    const std::uint8_t* data;
    std::size_t size;

    template <class T>
    T take() {
        T value{};
        const std::size_t taken = size < sizeof value ? size : sizeof value;
        if (taken > 0) std::memcpy(&value, data, taken);
        data += taken;
        size -= taken;
        return value;
    }

    /// Small as often as not: large ones alone are all refused.
    std::int64_t extent() {
        return take<std::uint8_t>() % 2 == 0 ? take<std::int8_t>() : take<std::int64_t>();
    }
};

/// The same question in wider arithmetic: is every byte of the array in [0, 2**64)?
bool has_addresses(const bascule::ArrayView& view) {
    __extension__ using Wide = __int128;
    Wide low = view.pointer;
    Wide high = Wide{view.pointer} + view.dtype.itemsize - 1;
    for (int d = 0; d < view.ndim(); ++d) {
        const Wide reach = Wide{view.shape[d] - 1} * view.strides[d];
        (reach < 0 ? low : high) += reach;
    }
    return low >= 0 && high < Wide{1} << 64;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static constexpr std::string_view typestrs[] = {"<f4",  "<f8",         "|u1",     "<c16",
                                                    "|V12", "|V999999999", "<M8[ns]", ">f4"};
    Bytes bytes{data, size};
    bascule::RawInterface raw;
    raw.typestr = typestrs[bytes.take<std::uint8_t>() % std::size(typestrs)];
    raw.version = bytes.take<std::int8_t>();
    raw.pointer = bytes.take<std::uint64_t>();
    const auto flags = bytes.take<std::uint8_t>();
    raw.pointer_is_none = (flags & 1) != 0;
    raw.readonly = (flags & 2) != 0;
    raw.has_strides = (flags & 4) != 0;
    raw.has_stream = (flags & 8) != 0;
    raw.stream = bytes.take<std::uint8_t>();
    const int dimensions = bytes.take<std::uint8_t>() % (bascule::max_dimensions + 1);
    for (int d = 0; d < dimensions; ++d) raw.shape.push_back(bytes.extent());
    const int strides =
        (flags & 16) != 0 ? dimensions : bytes.take<std::uint8_t>() % (bascule::max_dimensions + 1);
    for (int d = 0; d < strides; ++d) raw.strides.push_back(bytes.extent());
    try {
        const bascule::ArrayView view = bascule::validate(raw);
        if (!view.empty() && !has_addresses(view)) std::abort();
        if (view.strides.size() != view.ndim()) std::abort();
        bascule::describe(view);
    } catch (const bascule::ArgumentError& error) {
        if (error.details().field.empty()) std::abort();
    }
    return 0;
}

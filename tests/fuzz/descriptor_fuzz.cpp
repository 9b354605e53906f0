// Any descriptor becomes a view whose every byte has an address, or an ArgumentError; and a view is passed to a
// parameter of any kind as exactly the bytes that the kernel expects, or is refused.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <string_view>

#include <bascule/interface/arguments/argument.hpp>
#include <bascule/interface/arrays/array_interface.hpp>
#include <bascule/interface/errors/error.hpp>

#include "bytes.hpp"

namespace {

using bascule::ParameterType;
using bascule::fuzz::Bytes;
using Kind = ParameterType::Kind;
using Element = ParameterType::Element;

/// The last check of validate in wider arithmetic: true if every byte of the array is in [0, 2**64).
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

bascule::RawInterface descriptor(Bytes& bytes, const std::string& typestr) {
    bascule::RawInterface raw;
    raw.typestr = typestr;
    raw.version = bytes.below(5) == 4 ? bytes.take<std::int64_t>() : bytes.below(4);
    raw.pointer = bytes.flag() ? bytes.take<std::uint64_t>() : bytes.take<std::uint16_t>() * 16u;
    raw.pointer_is_none = bytes.below(16) == 15;
    raw.readonly = bytes.flag();
    raw.has_strides = bytes.flag();
    if (bytes.flag()) raw.stream = bytes.take<std::uint8_t>();
    const int dimensions =
        static_cast<int>(bytes.flag() ? bytes.below(bascule::max_dimensions + 1) : bytes.below(4));
    for (int d = 0; d < dimensions; ++d) raw.shape.push_back(bytes.extent());
    const int strides =
        bytes.below(8) < 7 ? dimensions : static_cast<int>(bytes.below(bascule::max_dimensions + 1));
    for (int d = 0; d < strides; ++d) raw.strides.push_back(bytes.extent());
    return raw;
}

/// A parameter of any kind with its size, as reflection may describe it.
bascule::Parameter parameter(Bytes& bytes) {
    static constexpr std::string_view elements[] = {"<f4", "<f8", "|u1", "<c16", "<i8", "<V2", "|b1", "<f1"};
    bascule::Parameter result;
    result.name = "x";
    result.spelling = "T x";
    ParameterType& type = result.type;
    constexpr Kind kinds[] = {Kind::pointer, Kind::array_view, Kind::span,  Kind::scalar,
                              Kind::vector,  Kind::structure,  Kind::opaque};
    type.kind = kinds[bytes.below(std::size(kinds))];
    type.element_kind = static_cast<Element>(bytes.below(6));
    type.dtype = bascule::parse_typestr(elements[bytes.below(std::size(elements))]);
    type.constant = bytes.flag();
    type.character = bytes.flag();
    type.rank = static_cast<int>(bytes.below(5));
    type.lanes = bytes.below(4) == 0 ? static_cast<int>(1 + bytes.below(4)) : 0;
    type.alignment = 1u << bytes.below(5);
    type.order = static_cast<ParameterType::Order>(bytes.below(3));
    type.index = bytes.flag() ? bascule::DType{bascule::DType::Kind::signed_integer, 4}
                              : bascule::DType{bascule::DType::Kind::unsigned_integer, 8};
    const auto rank = static_cast<std::uint32_t>(type.rank);
    result.bytes = type.kind == Kind::array_view ? 8 + 16 * rank : 8;
    if (type.kind == Kind::span) {
        bascule::ViewLayout layout{0, 8, {}, {}};
        for (int d = 0; d < type.rank; ++d) {
            const bool fixed = bytes.below(4) == 0;
            type.static_extents.push_back(fixed ? bytes.below(9) : -1);
            if (!fixed) layout.extents.push_back({d, result.bytes}), result.bytes += 8;
            if (type.order == ParameterType::Order::strided) {
                layout.strides.push_back({d, result.bytes});
                result.bytes += 8;
            }
        }
        if (bytes.below(8) != 0) type.layout = layout;
    }
    result.alignment = 8;
    return result;
}

void check_written(const bascule::ArrayView& view, const bascule::Parameter& parameter, void* slot) {
    const ParameterType& type = parameter.type;
    std::uint64_t pointer = 0;
    std::memcpy(&pointer, slot, sizeof pointer);
    if (pointer != view.pointer) std::abort();
    if (view.readonly && !type.constant) std::abort();
    if (!view.empty() && view.pointer % type.alignment != 0) std::abort();
    if (view.dtype.kind == bascule::DType::Kind::bit) std::abort();
    if (type.kind == Kind::pointer && type.lanes == 0 && !view.c_contiguous) std::abort();
    if (type.kind == Kind::array_view && type.lanes == 0) {
        if (view.ndim() != type.rank) std::abort();
        const std::size_t row = static_cast<std::size_t>(type.rank) * 8;
        const char* words = static_cast<const char*>(slot) + 8;
        if (std::memcmp(words, view.shape.begin(), row) != 0) std::abort();
        if (std::memcmp(words + row, view.strides.begin(), row) != 0) std::abort();
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static constexpr std::string_view typestrs[] = {"<f4",     "<f8", "|u1", "<c16", "|V12", "|V999999999",
                                                    "<M8[ns]", ">f4", "<V2", "|t1",  "<f1",  "|V16"};
    Bytes bytes{data, size};
    const std::string typestr = bytes.one_of(typestrs);
    bascule::Signature signature;
    signature.kernel = "k";
    const std::uint32_t parameters = 1 + bytes.below(40);  // above 32, or 1 KiB, an ArgumentPack allocates
    for (std::uint32_t i = 0; i < parameters; ++i) {
        signature.parameters.push_back(parameter(bytes));
        if (bytes.size == 0) break;
    }
    lay_out(signature);
    const bascule::RawInterface raw = descriptor(bytes, typestr);
    try {
        const bascule::ArrayView view = bascule::validate(raw);
        if (!view.empty() && !has_addresses(view)) std::abort();
        if (view.strides.size() != view.ndim()) std::abort();
        bascule::describe(view);
        bascule::ArgumentPack pack(signature);
        for (std::size_t i = 0; i < signature.parameters.size(); ++i) {
            const auto index = static_cast<int>(i);
            try {
                pack.set(index, view);
                check_written(view, signature.parameters[i], pack.table()[i]);
            } catch (const bascule::ArgumentError& error) {
                if (error.details().index != index || error.details().name != "x") std::abort();
            }
        }
    } catch (const bascule::ArgumentError& error) {
        if (error.details().field.empty()) std::abort();
    }
    return 0;
}

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include <bascule/interface/argument.hpp>
#include <bascule/interface/error.hpp>
#include <bascule/interface/scalar_conversion.hpp>

namespace bascule {
namespace {

using Kind = ArgumentError::Kind;
using Declared = ParameterType::Kind;

/// An error about one parameter, named with its position.
[[noreturn]] void fail(Kind kind, int index, const Parameter& parameter, const std::string& got,
                       const std::string& advice) {
    const ArgumentError error(
        kind, fmt::format("the kernel declares `{}`, got {}. {}", parameter.spelling, got, advice),
        {.expected = parameter.spelling, .got = got});
    throw error.with_argument(index, parameter.name);
}

// --- Which arrays fit which elements

}  // namespace

bool accepts(const ParameterType& declared, DType dtype) noexcept {
    if (dtype.kind == DType::Kind::bit) return false;
    if (declared.any_element) return true;
    if (declared.opaque_element) {  // by size alone, and only where the compiler told it
        return declared.dtype.itemsize > 0 && dtype == DType{DType::Kind::opaque, declared.dtype.itemsize};
    }
    if (declared.bfloat16) return dtype == DType{DType::Kind::opaque, 2};
    if (dtype == declared.dtype) return true;
    if (dtype.itemsize != declared.dtype.itemsize) return false;
    switch (dtype.kind) {
        case DType::Kind::boolean:  // a byte of 0 or 1
            return declared.dtype.kind == DType::Kind::unsigned_integer && !declared.character;
        case DType::Kind::signed_integer:
        case DType::Kind::unsigned_integer:
            return declared.character;
        case DType::Kind::datetime:
        case DType::Kind::timedelta:
            return declared.dtype.kind == DType::Kind::signed_integer;
        default:
            return false;
    }
}

namespace {

/// What to declare for arrays of this dtype; empty when there is no such type.
std::string declaration_for(const ParameterType& declared, DType dtype) {
    const std::string_view element =
        dtype == DType{DType::Kind::opaque, 2} ? "__nv_bfloat16" : cuda_name(dtype);
    if (element.empty()) return {};
    const char* constant = declared.constant ? "const " : "";
    if (declared.kind == Declared::pointer) return fmt::format("{}{}*", constant, element);
    if (declared.rank == 1) return fmt::format("bascule::array_view<{}{}>", constant, element);
    return fmt::format("bascule::array_view<{}{}, {}>", constant, element, declared.rank);
}

[[noreturn]] void fail_dtype(int index, const Parameter& parameter, const ArrayView& array) {
    const ParameterType& declared = parameter.type;
    if (array.dtype.kind == DType::Kind::bit) {
        fail(Kind::value, index, parameter, describe(array),
             "Arrays of single bits are masks; they are no kernel arguments.");
    }
    if (declared.opaque_element) {
        fail(Kind::type, index, parameter, describe(array),
             "The layout of its elements is not known here: declare a pointer and pass "
             "bascule.raw_pointer(address).");
    }
    const std::string declaration = declaration_for(declared, array.dtype);
    const std::string convert = declared.bfloat16 ? "Convert it to bfloat16"
                                                  : fmt::format("Convert it with .astype(\"{}\")",
                                                                to_typestr(declared.dtype).substr(1));
    fail(Kind::type, index, parameter, describe(array),
         declaration.empty() ? convert + "." : fmt::format("{}, or declare `{}`.", convert, declaration));
}

// --- Arrays for pointers and views

[[noreturn]] void fail_masked(int index, const Parameter& parameter, const ArrayView& array) {
    fail(Kind::not_supported, index, parameter, describe(array) + " with a 'mask'",
         "The kernel would ignore which elements are valid. Only bascule::masked_view<T, N> takes masked "
         "arrays; "
         "otherwise pass the data and the mask as two arrays.");
}

void check_access(int index, const Parameter& parameter, const ArrayView& array) {
    if (array.readonly && !parameter.type.constant) {
        fail(Kind::value, index, parameter, describe(array),
             "The kernel could write to it: declare the elements const, or pass a copy.");
    }
    const std::uint32_t alignment = parameter.type.alignment;
    if (!array.empty() && alignment > 1 && array.pointer % alignment != 0) {
        fail(Kind::value, index, parameter, describe(array),
             fmt::format(
                 "Its address {:#x} is not aligned to the {} bytes that an element needs: pass a copy.",
                 array.pointer, alignment));
    }
}

void check_contiguous(int index, const Parameter& parameter, const ArrayView& array) {
    if (array.contiguous()) return;
    ParameterType view = parameter.type;
    view.kind = Declared::array_view;
    view.rank = array.ndim();
    const std::string declaration = declaration_for(view, array.dtype);
    fail(Kind::value, index, parameter, describe(array),
         fmt::format("A raw pointer cannot know the strides: declare `{}`, or pass a contiguous copy.",
                     declaration.empty() ? "bascule::array_view<T, N>" : declaration));
}

[[noreturn]] void fail_rank(int index, const Parameter& parameter, const ArrayView& array) {
    ParameterType same_rank = parameter.type;
    same_rank.rank = array.ndim();
    const std::string declaration = array.ndim() == 0 ? "" : declaration_for(same_rank, array.dtype);
    fail(Kind::value, index, parameter, describe(array),
         fmt::format("The view has {} dimension{}, the array {}: reshape it{}.", parameter.type.rank,
                     parameter.type.rank == 1 ? "" : "s", array.ndim(),
                     declaration.empty() ? "" : fmt::format(", or declare `{}`", declaration)));
}

void check_view(int index, const Parameter& parameter, const ArrayView& array) {
    const ParameterType& declared = parameter.type;
    if (array.ndim() != declared.rank) fail_rank(index, parameter, array);
    for (int d = 0; d < array.ndim() && !array.empty(); ++d) {
        if (array.shape[d] == 1) continue;
        if (array.strides[d] == 0 && !declared.constant) {
            fail(Kind::value, index, parameter, describe(array),
                 fmt::format("Axis {} is broadcast (its stride is 0), so writes would meet: declare the "
                             "elements const, or pass a copy.",
                             d));
        }
        if (declared.alignment > 1 && array.strides[d] % static_cast<std::int64_t>(declared.alignment) != 0) {
            fail(Kind::value, index, parameter, describe(array),
                 fmt::format("The stride of axis {} is no multiple of the {} bytes that an element is "
                             "aligned to: pass a copy.",
                             d, declared.alignment));
        }
    }
}

/// bascule::array_view<T, N> as the prelude lays it out: the pointer, N extents, N strides in bytes.
void write_view(int index, const Parameter& parameter, const ArrayView& array, std::byte* out) {
    const std::size_t row = static_cast<std::size_t>(array.ndim()) * sizeof(std::int64_t);
    if (parameter.bytes != sizeof array.pointer + 2 * row) {
        fail(Kind::value, index, parameter, describe(array),
             fmt::format(
                 "This view takes {} bytes in the kernel, and Bascule writes {}: the kernel was compiled "
                 "against another Bascule's array_view. Compile it with this one.",
                 parameter.bytes, sizeof array.pointer + 2 * row));
    }
    std::memcpy(out, &array.pointer, sizeof array.pointer);
    std::memcpy(out + 8, array.shape.begin(), row);
    std::memcpy(out + 8 + row, array.strides.begin(), row);
}

/// What to pass for a parameter of this kind.
const char* wanted(const ParameterType& declared) noexcept {
    switch (declared.kind) {
        case Declared::scalar:
            return "a number";
        case Declared::pointer:
        case Declared::array_view:
            return "a device array";
        case Declared::opaque:
            break;
    }
    return "the struct's bytes";
}

[[noreturn]] void fail_array_for_value(int index, const Parameter& parameter, const ArrayView& array) {
    fail(Kind::type, index, parameter, describe(array),
         parameter.type.kind == Declared::scalar
             ? "It is passed by value: pass a scalar, or declare a pointer."
             : "It is passed by value: pass its bytes.");
}

}  // namespace

ArgumentPack::ArgumentPack(const Signature& signature) : signature_(&signature) {
    const std::size_t count = signature.parameters.size();
    bytes_ = inline_storage_;
    table_ = inline_table_;
    producers_ = inline_producers_;
    if (signature.bytes > inline_bytes) {
        heap_storage_ = std::make_unique<std::byte[]>(signature.bytes);
        bytes_ = heap_storage_.get();
    }
    if (count > static_cast<std::size_t>(inline_parameters)) {
        heap_table_ = std::make_unique<void*[]>(count);
        table_ = heap_table_.get();
    }
    for (std::size_t i = 0; i < count; ++i) table_[i] = slot(static_cast<int>(i));
}

void ArgumentPack::set(int index, const ArrayView& array, bool ordered) {
    const Parameter& parameter = signature_->parameters[static_cast<std::size_t>(index)];
    const ParameterType& declared = parameter.type;
    if (declared.kind != Declared::pointer && declared.kind != Declared::array_view) {
        fail_array_for_value(index, parameter, array);
    }
    if (array.masked) fail_masked(index, parameter, array);
    if (!accepts(declared, array.dtype)) fail_dtype(index, parameter, array);
    if (declared.kind == Declared::pointer) {
        check_contiguous(index, parameter, array);
        check_access(index, parameter, array);
        std::memcpy(slot(index), &array.pointer, sizeof array.pointer);
    } else {
        check_view(index, parameter, array);
        check_access(index, parameter, array);
        write_view(index, parameter, array, slot(index));
    }
    ++arrays_;
    if (array.has_stream && ordered) {
        ++arrays_with_stream_;
        add_producer(array.stream, index);
    }
}

void ArgumentPack::set(int index, const Scalar& scalar) {
    const Parameter& parameter = signature_->parameters[static_cast<std::size_t>(index)];
    switch (parameter.type.kind) {
        case Declared::scalar:
            try {
                write_scalar(scalar, parameter, slot(index));
            } catch (const ArgumentError& error) {
                throw error.with_argument(index, parameter.name);
            }
            return;
        case Declared::pointer:
            fail(Kind::type, index, parameter, describe(scalar),
                 "Pass a device array; an integer address must be wrapped: bascule.raw_pointer(address).");
        case Declared::array_view:
            fail(Kind::type, index, parameter, describe(scalar), "Pass a device array.");
        case Declared::opaque:
            fail(Kind::type, index, parameter, describe(scalar),
                 fmt::format("A number does not go into a struct: pass its {} bytes.", parameter.bytes));
    }
}

void ArgumentPack::set(int index, RawPointer pointer) {
    const Parameter& parameter = signature_->parameters[static_cast<std::size_t>(index)];
    if (parameter.type.kind != Declared::pointer) {
        fail(Kind::type, index, parameter, fmt::format("the raw pointer {:#x}", pointer.address),
             parameter.type.kind == Declared::array_view ? "A view needs a shape too: pass a device array."
                                                         : "Only pointer parameters take one.");
    }
    std::memcpy(slot(index), &pointer.address, sizeof pointer.address);
}

void ArgumentPack::set(int index, RawBytes bytes) {
    const Parameter& parameter = signature_->parameters[static_cast<std::size_t>(index)];
    const std::string got = fmt::format("{} bytes", bytes.bytes.size());
    if (parameter.type.kind != Declared::opaque) {
        fail(Kind::type, index, parameter, got,
             fmt::format("Raw bytes are for structs passed by value: pass {}.", wanted(parameter.type)));
    }
    if (bytes.bytes.size() != parameter.bytes) {
        fail(Kind::value, index, parameter, got, fmt::format("Pass exactly {} bytes.", parameter.bytes));
    }
    std::memcpy(slot(index), bytes.bytes.data(), bytes.bytes.size());
}

void ArgumentPack::set_null(int index) {
    const Parameter& parameter = signature_->parameters[static_cast<std::size_t>(index)];
    if (parameter.type.kind != Declared::pointer) {
        fail(Kind::type, index, parameter, "None",
             fmt::format("None is a null pointer, and this is no pointer: pass {}.", wanted(parameter.type)));
    }
    std::memset(slot(index), 0, parameter.bytes);
}

void ArgumentPack::set(int index, const ArgumentValue& value) {
    if (const auto* array = std::get_if<ArrayView>(&value)) {
        set(index, *array);
    } else if (const auto* scalar = std::get_if<Scalar>(&value)) {
        set(index, *scalar);
    } else if (const auto* pointer = std::get_if<RawPointer>(&value)) {
        set(index, *pointer);
    } else if (const auto* bytes = std::get_if<RawBytes>(&value)) {
        set(index, *bytes);
    } else {
        set_null(index);
    }
}

void ArgumentPack::add_producer(std::uint64_t stream, int argument) {
    for (const Producer& producer : producers()) {
        if (producer.stream == stream) return;
    }
    if (producer_count_ == producer_capacity_) grow_producers();
    producers_[producer_count_++] = {stream, argument};
}

void ArgumentPack::grow_producers() {
    auto larger = std::make_unique<Producer[]>(static_cast<std::size_t>(producer_capacity_) * 2);
    std::copy_n(producers_, producer_count_, larger.get());
    heap_producers_ = std::move(larger);
    producers_ = heap_producers_.get();
    producer_capacity_ *= 2;
}

std::optional<std::uint64_t> ArgumentPack::common_stream() const noexcept {
    if (arrays_ == 0 || arrays_ != arrays_with_stream_ || producer_count_ != 1) return std::nullopt;
    return producers_[0].stream;
}

void ArgumentPack::check_count(const Signature& signature, std::size_t given) {
    const std::size_t declared = signature.parameters.size();
    if (given == declared) return;
    throw ArgumentError(Kind::type,
                        fmt::format("kernel '{}' takes {} argument{}, got {}: {}", signature.kernel, declared,
                                    declared == 1 ? "" : "s", given, to_string(signature)),
                        {.expected = std::to_string(declared), .got = std::to_string(given)});
}

}  // namespace bascule

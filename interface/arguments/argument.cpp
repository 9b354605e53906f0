#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include <bascule/interface/arguments/argument.hpp>
#include <bascule/interface/arguments/array_argument.hpp>
#include <bascule/interface/arguments/scalar_conversion.hpp>
#include <bascule/interface/arrays/mask.hpp>
#include <bascule/interface/errors/language.hpp>
#include <bascule/interface/errors/rejection.hpp>

namespace bascule {
namespace {

using Declared = ParameterType::Kind;

/// An error about one parameter, named with its position.
[[noreturn]] void fail(ErrorKind kind, int index, const Parameter& parameter, const std::string& got,
                       const std::string& advice) {
    const ArgumentError error(
        kind, fmt::format("the kernel declares `{}`, got {}. {}", parameter.spelling, got, advice),
        {.expected = parameter.spelling, .got = got});
    throw error.with_argument(index, parameter.name);
}

/// What a parameter without a type takes. The size alone does not say how to convert a number.
std::string untyped_value(const Parameter& parameter) {
    const std::string number =
        advice(fmt::format("a NumPy scalar or a ctypes number of {} bytes, whose type is what is passed, or "
                           "bascule.raw_bytes(its {} bytes)",
                           parameter.bytes, parameter.bytes),
               fmt::format("bascule::RawBytes of its {} bytes", parameter.bytes));
    return may_be_pointer(parameter.type) ? "a device array for a pointer; for a value " + number : number;
}

/// A complex number is aligned as a whole: float2 is, cuda::std::array<float, 2> is not.
bool is_complex_vector(const ParameterType& declared) noexcept {
    return declared.kind == Declared::vector && declared.lanes == 2 &&
           declared.dtype.kind == DType::Kind::floating && declared.alignment == 2 * declared.dtype.itemsize;
}

/// cuFloatComplex is float2.
Parameter complex_of(const Parameter& vector) {
    Parameter number = vector;
    number.type.kind = Declared::scalar;
    number.type.lanes = 0;
    number.type.dtype = {DType::Kind::complex, vector.bytes};
    return number;
}

bool is_class(const ParameterType& declared) noexcept {
    return declared.kind == Declared::opaque || declared.kind == Declared::structure ||
           declared.kind == Declared::vector || declared.kind == Declared::span ||
           declared.kind == Declared::untyped;
}

/// A number that says its type, for a parameter that does not. Nothing where it says none, or one of another size.
std::optional<Parameter> typed_as(const Scalar& scalar, const Parameter& untyped) {
    if (!scalar.dtype || scalar.dtype->itemsize != untyped.bytes) return std::nullopt;
    Parameter number = untyped;
    number.type.kind = Declared::scalar;
    number.type.dtype = *scalar.dtype;
    return number;
}

std::string describe(const ImageArgument& image) {
    return fmt::format("a {}", image.is_surface ? "surface" : "texture");
}

template <class T>
T read_as(std::span<const std::byte> bytes) noexcept {
    T value{};
    std::memcpy(&value, bytes.data(), sizeof value);
    return value;
}

/// The number of the one of these types that has as many bytes; empty where none has.
template <class... T>
std::string number_of_one(std::span<const std::byte> bytes) {
    std::string text;
    const auto read = [&]<class Number>(Number) {
        if (bytes.size() == sizeof(Number)) text = fmt::format("{}", +read_as<Number>(bytes));
    };
    (read(T{}), ...);
    return text;
}

/// Empty where the dtype has no number of C++'s.
std::string number_in(DType dtype, std::span<const std::byte> bytes) {
    if (dtype.format != DType::Format::none || bytes.size() != dtype.itemsize) return {};
    switch (dtype.kind) {
        case DType::Kind::boolean:
            return read_as<std::uint8_t>(bytes) != 0 ? "true" : "false";
        case DType::Kind::signed_integer:
            return number_of_one<std::int8_t, std::int16_t, std::int32_t, std::int64_t>(bytes);
        case DType::Kind::unsigned_integer:
            return number_of_one<std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t>(bytes);
        case DType::Kind::floating:
            return number_of_one<float, double>(bytes);
        default:
            return {};
    }
}

std::string value_in(const Parameter& parameter, std::span<const std::byte> bytes) {
    const Declared kind = parameter.type.kind;
    if (kind == Declared::pointer) return fmt::format("{:#x}", read_as<std::uint64_t>(bytes));
    if (kind == Declared::scalar) {
        if (std::string number = number_in(parameter.type.dtype, bytes); !number.empty()) return number;
    }
    if ((kind == Declared::array_view || kind == Declared::masked_view) && bytes.size() >= 8) {
        return fmt::format("a view of {:#x}", read_as<std::uint64_t>(bytes));
    }
    return fmt::format("{} bytes", bytes.size());
}

}  // namespace

std::string what_to_pass(const Parameter& parameter) {
    const ParameterType& declared = parameter.type;
    if (declared.image == ParameterType::Image::texture)
        return advice("a texture: bascule.texture(array) makes one", "a bascule::Texture");
    if (declared.image == ParameterType::Image::surface)
        return advice("a surface: bascule.surface(array) makes one", "a bascule::Surface");
    switch (declared.kind) {
        case Declared::scalar:
            return "a number";
        case Declared::pointer:
            if (declared.element_kind == ParameterType::Element::function) {
                return advice("bascule.raw_pointer(address)", "bascule::RawPointer{address}") +
                       " with an address that a kernel wrote to memory";
            }
            return "a device array";
        case Declared::array_view:
        case Declared::masked_view:
        case Declared::span:
            return "a device array";
        case Declared::vector:
            return fmt::format("a tuple of {} numbers", declared.lanes);
        case Declared::structure:
            return advice(fmt::format("a NumPy structured scalar or a ctypes structure with its fields, a "
                                      "tuple with a value for each member, or bascule.raw_bytes(its {} "
                                      "bytes)",
                                      parameter.bytes),
                          fmt::format("a struct of {} bytes that is trivially copyable", parameter.bytes));
        case Declared::untyped:
            return untyped_value(parameter);
        case Declared::opaque:
            break;
    }
    return advice(fmt::format("bascule.raw_bytes(its {} bytes)", parameter.bytes),
                  fmt::format("bascule::RawBytes of its {} bytes", parameter.bytes));
}

ArgumentPack::More::~More() = default;

void ArgumentPack::use_storage() {
    const std::size_t table_bytes = signature_->parameters.size() * sizeof(void*);
    more().storage = std::make_unique<std::byte[]>(table_bytes + 16 + signature_->bytes);
    table_ = reinterpret_cast<void**>(more_->storage.get());
    bytes_ = more_->storage.get() + (table_bytes + 15) / 16 * 16;  // new gives memory that is aligned to 16
}

void ArgumentPack::set(int index, const ArrayView& array, bool ordered) {
    write(index, array);
    join(index, array, ordered);
}

void ArgumentPack::join(int index, const ArrayView& array, bool ordered) {
    const bool joins = ordered && !ignores_streams_;
    arrays_ |= array.has_stream && joins ? some_name_a_stream : some_name_none;
    if (!joins) return;
    if (array.has_stream) add_producer(array.stream, index, array.device);
    if (array.stream_source == StreamSource::interface) note_interface_stream(index, array.stream);
    if (array.mask != nullptr) join_mask(index, *array.mask);
}

void ArgumentPack::write(int index, const ArrayView& array) {
    const Parameter& parameter = signature_->parameters[static_cast<std::size_t>(index)];
    if (!takes_arrays(parameter.type)) {
        fail(ErrorKind::type, index, parameter, describe(array),
             takes_images(parameter.type)
                 ? fmt::format("Pass {}.", what_to_pass(parameter))
                 : fmt::format(
                       "It is passed by value: pass {}, or declare a pointer.",
                       parameter.type.kind == Declared::scalar ? "a scalar" : what_to_pass(parameter)));
    }
    naming_argument(index, parameter.name, [&] { write_array(array, parameter, slot(index)); });
    if (array.layout != nullptr && parameter.type.element_kind == ParameterType::Element::structure) {
        more().layout_claims.push_back({index, array.layout});
    }
}

/// A mask that names no stream is ordered with its array.
void ArgumentPack::join_mask(int index, const MaskView& mask) {
    if (!mask.array.has_stream) return;
    arrays_ |= some_name_a_stream;
    add_producer(mask.array.stream, index, mask.array.device);
}

void ArgumentPack::set(int index, const Scalar& scalar) {
    const Parameter& parameter = signature_->parameters[static_cast<std::size_t>(index)];
    const ParameterType& declared = parameter.type;
    if (takes_images(declared)) {
        fail(ErrorKind::type, index, parameter, describe(scalar),
             fmt::format("Pass {}.", what_to_pass(parameter)));
    }
    const auto write_as = [&](const Parameter& number) {
        naming_argument(index, parameter.name, [&] { write_scalar(scalar, number, slot(index)); });
    };
    if (declared.kind == Declared::scalar) return write_as(parameter);
    if (scalar.kind == Scalar::Kind::complex && is_complex_vector(declared))
        return write_as(complex_of(parameter));
    if (declared.kind == Declared::untyped) {
        if (const std::optional<Parameter> number = typed_as(scalar, parameter)) return write_as(*number);
        fail(ErrorKind::type, index, parameter,
             scalar.dtype ? fmt::format("{} ({})", describe(scalar), to_string(*scalar.dtype))
                          : describe(scalar),
             fmt::format("The code does not say the parameter's type: pass {}.", what_to_pass(parameter)));
    }
    const bool address =
        declared.kind == Declared::pointer && declared.element_kind != ParameterType::Element::function;
    fail(
        ErrorKind::type, index, parameter, describe(scalar),
        address
            ? advice("Pass a device array; an integer address must be wrapped: bascule.raw_pointer(address).",
                     "Pass a pointer to device memory: reinterpret_cast<float*>(buffer.address()).")
            : fmt::format("Pass {}.", what_to_pass(parameter)));
}

void ArgumentPack::join_arrays(int index, const TupleArgument& tuple) {
    for (const TupleArgument::Element& element : tuple.elements) {
        if (const auto* array = std::get_if<std::shared_ptr<const ArrayView>>(&element))
            join(index, **array, true);
        if (const auto* inner = std::get_if<TupleArgument>(&element)) join_arrays(index, *inner);
    }
}

void ArgumentPack::set(int index, const TupleArgument& tuple) {
    const Parameter& parameter = signature_->parameters[static_cast<std::size_t>(index)];
    if (parameter.type.kind == Declared::structure) {
        join_arrays(index, tuple);
        more().tuple_claims.push_back({index, tuple});
        return;
    }
    if (parameter.type.kind != Declared::vector) {
        const std::string got = describe(tuple);
        if (!takes_arrays(parameter.type)) {
            const std::size_t count = tuple.elements.size();
            const std::string which = count == 1 ? "the number itself" : "one of them";
            fail(ErrorKind::type, index, parameter,
                 count == 0   ? "an empty tuple"
                 : count == 1 ? "a tuple of one number"
                              : "a tuple of " + got,
                 parameter.type.kind == Declared::scalar && count > 0 && !takes_images(parameter.type)
                     ? advice(fmt::format("Pass {}, such as x.shape[0].", which),
                              fmt::format("Pass {}.", which))
                     : fmt::format("Pass {}.", what_to_pass(parameter)));
        }
        fail(ErrorKind::type, index, parameter, got + " in host memory",
             advice("Make a device array of them: bascule.to_device(numpy.array(x, dtype)).",
                    "Pass a device array."));
    }
    naming_argument(index, parameter.name, [&] { write_lanes(tuple, parameter, slot(index)); });
}

void ArgumentPack::set_members(const TupleClaim& claim, std::span<const StructMember> members) {
    const Parameter& parameter = signature_->parameters[static_cast<std::size_t>(claim.argument)];
    std::memset(slot(claim.argument), 0, parameter.bytes);  // padding
    naming_argument(claim.argument, parameter.name,
                    [&] { write_members(claim.tuple, members, parameter, slot(claim.argument)); });
}

void ArgumentPack::set(int index, const StructuredScalar& structure) {
    const Parameter& parameter = signature_->parameters[static_cast<std::size_t>(index)];
    const ParameterType& declared = parameter.type;
    const std::string got = "a structured scalar " + to_string(*structure.layout);
    if (declared.kind == Declared::vector) {
        if (!is_sequence_of(*structure.layout, declared.dtype, declared.lanes)) {
            fail(ErrorKind::type, index, parameter, got,
                 fmt::format("Pass {}, or a scalar with {} fields of {} side by side.",
                             what_to_pass(parameter), declared.lanes, to_string(declared.dtype)));
        }
    } else if (declared.kind == Declared::structure) {
        more().layout_claims.push_back({index, structure.layout, structure.source});
    } else if (declared.kind == Declared::untyped) {
        return set(index, RawBytes{structure.bytes});
    } else {
        fail(ErrorKind::type, index, parameter, got, fmt::format("Pass {}.", what_to_pass(parameter)));
    }
    // Another size is for the comparison of the fields to explain.
    std::memcpy(slot(index), structure.bytes.data(),
                std::min<std::size_t>(structure.bytes.size(), parameter.bytes));
}

void ArgumentPack::set(int index, const ImageArgument& image) {
    const Parameter& parameter = signature_->parameters[static_cast<std::size_t>(index)];
    const ParameterType& declared = parameter.type;
    if (!can_hold_handle(declared)) {
        fail(ErrorKind::type, index, parameter, describe(image),
             fmt::format("A kernel takes it as `{}`.",
                         image.is_surface ? "cudaSurfaceObject_t" : "cudaTextureObject_t"));
    }
    if (takes_images(declared) && (declared.image == ParameterType::Image::surface) != image.is_surface)
        fail(ErrorKind::type, index, parameter, describe(image),
             fmt::format("Pass {}.", what_to_pass(parameter)));
    std::memcpy(slot(index), &image.handle, sizeof image.handle);
    join(index, image.array, true);
}

void ArgumentPack::set(int index, RawPointer pointer) {
    const Parameter& parameter = signature_->parameters[static_cast<std::size_t>(index)];
    if (parameter.type.kind != Declared::pointer && !may_be_pointer(parameter.type)) {
        const bool view = takes_arrays(parameter.type);
        fail(ErrorKind::type, index, parameter, fmt::format("the raw pointer {:#x}", pointer.address),
             view                           ? "A view needs a shape too: pass a device array."
             : takes_images(parameter.type) ? fmt::format("Pass {}.", what_to_pass(parameter))
                                            : "Only pointer parameters take one.");
    }
    std::memcpy(slot(index), &pointer.address, sizeof pointer.address);
}

void ArgumentPack::set(int index, RawBytes bytes) {
    const Parameter& parameter = signature_->parameters[static_cast<std::size_t>(index)];
    const std::string got = fmt::format("{} bytes", bytes.bytes.size());
    if (!is_class(parameter.type)) {
        fail(ErrorKind::type, index, parameter, got,
             fmt::format("Raw bytes are for structs passed by value: pass {}.", what_to_pass(parameter)));
    }
    if (bytes.bytes.size() != parameter.bytes) {
        fail(ErrorKind::value, index, parameter, got, fmt::format("Pass exactly {} bytes.", parameter.bytes));
    }
    std::memcpy(slot(index), bytes.bytes.data(), bytes.bytes.size());
}

void ArgumentPack::set_null(int index) {
    const Parameter& parameter = signature_->parameters[static_cast<std::size_t>(index)];
    if (takes_images(parameter.type))
        fail(ErrorKind::type, index, parameter, "None", fmt::format("Pass {}.", what_to_pass(parameter)));
    if (parameter.type.kind != Declared::pointer && !may_be_pointer(parameter.type)) {
        fail(ErrorKind::type, index, parameter, "None",
             fmt::format("None is a null pointer, and this is not a pointer: pass {}.",
                         what_to_pass(parameter)));
    }
    std::memset(slot(index), 0, parameter.bytes);
}

void ArgumentPack::set(int index, const ArgumentValue& value) {
    std::visit(
        [&]<class Given>(const Given& given) {
            if constexpr (std::is_same_v<Given, std::monostate>) {
                set_null(index);
            } else {
                set(index, given);
            }
        },
        value);
}

void ArgumentPack::add_another(const Producer& named) {
    for (const Producer& producer : producers()) {
        if (producer.same_stream(named)) return;
    }
    if (producer_count_ < inline_producers) {
        new (&producers_[producer_count_]) Producer(named);
    } else {
        std::vector<Producer>& all = more().producers;
        if (all.empty()) all.assign(producers_, producers_ + producer_count_);
        all.push_back(named);
        producers_ = all.data();
    }
    ++producer_count_;
}

void ArgumentPack::fail_count(const Signature& signature, std::size_t given) {
    const std::size_t declared = signature.parameters.size();
    reject(ErrorKind::type, {.expected = std::to_string(declared), .got = std::to_string(given)},
           "kernel '{}' takes {} argument{}, got {}: {}{}", signature.kernel, declared,
           declared == 1 ? "" : "s", given, to_string(signature),
           given < declared ? advice_on_defaults(signature.defaults) : "");
}

std::string to_string(const ArgumentPack& pack) {
    std::string text;
    int index = 0;
    for (const Parameter& parameter : pack.signature().parameters) {
        text += fmt::format("{}{}={}", text.empty() ? "" : ", ", parameter.name,
                            value_in(parameter, pack.passed(index++)));
    }
    return text.empty() ? "none" : text;
}

}  // namespace bascule

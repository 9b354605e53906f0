#include <algorithm>

#include <fmt/format.h>

#include <bascule/interface/arguments/argument.hpp>
#include <bascule/interface/arguments/array_argument.hpp>
#include <bascule/interface/arguments/refusals.hpp>
#include <bascule/interface/arguments/scalar_conversion.hpp>
#include <bascule/interface/arrays/mask.hpp>

namespace bascule {
namespace {

using Declared = ParameterType::Kind;

/// True for float2 and double2, which are aligned as a whole like complex numbers. cuda::std::array<float, 2> is not.
bool is_complex_vector(const ParameterType& declared) noexcept {
    return declared.kind == Declared::vector && declared.lanes == 2 &&
           declared.dtype.kind == DType::Kind::floating && declared.alignment == 2 * declared.dtype.itemsize;
}

/// The parameter as a complex number, because cuFloatComplex is float2.
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

/// The untyped parameter with the type of the number. Nothing if the number has no dtype or another size.
std::optional<Parameter> typed_as(const Scalar& scalar, const Parameter& untyped) {
    if (!scalar.dtype || scalar.dtype->itemsize != untyped.bytes) return std::nullopt;
    Parameter number = untyped;
    number.type.kind = Declared::scalar;
    number.type.dtype = *scalar.dtype;
    return number;
}

}  // namespace

ArgumentPack::More::~More() = default;

void ArgumentPack::use_storage() {
    const std::size_t table_bytes = signature_->parameters.size() * sizeof(void*);
    more().storage = std::make_unique<std::byte[]>(table_bytes + 16 + signature_->bytes);
    table_ = reinterpret_cast<void**>(more_->storage.get());
    bytes_ = more_->storage.get() + (table_bytes + 15) / 16 * 16;  // new aligns memory to 16 bytes
}

void ArgumentPack::set(int index, const ArgumentValue& value) {
    std::visit([&](const auto& given) { set_and_name(index, given); }, value);
}
void ArgumentPack::set(int index, const ArrayView& array) { set_and_name(index, array); }
void ArgumentPack::set(int index, const Scalar& scalar) { set_and_name(index, scalar); }

template <class Given>
void ArgumentPack::set_and_name(int index, const Given& given) {
    naming_argument(index, parameter(index).name, [&] { accept(index, given); });
}

void ArgumentPack::accept(int index, std::monostate) {
    const Parameter& declared = parameter(index);
    if (takes_images(declared.type)) refuse(refusals::other_kind, declared, "None");
    if (!takes_addresses(declared.type)) refuse(refusals::null_for_value, declared, "None");
    std::memset(slot(index), 0, declared.bytes);
}

void ArgumentPack::accept(int index, const ArrayView& array) {
    const Parameter& declared = parameter(index);
    if (!takes_arrays(declared.type)) {
        refuse(takes_images(declared.type) || names_tensor_map(declared) ? refusals::other_kind
               : declared.type.kind == Declared::scalar                  ? refusals::array_for_number
                                                                         : refusals::array_for_value,
               declared, describe(array));
    }
    write_array(array, declared, slot(index));
    if (array.layout != nullptr && declared.type.element_kind == ParameterType::Element::structure)
        more().layout_claims.push_back({index, array.layout});
    join(index, array);
}

void ArgumentPack::accept(int index, const Scalar& scalar) {
    const Parameter& declared = parameter(index);
    const ParameterType& type = declared.type;
    if (takes_images(type)) refuse(refusals::other_kind, declared, describe(scalar));
    if (type.kind == Declared::scalar) return write_scalar(scalar, declared, slot(index));
    if (scalar.kind == Scalar::Kind::complex && is_complex_vector(type))
        return write_scalar(scalar, complex_of(declared), slot(index));
    if (type.kind == Declared::untyped) {
        if (const auto number = typed_as(scalar, declared)) return write_scalar(scalar, *number, slot(index));
        refuse(refusals::no_declared_type, declared,
               scalar.dtype ? fmt::format("{} ({})", describe(scalar), to_string(*scalar.dtype))
                            : describe(scalar));
    }
    const bool address =
        type.kind == Declared::pointer && type.element_kind != ParameterType::Element::function;
    refuse(address ? refusals::integer_for_pointer : refusals::other_kind, declared, describe(scalar));
}

void ArgumentPack::accept(int index, RawPointer pointer) {
    const Parameter& declared = parameter(index);
    if (!takes_addresses(declared.type)) {
        refuse(takes_arrays(declared.type)   ? refusals::pointer_for_view
               : takes_images(declared.type) ? refusals::other_kind
                                             : refusals::pointer_for_value,
               declared, fmt::format("the raw pointer {:#x}", pointer.address));
    }
    std::memcpy(slot(index), &pointer.address, sizeof pointer.address);
}

void ArgumentPack::accept(int index, RawBytes bytes) {
    const Parameter& declared = parameter(index);
    const std::string got = fmt::format("{} bytes", bytes.bytes.size());
    if (!is_class(declared.type)) refuse(refusals::bytes_for_other, declared, got);
    if (bytes.bytes.size() != declared.bytes) refuse(refusals::wrong_size, declared, got);
    std::memcpy(slot(index), bytes.bytes.data(), bytes.bytes.size());
}

void ArgumentPack::accept(int index, const TupleArgument& tuple) {
    const Parameter& declared = parameter(index);
    if (declared.type.kind == Declared::structure) {
        join_arrays(index, tuple);
        more().tuple_claims.push_back({index, tuple});
        return;
    }
    if (declared.type.kind == Declared::vector) return write_lanes(tuple, declared, slot(index));
    if (takes_arrays(declared.type))
        refuse(refusals::tuple_for_array, declared, describe(tuple) + " in host memory");
    const std::size_t count = tuple.elements.size();
    const bool number = declared.type.kind == Declared::scalar && count > 0 && !takes_images(declared.type);
    refuse(number ? refusals::tuple_for_number : refusals::other_kind, declared,
           count == 0   ? "an empty tuple"
           : count == 1 ? "a tuple of one number"
                        : "a tuple of " + describe(tuple),
           count == 1 ? "the number itself" : "one of them");
}

void ArgumentPack::accept(int index, const StructuredScalar& structure) {
    const Parameter& declared = parameter(index);
    const ParameterType& type = declared.type;
    const std::string got = "a structured scalar " + to_string(*structure.layout);
    if (type.kind == Declared::untyped) return accept(index, RawBytes{structure.bytes});
    if (type.kind == Declared::vector) {
        if (!is_sequence_of(*structure.layout, type.dtype, type.lanes))
            refuse(refusals::structure_for_vector, declared, got);
    } else if (type.kind == Declared::structure) {
        more().layout_claims.push_back({index, structure.layout, structure.source});
    } else {
        refuse(refusals::other_kind, declared, got);
    }
    // check_layout reports a different size later, together with the fields.
    std::memcpy(slot(index), structure.bytes.data(),
                std::min<std::size_t>(structure.bytes.size(), declared.bytes));
}

void ArgumentPack::accept(int index, const ImageArgument& image) {
    const Parameter& declared = parameter(index);
    const ParameterType& type = declared.type;
    const char* const got = image.is_surface ? "a surface" : "a texture";
    if (!can_hold_handle(type)) {
        refuse(refusals::image_for_other, declared, got,
               image.is_surface ? "cudaSurfaceObject_t" : "cudaTextureObject_t");
    }
    if (takes_images(type) && (type.image == ParameterType::Image::surface) != image.is_surface)
        refuse(refusals::other_kind, declared, got);
    std::memcpy(slot(index), &image.handle, sizeof image.handle);
    join(index, image.array);
}

void ArgumentPack::accept(int index, const TensorMapArgument& map) {
    const Parameter& declared = parameter(index);
    if (can_hold_tensor_map(declared)) {
        if (declared.alignment < tensor_map_alignment && declared.type.kind != Declared::untyped)
            refuse(refusals::unaligned_tensor_map, declared, "a tensor map", tensor_map_alignment,
                   declared.alignment);
        std::memcpy(slot(index), map.encoded, tensor_map_bytes);
    } else if (can_point_to_tensor_map(declared.type) && map.address != 0) {
        if (!declared.type.constant && !may_be_pointer(declared.type))
            refuse(refusals::tensor_map_for_writable, declared, "a tensor map", tensor_map_bytes);
        std::memcpy(slot(index), &map.address, sizeof map.address);
    } else {
        refuse(refusals::tensor_map_for_other, declared, "a tensor map");
    }
    join(index, map.array);
}

void ArgumentPack::set_members(const TupleClaim& claim, std::span<const StructMember> members) {
    const Parameter& declared = parameter(claim.argument);
    std::memset(slot(claim.argument), 0, declared.bytes);  // padding
    naming_argument(claim.argument, declared.name,
                    [&] { write_members(claim.tuple, members, declared, slot(claim.argument)); });
}

// --- Producers

void ArgumentPack::join(int index, const ArrayView& array) {
    const bool joins = array.stream && !ignores_streams_;
    arrays_ |= joins ? some_name_a_stream : some_name_none;
    if (ignores_streams_) return;
    if (joins) add_producer(array.stream, index);
    if (array.stream.source == StreamSource::interface) note_interface_stream(index, array.stream.handle);
    // A mask that names no stream is ordered with its array.
    if (array.mask == nullptr || !array.mask->array.stream) return;
    arrays_ |= some_name_a_stream;
    add_producer(array.mask->array.stream, index);
}

void ArgumentPack::join_arrays(int index, const TupleArgument& tuple) {
    for (const TupleArgument::Element& element : tuple.elements) {
        if (const auto* array = std::get_if<std::shared_ptr<const ArrayView>>(&element)) join(index, **array);
        if (const auto* inner = std::get_if<TupleArgument>(&element)) join_arrays(index, *inner);
    }
}

void ArgumentPack::add_another(const Producer& named) {
    for (const Producer& producer : producers()) {
        if (producer.stream.same_stream(named.stream)) return;
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

// --- Reports

namespace {

template <class T>
T read_as(std::span<const std::byte> bytes) noexcept {
    T value{};
    std::memcpy(&value, bytes.data(), sizeof value);
    return value;
}

/// Returns the number in these bytes as text, read as the type of T that has their size; empty if none has.
template <class... T>
std::string number_of_one(std::span<const std::byte> bytes) {
    std::string text;
    const auto read = [&]<class Number>(Number) {
        if (bytes.size() == sizeof(Number)) text = fmt::format("{}", +read_as<Number>(bytes));
    };
    (read(T{}), ...);
    return text;
}

/// Returns the number in these bytes as text; empty if their size does not match or C++ has no such number type.
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

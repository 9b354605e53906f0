#include <algorithm>
#include <cstring>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bascule/interface/arguments/array_argument.hpp>
#include <bascule/interface/arguments/refusals.hpp>
#include <bascule/interface/arguments/scalar_conversion.hpp>
#include <bascule/interface/arguments/tuple_argument.hpp>

namespace bascule {
namespace {

using Element = ParameterType::Element;
using TupleElement = TupleArgument::Element;

/// An element, or the whole tuple. `scalar` and `tuple` are null if it is of another kind.
struct Value {
    Value(const TupleArgument& all) : tuple(&all) {}
    Value(const TupleElement& given)
        : scalar(std::get_if<Scalar>(&given)), tuple(std::get_if<TupleArgument>(&given)), element(&given) {}

    const Scalar* scalar = nullptr;
    const TupleArgument* tuple = nullptr;
    const TupleElement* element = nullptr;
};

/// Where in the argument a value is, for messages. The argument itself has no outer place.
struct Place {
    const Place* outer = nullptr;
    std::size_t index = 0;
    std::string_view owner{};  ///< the struct or vector type that the value is a part of; empty in a C array
};

/// "element 1 (of `int2`): ", "element [0][2][1] (of `Inner`): "; empty for the argument itself.
std::string describe(const Place& place) {
    if (place.outer == nullptr) return {};
    std::string path;
    std::string_view owner;
    for (const Place* each = &place; each->outer != nullptr; each = each->outer) {
        path = fmt::format("[{}]{}", each->index, path);
        if (owner.empty()) owner = each->owner;
    }
    if (place.outer->outer == nullptr) path = std::to_string(place.index);
    return fmt::format("element {} (of `{}`): ", path, owner);
}

std::string describe(Value value) {
    if (value.scalar != nullptr) return bascule::describe(*value.scalar);
    if (value.tuple != nullptr) return bascule::describe(*value.tuple);
    if (const auto* array = std::get_if<std::shared_ptr<const ArrayView>>(value.element))
        return bascule::describe(**array);
    const auto* raw = std::get_if<RawPointer>(value.element);
    return raw == nullptr ? "None" : fmt::format("the raw pointer {:#x}", raw->address);
}

ArgumentError at(const Place& place, const ArgumentError& error) {
    return {error.kind(), describe(place) + error.what(), error.details()};
}

/// Calls `write`, which writes one element. Adds the place to its errors.
template <class Write>
void naming_place(const Place& place, const Write& write) {
    try {
        write();
    } catch (const ArgumentError& error) {
        throw at(place, error);
    }
}

template <class... Values>
[[noreturn]] void refuse_at(const Place& place, const Refusal& refusal, const std::string& declared,
                            Value value, const Values&... values) {
    Parameter element;
    element.spelling = declared;
    throw at(place, refusal_of(refusal, element, describe(value), values...));
}

void write_number(Value value, const Place& place, const std::string& declared, const ParameterType& type,
                  std::byte* out) {
    if (value.scalar == nullptr) refuse_at(place, refusals::no_number, declared, value);
    Parameter number;
    number.spelling = declared;
    number.type.kind = ParameterType::Kind::scalar;
    number.type.dtype = type.dtype;
    number.bytes = type.dtype.itemsize;
    naming_place(place, [&] { write_scalar(*value.scalar, number, out); });
}

/// The elements of a tuple that must have `count` of them; `wanted` says so in messages: "2 numbers".
std::span<const TupleElement> elements_of(Value value, std::size_t count, const Place& place,
                                          const std::string& declared, const std::string& wanted) {
    if (value.tuple == nullptr) refuse_at(place, refusals::no_tuple, declared, value, wanted);
    if (value.tuple->elements.size() != count)
        refuse_at(place, refusals::other_length, declared, value, wanted);
    return value.tuple->elements;
}

std::string count_of(std::size_t count, std::string_view what) {
    return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

void write_lanes_at(Value value, const Place& place, const std::string& declared, const ParameterType& type,
                    std::byte* out) {
    const auto lanes = static_cast<std::size_t>(type.lanes);
    const auto elements = elements_of(value, lanes, place, declared, count_of(lanes, "number"));
    std::string lane(cuda_name(type.dtype));
    if (lane.empty()) lane = declared;
    for (std::size_t i = 0; i < lanes; ++i) {
        write_number(elements[i], {&place, i, declared}, lane, type, out + i * type.dtype.itemsize);
    }
}

void write_structure(Value value, const Place& place, const std::string& declared,
                     std::span<const StructMember> members, std::byte* out);

std::string spell(const StructMember& member, std::span<const std::int64_t> extents) {
    std::string text = member.type.element;
    for (const std::int64_t extent : extents) text += fmt::format("[{}]", extent);
    return text;
}

void write_pointer(Value value, const Place& place, const StructMember& member, std::byte* out) {
    Parameter pointer;
    pointer.spelling = member.type.element;
    pointer.type = member.pointer;
    pointer.bytes = sizeof(std::uint64_t);
    if (value.tuple != nullptr || value.scalar != nullptr) {
        refuse_at(place,
                  member.pointer.element_kind == Element::function ? refusals::no_function_pointer
                                                                   : refusals::no_pointer,
                  pointer.spelling, value);
    }
    if (const auto* array = std::get_if<std::shared_ptr<const ArrayView>>(value.element)) {
        if ((*array)->layout != nullptr && member.pointer.element_kind == Element::structure)
            refuse_at(place, refusals::structures_in_tuple, pointer.spelling, value);
        naming_place(place, [&] { write_array(**array, pointer, out); });
    } else {
        const auto* raw = std::get_if<RawPointer>(value.element);
        const std::uint64_t address = raw == nullptr ? 0 : raw->address;
        std::memcpy(out, &address, sizeof address);
    }
}

/// Writes one element of the member if `extents` is empty, otherwise a row of elements with these extents.
void write_member(Value value, const Place& place, const StructMember& member,
                  std::span<const std::int64_t> extents, std::byte* out) {
    if (!extents.empty()) {
        const auto count = static_cast<std::size_t>(extents[0]);
        const auto rest = extents.subspan(1);
        const bool numbers = member.type.element_kind == Element::named && member.type.lanes == 0;
        const char* each = rest.empty() && numbers ? "number" : "tuple";
        std::string wanted = count_of(count, each);
        if (!rest.empty() && numbers)
            wanted += fmt::format(", or an array of shape ({})", fmt::join(extents, ", "));
        const auto elements = elements_of(value, count, place, spell(member, extents), wanted);
        std::size_t stride =
            member.type.dtype.itemsize * static_cast<std::size_t>(std::max(member.type.lanes, 1));
        for (const std::int64_t extent : rest) stride *= static_cast<std::size_t>(extent);
        for (std::size_t i = 0; i < count; ++i)
            write_member(elements[i], {&place, i}, member, rest, out + i * stride);
    } else if (member.type.element_kind == Element::named && member.type.lanes > 0) {
        write_lanes_at(value, place, member.type.element, member.type, out);
    } else if (member.type.element_kind == Element::named) {
        write_number(value, place, member.type.element, member.type, out);
    } else if (member.type.element_kind == Element::structure) {
        write_structure(value, place, member.type.element, member.members, out);
    } else if (takes_arrays(member.pointer)) {
        write_pointer(value, place, member, out);
    } else {
        refuse_at(place, refusals::no_place_in_tuple, member.type.element, value);
    }
}

void write_structure(Value value, const Place& place, const std::string& declared,
                     std::span<const StructMember> members, std::byte* out) {
    if (value.tuple != nullptr && members.size() == 1 && !members[0].extents.empty() &&
        value.tuple->elements.size() != 1) {
        return write_member(value, place, members[0], members[0].extents, out + members[0].offset);
    }
    const auto empty = static_cast<std::size_t>(std::ranges::count(members, true, &StructMember::is_empty));
    const bool skips = value.tuple != nullptr && value.tuple->elements.size() == members.size() - empty;
    const auto elements = elements_of(
        value, members.size() - (skips ? empty : 0), place, declared,
        members.empty() ? "no values, ()" : count_of(members.size(), "value") + ", one for each member");
    std::size_t i = 0;
    for (const StructMember& member : members) {
        if (skips && member.is_empty) continue;
        write_member(elements[i], {&place, i, declared}, member, member.extents, out + member.offset);
        ++i;
    }
}

}  // namespace

void write_lanes(const TupleArgument& tuple, const Parameter& parameter, std::byte* out) {
    write_lanes_at(tuple, {}, parameter.spelling, parameter.type, out);
}

void write_members(const TupleArgument& tuple, std::span<const StructMember> members,
                   const Parameter& parameter, std::byte* out) {
    write_structure(tuple, {}, parameter.spelling, members, out);
}

std::string describe(const TupleArgument& tuple) {
    const bool numbers = std::ranges::all_of(
        tuple.elements, [](const TupleElement& each) { return std::holds_alternative<Scalar>(each); });
    return count_of(tuple.elements.size(), numbers ? "number" : "value");
}

}  // namespace bascule

#include <fmt/format.h>

#include <bascule/interface/arguments/array_argument.hpp>
#include <bascule/interface/errors/rejection.hpp>
#include <bascule/interface/errors/wording.hpp>
#include <bascule/interface/types/dimensions.hpp>
#include <bascule/interface/types/struct_source.hpp>
#include <bascule/jit/questions/struct_probe.hpp>

namespace bascule {
namespace {

[[noreturn]] void fail(const std::string& difference, const std::string& advice) {
    throw ArgumentError(ErrorKind::type, difference + " " + advice);
}

/// One field of the dtype, at any depth, with the C++ expression for it.
struct Node {
    std::string path;        ///< "body.position"
    std::string expression;  ///< "body[0].position"
    const StructField* field = nullptr;
};

void collect(const std::vector<StructField>& fields, const std::string& path, const std::string& expression,
             std::vector<Node>& nodes) {
    for (const StructField& field : fields) {
        if (!is_identifier(field.name)) {
            fail(fmt::format("field '{}' of the dtype has a name that no C++ struct can have.",
                             shortened(field.name)),
                 "Rename it.");
        }
        const Node node{path + field.name, expression + field.name, &field};
        nodes.push_back(node);
        std::string element = node.expression;
        for (std::size_t d = 0; d < field.shape.size(); ++d) element += "[0]";
        collect(field.nested, node.path + ".", element + ".", nodes);
    }
}

/// The quoted word after `phrase` in the log; empty if the log does not contain it.
std::string quoted_after(const std::string& log, const std::string& phrase) {
    const std::size_t at = log.find(phrase);
    const std::size_t open = at == log.npos ? at : log.find('"', at + phrase.size() - 1);
    const std::size_t close = open == log.npos ? open : log.find('"', open + 1);
    return close == log.npos ? std::string() : log.substr(open + 1, close - open - 1);
}

[[noreturn]] void explain_fields(const std::string& log, const std::string& cpp_type, LayoutSource source) {
    const std::string name = quoted_after(log, "has no member \"");
    if (name.empty()) fail_probe(log, cpp_type);
    fail(fmt::format("the kernel's `{}` has no field '{}', and the {} has.", cpp_type, name,
                     to_string(source)),
         "Give both the same fields.");
}

std::string show(const std::vector<std::int64_t>& shape) { return to_string(Dimensions(shape)); }

/// Whether `unsigned char name[8]` matches a field of opaque bytes (V8).
bool is_byte_array(const StructField& field, std::vector<std::int64_t> extents, const ParameterType& found) {
    if (!field.nested.empty() || field.dtype.kind != DType::Kind::opaque || found.dtype.itemsize != 1)
        return false;
    if (extents.empty() || extents.back() != field.dtype.itemsize || found.lanes > 0) return false;
    extents.pop_back();
    return field.dtype.format == DType::Format::none && extents == field.shape;
}

/// Whether a field with four numbers, or a structure of four numbers, matches a float4.
bool is_vector(const StructField& field, const ParameterType& found) {
    if (found.lanes == 0) return false;
    if (!field.nested.empty())
        return field.shape.empty() &&
               is_sequence_of({field.dtype.itemsize, field.nested}, found.dtype, found.lanes);
    return accepts(found, field.dtype) && field.shape == std::vector<std::int64_t>{found.lanes};
}

/// Compares everything but the offset.
void compare(const Node& node, const ProbedMember& member, const std::string& cpp_type, LayoutSource source) {
    const StructField& field = *node.field;
    const ParameterType& found = member.type;
    std::vector<std::int64_t> extents = member.extents;
    if (member.is_static) {
        fail(fmt::format("'{}' is a static member of the kernel's `{}`, and a field of the {}.", node.path,
                         cpp_type, to_string(source)),
             "Give both the same fields.");
    }
    if (is_byte_array(field, extents, found) || (extents.empty() && is_vector(field, found))) return;
    if (extents != field.shape) {
        fail(fmt::format("field '{}' has the shape {} in the kernel's `{}` and {} in the {}.", node.path,
                         show(extents), cpp_type, show(field.shape), to_string(source)),
             "Give both the same.");
    }
    const bool nested = !field.nested.empty();
    const bool fits = nested ? found.element_kind == ParameterType::Element::structure
                             : found.lanes == 0 && accepts(found, field.dtype);
    if (!fits) {
        fail(fmt::format("field '{}' is `{}` in the kernel's `{}` and {} in the {}.", node.path,
                         found.element, cpp_type,
                         nested ? fmt::format("a structure of {} bytes", field.dtype.itemsize)
                                : to_string(field.dtype),
                         to_string(source)),
             "Give both the same type.");
    }
}

/// The given fields with the compiler's offsets.
std::vector<StructField> place(const std::vector<StructField>& given, std::uint32_t base,
                               std::span<const ProbedMember>& found) {
    std::vector<StructField> placed = given;
    for (StructField& field : placed) {
        const ProbedMember& member = found.front();
        found = found.subspan(1);
        field.offset = member.offset - base;
        if (!field.nested.empty() && member.type.lanes == 0)
            field.dtype.itemsize = member.type.dtype.itemsize;
        field.nested = place(field.nested, member.offset, found);
    }
    return placed;
}

/// The given fields with the compiler's offsets. Throws if they differ in more than offsets.
std::vector<StructField> find_places(const ProbedProgram& probed, const std::string& cpp_type,
                                     const StructLayout& given, const std::vector<Node>& nodes,
                                     LayoutSource source) {
    std::vector<MemberExpression> members;
    for (const Node& node : nodes) {
        const std::string member = fmt::format("{}.{}", probed_object, node.expression);
        members.push_back({"&" + member, fmt::format("decltype({})", member), node.field->shape.size() + 1});
    }
    std::vector<ProbedMember> found;
    try {
        found = probe_members(probed, cpp_type, "", members);
    } catch (const CompileError& error) {
        explain_fields(error.details().log, cpp_type, source);
    }
    for (std::size_t i = 0; i < nodes.size(); ++i) compare(nodes[i], found[i], cpp_type, source);
    std::span<const ProbedMember> places = found;
    return place(given.fields, 0, places);
}

}  // namespace

void check_layout(const ProbedProgram& probed, const std::string& cpp_type, std::uint32_t bytes,
                  const StructLayout& given, LayoutSource source) {
    std::vector<Node> nodes;
    collect(given.fields, "", "", nodes);
    if (nodes.size() > most_probed_members) {
        fail(fmt::format("the {} has {} fields, and {} is the limit for comparing fields.", to_string(source),
                         nodes.size(), most_probed_members),
             bytes_advice());
    }
    StructLayout found{bytes, {}};
    if (!nodes.empty()) found.fields = find_places(probed, cpp_type, given, nodes, source);
    const std::string difference = describe_difference(given, found, cpp_type, source);
    if (!difference.empty()) throw ArgumentError(ErrorKind::type, difference);
}

}  // namespace bascule

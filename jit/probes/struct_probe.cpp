#include <algorithm>
#include <cstddef>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bascule/interface/arguments/array_argument.hpp>
#include <bascule/interface/errors/error.hpp>
#include <bascule/interface/errors/shortened.hpp>
#include <bascule/interface/types/dimensions.hpp>
#include <bascule/jit/probes/struct_probe.hpp>
#include <bascule/jit/types/ptx_initializer.hpp>

namespace bascule {
namespace {

using ErrorKind = ArgumentError::Kind;

constexpr const char* object = "bascule_probe_object";
constexpr const char* places = "bascule_probe_places";
constexpr const char* shapes = "bascule_probe_shapes";
constexpr const char* kernel = "bascule_probe_fields";
constexpr std::size_t most_fields = 400;  // a kernel's parameters must fit in 4 KiB

constexpr const char* bytes_advice = "Pass the struct as bascule.raw_bytes(...), or by raw pointer.";

[[noreturn]] void fail(const std::string& difference, const std::string& advice) {
    throw ArgumentError(ErrorKind::type, difference + " " + advice);
}

/// One field of the dtype, at any depth, and how C++ reaches it from an object.
struct Node {
    std::string path;        ///< "body.position"
    std::string expression;  ///< "body[0].position"
    std::uint64_t offset = 0;
    const StructField* field = nullptr;
};

bool is_identifier(const std::string& name) {
    const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
    return !name.empty() && letter(name[0]) &&
           std::all_of(name.begin(), name.end(), [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

void collect(const std::vector<StructField>& fields, const std::string& path, const std::string& expression,
             std::uint64_t base, std::vector<Node>& nodes) {
    for (const StructField& field : fields) {
        if (!is_identifier(field.name)) {
            fail(fmt::format("field '{}' of the dtype has a name that no C++ struct can have.",
                             shortened(field.name)),
                 "Rename it.");
        }
        const Node node{path + field.name, expression + field.name, base + field.offset, &field};
        nodes.push_back(node);
        std::string element = node.expression;
        for (std::size_t d = 0; d < field.shape.size(); ++d) element += "[0]";
        collect(field.nested, node.path + ".", element + ".", node.offset, nodes);
    }
}

/// Every name ends in an underscore or begins with bascule: the user's macros precede this.
std::string probe_text(const std::string& cpp_type, const std::vector<Node>& nodes) {
    std::string text = R"(
namespace bascule_probe_ {
template <class T_> union holder_ {
    char none_;
    T_ object_;
    __device__ constexpr holder_() : none_() {}
};
template <class T_> struct plain_ { using result_ = T_; };
template <class T_, decltype(sizeof(0)) N_> struct plain_<T_[N_]> : plain_<T_> {};
template <class T_, int D_> struct extent_ { static constexpr unsigned long long value_ = 0; };
template <class T_, decltype(sizeof(0)) N_, int D_> struct extent_<T_[N_], D_> : extent_<T_, D_ - 1> {};
template <class T_, decltype(sizeof(0)) N_> struct extent_<T_[N_], 0> { static constexpr unsigned long long value_ = N_; };
}
)";
    const auto member = [](const Node& node) {
        return fmt::format("{}.object_.{}", object, node.expression);
    };
    std::string addresses;
    std::string extents;
    std::string parameters;
    for (const Node& node : nodes) {
        addresses += fmt::format("&{}, ", member(node));
        for (std::size_t d = 0; d <= node.field->shape.size(); ++d) {
            extents += fmt::format("bascule_probe_::extent_<decltype({}), {}>::value_, ", member(node), d);
        }
        parameters += fmt::format("{}bascule_probe_::plain_<decltype({})>::result_*",
                                  parameters.empty() ? "" : ", ", member(node));
    }
    text += fmt::format("extern \"C\" {{ __device__ bascule_probe_::holder_<{}> {}; }}\n", cpp_type, object);
    text +=
        fmt::format("extern \"C\" {{ __device__ const volatile void* {}[] = {{{}}}; }}\n", places, addresses);
    text += fmt::format("extern \"C\" {{ __device__ unsigned long long {}[] = {{{}}}; }}\n", shapes, extents);
    return text + fmt::format("__global__ void {}({}) {{}}\n", kernel, parameters);
}

/// The word in quotes behind `phrase`; empty when the log does not say it.
std::string quoted_after(const std::string& log, const std::string& phrase) {
    const std::size_t at = log.find(phrase);
    const std::size_t open = at == log.npos ? at : log.find('"', at + phrase.size() - 1);
    const std::size_t close = open == log.npos ? open : log.find('"', open + 1);
    return close == log.npos ? std::string() : log.substr(open + 1, close - open - 1);
}

[[noreturn]] void explain(const CompileError& error, const std::string& cpp_type) {
    const std::string& log = error.details().log;
    if (const std::string name = quoted_after(log, "has no member \""); !name.empty()) {
        fail(fmt::format("the kernel's `{}` has no field '{}', and the dtype has.", cpp_type, name),
             "Give both the same fields.");
    }
    if (log.find("is inaccessible") != log.npos) {
        fail(fmt::format("the kernel's `{}` has private fields, so their offsets cannot be compared.",
                         cpp_type),
             fmt::format("Make them public, or: {}", bytes_advice));
    }
    if (log.find("bit field") != log.npos) {
        fail(fmt::format("the kernel's `{}` has bit-fields, which no dtype describes.", cpp_type),
             bytes_advice);
    }
    fail(fmt::format("the compiler does not report the layout of the kernel's `{}` ({}).", cpp_type,
                     shortened(log.substr(0, log.find('\n')))),
         bytes_advice);
}

std::string show(const std::vector<std::int64_t>& shape) { return to_string(Dimensions(shape)); }

/// Bytes without a meaning: `unsigned char name[8]` for a field of type V8.
bool is_byte_array(const StructField& field, std::vector<std::int64_t> extents, const ParameterType& found) {
    if (!field.nested.empty() || field.dtype.kind != DType::Kind::opaque || found.dtype.itemsize != 1)
        return false;
    if (extents.empty() || extents.back() != field.dtype.itemsize || found.lanes > 0) return false;
    extents.pop_back();
    return field.dtype.format == DType::Format::none && extents == field.shape;
}

void compare(const Node& node, const InitialValue::Address& place, const std::vector<std::int64_t>& extents,
             const Parameter& found, const std::string& cpp_type) {
    const StructField& field = *node.field;
    const auto offset = static_cast<std::uint64_t>(place.addend);
    const bool plain_bytes = is_byte_array(field, extents, found.type);
    if (place.symbol != object) {
        fail(fmt::format("'{}' is a static member of the kernel's `{}`, and a field of the dtype.", node.path,
                         cpp_type),
             "Give both the same fields.");
    }
    if (extents != field.shape && !plain_bytes) {
        fail(fmt::format("field '{}' has the shape {} in the kernel's `{}` and {} in the dtype.", node.path,
                         show(extents), cpp_type, show(field.shape)),
             "Give both the same.");
    }
    if (offset != node.offset) {
        fail(fmt::format("field '{}' lies at byte {} in the kernel's `{}` and at byte {} in the dtype.",
                         node.path, offset, cpp_type, node.offset),
             offset > node.offset ? "Make the dtype aligned: np.dtype(..., align=True)."
                                  : "Give the dtype the offsets of the struct.");
    }
    const bool structure = found.type.element_kind == ParameterType::Element::structure;
    const bool nested = !field.nested.empty();
    const bool bytes =
        field.dtype.kind == DType::Kind::opaque && field.dtype.itemsize == found.type.dtype.itemsize;
    const bool fits = plain_bytes || (nested ? structure && bytes
                                             : found.type.lanes == 0 && accepts(found.type, field.dtype));
    if (!fits) {
        fail(fmt::format("field '{}' is `{}` in the kernel's `{}` and {} in the dtype.", node.path,
                         found.type.element, cpp_type,
                         nested ? fmt::format("a structure of {} bytes", field.dtype.itemsize)
                                : to_string(field.dtype)),
             "Give both the same type.");
    }
}

}  // namespace

void check_layout(const Source& source, const CompileOptions& options, Arch arch, Cache& cache,
                  const std::string& cpp_type, const StructLayout& given) {
    std::vector<Node> nodes;
    collect(given.fields, "", "", 0, nodes);
    if (nodes.empty()) return;
    if (nodes.size() > most_fields) {
        fail(fmt::format("the dtype has {} fields, and {} is the limit for comparing fields.", nodes.size(),
                         most_fields),
             bytes_advice);
    }
    Program program{source, options, arch, {{kernel, kernel}}, Program::Purpose::code};
    program.source.text += probe_text(cpp_type, nodes);
    std::shared_ptr<const Image> image;
    try {
        image = cache.image(program).image;
    } catch (const CompileError& error) {
        explain(error, cpp_type);
    }
    const auto addresses = initial_value(image->ptx, places);
    const auto extents = initial_value(image->ptx, shapes);
    const KernelImage* fields = image->find(kernel);
    if (!addresses || !extents || fields == nullptr || addresses->addresses.size() != nodes.size()) {
        fail(fmt::format("the layout of the kernel's `{}` cannot be read from the compiler's output.",
                         cpp_type),
             fmt::format("{} Please report this with your NVRTC's version.", bytes_advice));
    }
    std::size_t at = 0;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        std::vector<std::int64_t> shape;
        for (std::size_t d = 0; d <= nodes[i].field->shape.size(); ++d, at += 8) {
            const auto extent = static_cast<std::int64_t>(extents->integer(at, 8));
            if (extent != 0 || d < nodes[i].field->shape.size()) shape.push_back(extent);
        }
        while (!shape.empty() && shape.back() == 0) shape.pop_back();
        compare(nodes[i], addresses->addresses[i], shape, fields->signature.parameters[i], cpp_type);
    }
}

}  // namespace bascule

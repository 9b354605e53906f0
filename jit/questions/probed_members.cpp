#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bascule/interface/errors/rejection.hpp>
#include <bascule/jit/program/program.hpp>
#include <bascule/jit/questions/probed_members.hpp>
#include <bascule/jit/variables/ptx_text.hpp>

namespace bascule {

namespace {

constexpr const char* variable = "bascule_probe_object";
constexpr const char* places = "bascule_probe_places";
constexpr const char* shapes = "bascule_probe_shapes";
constexpr const char* kernel = "bascule_probe_members";
constexpr const char* pointers = "bascule_probe_pointers";

/// All names end in an underscore or begin with bascule, because the user's macros precede this text.
constexpr std::string_view beginning = R"(
namespace bascule_probe_ {
template <class T_, bool = __is_trivially_constructible(T_)> union holder_ {
    char none_;
    T_ object_;
    __device__ constexpr holder_() : none_() {}
};
// The front end evaluates no constructor of an object beyond some 14 KB.
template <class T_> union holder_<T_, true> {
    char none_;
    T_ object_;
};
template <class T_> struct plain_ { using result_ = T_; };
template <class T_, decltype(sizeof(0)) N_> struct plain_<T_[N_]> : plain_<T_> {};
template <class T_> struct pointer_ { using result_ = bool; };
template <class T_> struct pointer_<T_*> { using result_ = T_*; };
template <class T_> struct pointer_<T_* const> { using result_ = T_*; };
template <class T_, int D_> struct extent_ { static constexpr unsigned long long value_ = 0; };
template <class T_, decltype(sizeof(0)) N_, int D_> struct extent_<T_[N_], D_> : extent_<T_, D_ - 1> {};
template <class T_, decltype(sizeof(0)) N_> struct extent_<T_[N_], 0> { static constexpr unsigned long long value_ = N_; };
}
)";

std::string text_of(const std::string& cpp_type, const std::string& helpers,
                    const std::vector<MemberExpression>& members) {
    std::vector<std::string> addresses;
    std::vector<std::string> extents;
    std::vector<std::string> parameters;
    std::vector<std::string> own_types;
    for (const MemberExpression& member : members) {
        addresses.push_back(member.address);
        extents.push_back(fmt::format("__is_empty(bascule_probe_::plain_<{}>::result_)", member.type));
        for (std::size_t d = 0; d < member.axes; ++d)
            extents.push_back(fmt::format("bascule_probe_::extent_<{}, {}>::value_", member.type, d));
        parameters.push_back(fmt::format("bascule_probe_::plain_<{}>::result_*", member.type));
        own_types.push_back(fmt::format(
            "bascule_probe_::pointer_<bascule_probe_::plain_<{}>::result_>::result_", member.type));
    }
    std::string text(beginning);
    text += fmt::format("extern \"C\" {{ __device__ bascule_probe_::holder_<{}> {}; }}\n{}\n", cpp_type,
                        variable, helpers);
    text += fmt::format("extern \"C\" {{ __device__ const volatile void* {}[] = {{{}}}; }}\n", places,
                        fmt::join(addresses, ", "));
    text += fmt::format("extern \"C\" {{ __device__ unsigned long long {}[] = {{{}}}; }}\n", shapes,
                        fmt::join(extents, ", "));
    text += fmt::format("__global__ void {}({}) {{}}\n", pointers, fmt::join(own_types, ", "));
    return text + fmt::format("__global__ void {}({}) {{}}\n", kernel, fmt::join(parameters, ", "));
}

[[noreturn]] void refuse(const std::string& cpp_type, const std::string& reason, const std::string& advice) {
    reject(ErrorKind::type, "the kernel's `{}` {}. {}", cpp_type, reason, advice);
}

constexpr std::size_t most_axes = 8;
/// The most members of empty classes that a tuple may omit. Each one costs a compile.
constexpr std::size_t most_empty = 4;

/// A structured binding with `count` names.
std::string binding_of(std::size_t count) {
    std::vector<std::string> names;
    std::vector<std::string> addresses;
    std::vector<std::string> types;
    for (std::size_t i = 0; i < count; ++i) {
        names.push_back(fmt::format("m{}_", i));
        addresses.push_back("&" + names.back());
        types.push_back(fmt::format("decltype({})", names.back()));
    }
    return fmt::format(R"(namespace bascule_probe_ {{
template <class...> struct list_ {{}};
template <int, class> struct nth_;
template <class F_, class... R_> struct nth_<0, list_<F_, R_...>> {{ using result_ = F_; }};
template <int I_, class F_, class... R_> struct nth_<I_, list_<F_, R_...>> : nth_<I_ - 1, list_<R_...>> {{}};
template <class T_> __device__ constexpr const volatile void* place_(T_& object_, int i_) {{
    auto& [{0}] = object_;
    const volatile void* const all_[] = {{{1}}};
    return all_[i_];
}}
template <class T_> __device__ auto types_(T_& object_) {{
    auto& [{0}] = object_;
    return list_<{2}>();
}}
using all_ = decltype(types_({3}));
}})",
                       fmt::join(names, ", "), fmt::join(addresses, ", "), fmt::join(types, ", "),
                       probed_object);
}

std::vector<MemberExpression> expressions_of(std::size_t count) {
    std::vector<MemberExpression> members;
    for (std::size_t i = 0; i < count; ++i) {
        members.push_back({fmt::format("bascule_probe_::place_({}, {})", probed_object, i),
                           fmt::format("bascule_probe_::nth_<{}, bascule_probe_::all_>::result_", i),
                           most_axes});
    }
    return members;
}

[[noreturn]] void fail_count(const std::string& cpp_type, const TupleArgument& tuple, const char* than) {
    const std::string got = describe(tuple);
    reject(
        ErrorKind::value, {.expected = cpp_type, .got = got},
        "the kernel's `{}` has {} members than the tuple, which has {}. Pass a tuple with a value for each "
        "member.",
        cpp_type, than, got);
}

bool has_fewer_members(const std::string& log) { return log.find("too many identifiers") != log.npos; }

[[noreturn]] void explain_binding(const std::string& log, const std::string& cpp_type,
                                  const TupleArgument& tuple) {
    if (log.find("more elements than") != log.npos) fail_count(cpp_type, tuple, "more");
    if (has_fewer_members(log)) fail_count(cpp_type, tuple, "fewer");
    if (log.find("no components to bind") != log.npos) {
        reject(
            ErrorKind::type,
            "the members of the kernel's `{}` have no order that a tuple could follow: it is empty, for which () is "
            "passed, or some are in a base class or a union without a name. Pass {}.",
            cpp_type,
            advice("a NumPy structured scalar with its fields, or bascule.raw_bytes(...)",
                   "the struct itself"));
    }
    fail_probe(log, cpp_type);
}

bool has_more_members(const CompileError& error) {
    return error.details().log.find("more elements than") != std::string::npos;
}

/// The members: as many as the tuple has values, and possibly a few more of empty classes, which the tuple omits.
/// Throws: CompileError; ArgumentError.
std::vector<ProbedMember> bind_members(const ProbedProgram& probed, const std::string& cpp_type,
                                       const TupleArgument& like) {
    for (std::size_t more = 0;; ++more) {
        try {
            const std::size_t bound = like.elements.size() + more;
            std::vector<ProbedMember> found =
                probe_members(probed, cpp_type, binding_of(bound), expressions_of(bound));
            const auto empty =
                static_cast<std::size_t>(std::ranges::count(found, true, &ProbedMember::is_empty));
            if (more > 0 && empty != more) fail_count(cpp_type, like, "more");
            return found;
        } catch (const CompileError& error) {
            if (more == most_empty || !has_more_members(error)) throw;
        }
    }
}

/// The tuple for the first element of an array with this number of axes; or null.
const TupleArgument* first_element(const TupleArgument::Element& value, std::size_t axes) {
    const auto* tuple = std::get_if<TupleArgument>(&value);
    for (; axes > 0 && tuple != nullptr; --axes) {
        if (tuple->elements.empty()) return nullptr;
        tuple = std::get_if<TupleArgument>(&tuple->elements[0]);
    }
    return tuple;
}

}  // namespace

std::vector<ProbedMember> probe_members(const ProbedProgram& probed, const std::string& cpp_type,
                                        const std::string& helpers,
                                        const std::vector<MemberExpression>& members) {
    Program question = probed.program;
    question.instances = {{kernel, kernel}, {pointers, pointers}};
    question.functions_too = false;
    question.source.text += text_of(cpp_type, helpers, members);
    const std::shared_ptr<const Image> image = probed.ask(std::move(question));
    const auto addresses = initial_value(image->ptx, places);
    const auto extents = initial_value(image->ptx, shapes);
    const KernelImage* answer = image->find(kernel);
    const KernelImage* own_types = image->find(pointers);
    if (!addresses || !extents || answer == nullptr || own_types == nullptr ||
        addresses->addresses.size() != members.size()) {
        reject(ErrorKind::type,
               "the layout of the kernel's `{}` cannot be read from the compiler's output. {} Please report "
               "this with your NVRTC's version.",
               cpp_type, bytes_advice());
    }
    std::vector<ProbedMember> found;
    std::size_t at = 0;
    for (std::size_t i = 0; i < members.size(); ++i) {
        const InitialValue::Address& place = addresses->addresses[i];
        ProbedMember& member = found.emplace_back();
        member.is_static = place.symbol != variable;
        member.offset = static_cast<std::uint32_t>(place.addend);
        member.type = answer->signature.parameters[i].type;
        member.pointer = own_types->signature.parameters[i].type;
        member.is_empty = extents->integer(at, 8) != 0;
        at += 8;
        for (std::size_t d = 0; d < members[i].axes; ++d, at += 8)
            member.extents.push_back(static_cast<std::int64_t>(extents->integer(at, 8)));
        while (!member.extents.empty() && member.extents.back() == 0) member.extents.pop_back();
    }
    return found;
}

void fail_probe(const std::string& log, const std::string& cpp_type) {
    if (log.find("is inaccessible") != log.npos || log.find("non-public member") != log.npos) {
        refuse(cpp_type, "has private members, so their offsets cannot be read",
               "Make them public. " + bytes_advice());
    }
    if (log.find("bit field") != log.npos)
        refuse(cpp_type, "has bit-fields, which are not passed field by field", bytes_advice());
    refuse(cpp_type,
           fmt::format("has a layout that the compiler does not report ({})",
                       shortened(log.substr(0, log.find('\n')))),
           bytes_advice());
}

std::vector<StructMember> read_members(const ProbedProgram& probed, const std::string& cpp_type,
                                       const TupleArgument& like) {
    const std::size_t count = like.elements.size();
    if (count == 0) {
        const std::vector<ProbedMember> whole = probe_members(
            probed, cpp_type, "",
            {{fmt::format("&{}", probed_object), fmt::format("decltype({})", probed_object), 0}});
        if (!whole[0].is_empty) fail_count(cpp_type, like, "more");
        return {};
    }
    if (count > most_probed_members) {
        reject(ErrorKind::value,
               "a tuple of {} members is too long to be compared with the kernel's `{}`: {} is the limit. {}",
               count, cpp_type, most_probed_members, bytes_advice());
    }
    std::vector<ProbedMember> found;
    try {
        found = bind_members(probed, cpp_type, like);
    } catch (const CompileError& error) {
        const std::string& log = error.details().log;
        if (count == 1 || !has_fewer_members(log)) explain_binding(log, cpp_type, like);
        // For `struct M { float m[3][3]; }` and three rows, the tuple has the values of the only member.
        std::vector<StructMember> only;
        try {
            only = read_members(probed, cpp_type, TupleArgument{{like}});
        } catch (const ArgumentError&) {  // it has several members
        }
        if (only.empty() || only[0].extents.empty()) explain_binding(log, cpp_type, like);
        return only;
    }
    std::vector<StructMember> members;
    const bool skips = found.size() > count;
    auto value = like.elements.begin();
    for (const ProbedMember& each : found) {
        StructMember& member = members.emplace_back(each);
        if (skips && each.is_empty) continue;
        const TupleArgument::Element& given = *value++;
        if (each.type.element_kind != ParameterType::Element::structure) continue;
        if (const TupleArgument* inner = first_element(given, each.extents.size()))
            member.members = read_members(probed, each.type.element, *inner);
    }
    return members;
}

}  // namespace bascule

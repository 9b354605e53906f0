#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bascule/interface/errors/language.hpp>
#include <bascule/interface/errors/rejection.hpp>
#include <bascule/jit/questions/member_probe.hpp>

namespace bascule {
namespace {

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
        StructMember& member = members.emplace_back(
            StructMember{each.offset, each.is_empty, each.type, each.pointer, each.extents, {}});
        if (skips && each.is_empty) continue;
        const TupleArgument::Element& given = *value++;
        if (each.type.element_kind != ParameterType::Element::structure) continue;
        if (const TupleArgument* inner = first_element(given, each.extents.size()))
            member.members = read_members(probed, each.type.element, *inner);
    }
    return members;
}

}  // namespace bascule

#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bascule/interface/errors/rejection.hpp>
#include <bascule/interface/errors/shortened.hpp>
#include <bascule/jit/compile/image.hpp>
#include <bascule/jit/questions/probed_members.hpp>
#include <bascule/jit/variables/ptx_initializer.hpp>

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

}  // namespace bascule

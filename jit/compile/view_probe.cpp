#include <algorithm>
#include <array>
#include <map>
#include <mutex>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bascule/interface/errors/error.hpp>
#include <bascule/jit/compile/view_probe.hpp>
#include <bascule/jit/variables/ptx_initializer.hpp>

namespace bascule {
namespace {

using Layouts = std::map<std::string, ViewLayout>;  ///< by C++ type

constexpr const char* target = "bascule_probe_target_";
constexpr const char* view = "bascule_probe_view_";
constexpr const char* probe_kernel = "bascule_probe_views";

/// The values of extents and strides in the probe: they are all different and fit every index type.
constexpr std::array<int, 24> numbers = {3,  5,  7,  11, 13, 17, 19, 23, 29, 31, 37,  41,
                                         43, 47, 53, 59, 61, 67, 71, 73, 79, 83, 101, 103};
constexpr std::size_t most_axes = numbers.size() / 2;

int extent_number(std::size_t axis) { return numbers[axis]; }
int stride_number(std::size_t axis) { return numbers[most_axes + axis]; }

bool is_view(const Parameter& parameter) {
    return parameter.type.kind == ParameterType::Kind::span &&
           parameter.type.static_extents.size() <= most_axes;
}

/// The arguments of an mdspan's constructor after the pointer.
std::string mapping_of(const std::string& type, const ParameterType& declared) {
    std::vector<int> extents;
    std::vector<int> strides;
    for (std::size_t axis = 0; axis < declared.static_extents.size(); ++axis) {
        if (declared.static_extents[axis] < 0) extents.push_back(extent_number(axis));
        strides.push_back(stride_number(axis));
    }
    const std::string made = fmt::format("{}::extents_type({})", type, fmt::join(extents, ", "));
    if (declared.order != ParameterType::Order::strided || strides.empty()) {
        return fmt::format("{}::mapping_type({})", type, made);
    }
    return fmt::format("{0}::mapping_type({1}, cuda::std::array<{0}::index_type, {2}>{{{{{3}}}}})", type,
                       made, strides.size(), fmt::join(strides, ", "));
}

/// Text that defines one object, and a separate target for its pointer.
std::string object_text(const Parameter& parameter, std::size_t number) {
    const ParameterType& declared = parameter.type;
    const std::string type = fmt::format("bascule_probe_type_{}_", number);
    const bool span = parameter.spelling.starts_with("cuda::std::span<");
    const std::int64_t length = span ? declared.static_extents[0] : 0;
    const std::string rest =
        span ? std::to_string(length < 0 ? extent_number(0) : length) : mapping_of(type, declared);
    std::string text = fmt::format("using {} = {};\n", type, parameter.spelling);
    text += fmt::format(
        "extern \"C\" {{ __device__ bascule_probe_view_holder_<typename "
        "bascule::unqualified<{}::element_type>::result_> {}{}; }}\n",
        type, target, number);
    text += fmt::format("extern \"C\" {{ __device__ {} {}{}(&{}{}.object_, {}); }}\n", type, view, number,
                        target, number, rest);
    return text;
}

/// Whether the elements need no header and nothing of the user's text.
bool is_builtin(const ParameterType& declared) {
    return declared.element_kind == ParameterType::Element::named &&
           declared.element.find("::") == std::string::npos && !declared.element.starts_with("__") &&
           declared.dtype.kind != DType::Kind::complex && cuda_name(declared.dtype) == declared.element;
}

std::string probe_text(const std::vector<Parameter>& views, bool alone, const std::string& users) {
    std::string text = users + "\n";
    if (alone) {
        text = "#include <cuda/std/span>\n";
        const bool some = std::ranges::any_of(views, [](const Parameter& parameter) {
            return parameter.spelling.starts_with("cuda::std::mdspan<");
        });
        if (some) text += "#include <cuda/std/array>\n#include <cuda/std/mdspan>\n";
    }
    text += R"(template <class T_> union bascule_probe_view_holder_ {
    char none_;
    T_ object_;
    __device__ constexpr bascule_probe_view_holder_() : none_() {}
};
)";
    for (std::size_t i = 0; i < views.size(); ++i) text += object_text(views[i], i);
    return text + fmt::format("__global__ void {}() {{}}\n", probe_kernel);
}

/// The offset of `number` outside the pointer; nothing unless it occurs exactly once.
std::optional<std::uint32_t> place_of(const InitialValue& value, std::uint32_t pointer, std::uint32_t width,
                                      int number) {
    std::optional<std::uint32_t> found;
    for (std::uint32_t offset = 0; offset + width <= value.bytes.size(); offset += width) {
        if (offset < pointer + 8 && pointer < offset + width) continue;
        if (value.integer(offset, width) != static_cast<std::uint64_t>(number)) continue;
        if (found) return std::nullopt;
        found = offset;
    }
    return found;
}

std::optional<ViewLayout> layout_of(const Parameter& parameter, const std::string& ptx, std::size_t number) {
    const auto value = initial_value(ptx, fmt::format("{}{}", view, number));
    if (!value || value->bytes.size() != parameter.bytes || value->addresses.size() != 1) return std::nullopt;
    const InitialValue::Address& pointer = value->addresses[0];
    if (pointer.symbol != fmt::format("{}{}", target, number) || pointer.addend != 0) return std::nullopt;

    ViewLayout layout;
    layout.pointer = pointer.offset;
    layout.index_bytes = parameter.type.index.itemsize;
    const ParameterType& declared = parameter.type;
    for (std::size_t axis = 0; axis < declared.static_extents.size(); ++axis) {
        const auto find = [&](int sentinel) {
            return place_of(*value, layout.pointer, layout.index_bytes, sentinel);
        };
        if (declared.static_extents[axis] < 0) {
            const auto place = find(extent_number(axis));
            if (!place) return std::nullopt;
            layout.extents.push_back({static_cast<int>(axis), *place});
        }
        if (declared.order == ParameterType::Order::strided) {
            const auto place = find(stride_number(axis));
            if (!place) return std::nullopt;
            layout.strides.push_back({static_cast<int>(axis), *place});
        }
    }
    return layout;
}

Layouts probe(const std::vector<Parameter>& views, const Program& program, const Nvrtc& nvrtc,
              CompileFunction compile, bool alone) {
    Program probe{program.source,
                  program.options,
                  program.arch,
                  {{probe_kernel, probe_kernel}},
                  Program::Purpose::code};
    probe.arch.is_virtual = true;
    probe.arch.suffix = '\0';
    probe.source.text = probe_text(views, alone, program.source.text);
    Layouts layouts;
    try {
        const Image image = compile(probe, nvrtc, nullptr);
        for (std::size_t i = 0; i < views.size(); ++i) {
            if (auto layout = layout_of(views[i], image.ptx, i)) layouts.emplace(views[i].spelling, *layout);
        }
    } catch (const CompileError&) {
        // They are not constant-initialised: these types have no layout, and arguments for them are refused.
    }
    return layouts;
}

/// Like `probe`, for types that need nothing of the user's text. Remembers the result for the process, because CCCL's
/// headers take almost a second.
Layouts remembered_probe(const std::vector<Parameter>& views, const Program& program, const Nvrtc& nvrtc,
                         CompileFunction compile) {
    static std::mutex mutex;
    static std::map<std::string, Layouts>& known = *new std::map<std::string, Layouts>;
    std::string key =
        fmt::format("{}\n{}\n{}\n{}\n", to_string(program.arch), nvrtc.path(),
                    fmt::join(nvrtc.include_paths(), "\n"), fmt::join(to_arguments(program.options), "\n"));
    for (const Parameter& parameter : views) key += parameter.spelling + "\n";
    {
        const std::lock_guard lock(mutex);
        if (const auto hit = known.find(key); hit != known.end()) return hit->second;
    }
    Layouts layouts = probe(views, program, nvrtc, compile, true);
    const std::lock_guard lock(mutex);
    return known.emplace(key, std::move(layouts)).first->second;
}

}  // namespace

void read_view_layouts(Image& image, const Program& program, const Nvrtc& nvrtc, CompileFunction compile) {
    std::vector<Parameter> views;
    bool builtin = true;
    for (const KernelImage& each : image.kernels) {
        for (const Parameter& parameter : each.signature.parameters) {
            const bool known = std::ranges::any_of(
                views, [&](const Parameter& other) { return other.spelling == parameter.spelling; });
            if (known || !is_view(parameter)) continue;
            views.push_back(parameter);
            builtin = builtin && is_builtin(parameter.type);
        }
    }
    if (views.empty()) return;
    // The user's own include paths may lead to another CCCL, whose headers can change.
    const bool alone = builtin && program.options.include_paths.empty() && program.options.headers.empty();
    const Layouts layouts = alone ? remembered_probe(views, program, nvrtc, compile)
                                  : probe(views, program, nvrtc, compile, false);
    for (KernelImage& each : image.kernels) {
        for (Parameter& parameter : each.signature.parameters) {
            const auto found = layouts.find(parameter.spelling);
            if (found != layouts.end()) parameter.type.layout = found->second;
        }
    }
}

}  // namespace bascule

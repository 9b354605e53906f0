#include <algorithm>
#include <mutex>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bascule/jit/compile/view_layouts.hpp>
#include <bascule/jit/process/never_destroyed.hpp>
#include <bascule/jit/variables/ptx_text.hpp>

namespace bascule {
namespace {

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

/// The C++ text of the mdspan constructor's argument after the pointer: the mapping.
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

struct RememberedLayouts {
    std::mutex mutex;
    std::map<std::string, ViewLayouts> by_key;
};

}  // namespace

ViewQuestion question_about_views(const Image& image, const Program& program, const Nvrtc& nvrtc) {
    ViewQuestion question;
    bool builtin = true;
    for (const KernelImage& each : image.kernels) {
        for (const Parameter& parameter : each.signature.parameters) {
            const auto known = std::ranges::find(question.views, parameter.spelling, &Parameter::spelling);
            if (known != question.views.end() || !is_view(parameter)) continue;
            question.views.push_back(parameter);
            builtin = builtin && is_builtin(parameter.type);
        }
    }
    if (question.views.empty()) return question;
    // The user's own include paths may lead to another CCCL, whose headers can change.
    const bool alone = builtin && program.options.include_paths.empty() && program.options.headers.empty();
    question.program = {program.source,
                        program.options,
                        program.arch,
                        {{probe_kernel, probe_kernel}},
                        Program::Purpose::code};
    question.program.arch.is_virtual = true;
    question.program.arch.suffix = '\0';
    question.program.source.text = probe_text(question.views, alone, program.source.text);
    if (!alone) return question;
    question.key =
        fmt::format("{}\n{}\n{}\n{}\n", to_string(program.arch), nvrtc.path(),
                    fmt::join(nvrtc.include_paths(), "\n"), fmt::join(to_arguments(program.options), "\n"));
    for (const Parameter& parameter : question.views) question.key += parameter.spelling + "\n";
    return question;
}

ViewLayouts layouts_in(const std::string& ptx, const ViewQuestion& question) {
    ViewLayouts layouts;
    for (std::size_t i = 0; i < question.views.size(); ++i) {
        if (auto layout = layout_of(question.views[i], ptx, i))
            layouts.emplace(question.views[i].spelling, *layout);
    }
    return layouts;
}

std::optional<ViewLayouts> remembered_layouts(const ViewQuestion& question) {
    auto& remembered = never_destroyed<RememberedLayouts>();
    const std::lock_guard lock(remembered.mutex);
    const auto known = remembered.by_key.find(question.key);
    return known == remembered.by_key.end() ? std::nullopt : std::optional(known->second);
}

void remember(const ViewQuestion& question, const ViewLayouts& layouts) {
    if (question.key.empty()) return;
    auto& remembered = never_destroyed<RememberedLayouts>();
    const std::lock_guard lock(remembered.mutex);
    remembered.by_key.emplace(question.key, layouts);
}

void set_layouts(Image& image, const ViewLayouts& layouts) {
    for (KernelImage& each : image.kernels) {
        for (Parameter& parameter : each.signature.parameters) {
            const auto found = layouts.find(parameter.spelling);
            if (found != layouts.end()) parameter.type.layout = found->second;
        }
    }
}

}  // namespace bascule

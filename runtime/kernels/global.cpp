// Finds a variable's memory by name: the compiler knows its type, the driver its address.
#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bascule/interface/errors/error.hpp>
#include <bascule/interface/errors/wording.hpp>
#include <bascule/jit/link/code.hpp>
#include <bascule/jit/questions/probed_program.hpp>
#include <bascule/jit/signatures/demangle.hpp>
#include <bascule/runtime/kernels/global.hpp>
#include <bascule/runtime/kernels/module_state.hpp>
#include <bascule/runtime/streams/stream_capture.hpp>

namespace bascule {
namespace {

template <class... Values>
[[noreturn]] void fail(const std::string& name, const Image& image, fmt::format_string<Values...> text,
                       Values&&... values) {
    throw CompileError(fmt::format(text, std::forward<Values>(values)...),
                       {.name_expression = name, .architecture = to_string(image.arch)});
}

[[noreturn]] void fail_name(const CompileError& error, const std::string& name,
                            const std::vector<std::string>& known, const Source& source, const Image& image) {
    const std::string_view reason = error.what();
    const bool exists =
        reason.find("is undefined") == reason.npos && reason.find("has no member") == reason.npos;
    if (exists) {
        fail(name, image, "'{}' of {} cannot be read or written as a variable. NVRTC says: {}", name,
             source.name, reason);
    }
    std::vector<std::string> spellings = known;
    for (const std::string& each : known) spellings.emplace_back(last_component(each));
    fail(name, image, "{} has no __device__ or __constant__ variable '{}'.{}{}", source.name, name,
         did_you_mean(name, spellings),
         known.empty() ? "" : fmt::format(" Its variables: {}.", fmt::join(known, ", ")));
}

Global located(Global global, const std::optional<LoadedVariable>& memory) {
    if (!memory || memory->bytes != global.variable.bytes()) {
        throw Error(
            fmt::format("variable '{}' has {} bytes on the device, but its type has {}. Please report this "
                        "with your NVRTC's version.",
                        global.variable.name, memory ? memory->bytes : 0, global.variable.bytes()));
    }
    global.address = memory->address;
    global.in_constant_memory = memory->is_constant;
    return global;
}

Global located(Global global, const Library& library, const CodeSymbol& symbol, Device device) {
    std::optional<LoadedVariable> memory = library.variable(symbol.name, device);
    if (memory) memory->is_constant = symbol.is_constant;
    return located(std::move(global), memory);
}

/// A variable that one of the linked texts declares. That text's compiler knows its type.
std::optional<Global> find_in_texts(const ImageSource& images, const Library& library,
                                    const std::string& name, Arch arch, Device device) {
    for (const ProbedProgram& text : images.programs(arch)) {
        const std::vector<std::string> known = find_variables(text.program.source.text);
        const std::string_view base = std::string_view(name).substr(0, name.find('<'));
        const bool declares = std::ranges::any_of(
            known, [&](const std::string& each) { return each == base || last_component(each) == base; });
        if (!declares) continue;
        const Image& image = *text.made.image;
        Global global{{}, 0, device};
        global.variable = reflect_variable(text, qualified_variable(name, known, text.program.source.name));
        const std::string name_there = name_in_image(global.variable, image.ptx);
        const CodeOutline outline = outline_of_ptx({text.program.source.name, image.ptx, CodeKind::ptx});
        const CodeSymbol* const symbol = outline.find(name_there);
        if (symbol == nullptr || symbol->linkage == CodeSymbol::Linkage::external) continue;
        if (symbol->linkage == CodeSymbol::Linkage::local) {
            fail(name, image,
                 "variable '{}' is static in {}, and a linked program has no name for it: remove `static`.",
                 name, text.program.source.name);
        }
        return located(std::move(global), library, *symbol, device);
    }
    return std::nullopt;
}

/// A variable of unknown type, as bytes.
Global find_in_code(const Library& library, const std::string& name, Device device) {
    const Image& image = library.image();
    const bool is_text = !image.ptx.empty();
    const CodeOutline outline = outline_of(
        {"the module's code", is_text ? image.ptx : image.cubin, is_text ? CodeKind::ptx : CodeKind::cubin});
    std::vector<std::string> known;
    for (const CodeSymbol& symbol : outline.symbols) {
        if (symbol.kind != CodeSymbol::Kind::variable || symbol.linkage == CodeSymbol::Linkage::external)
            continue;
        const std::string readable = readable_name(symbol.name);
        known.push_back(readable);
        if (name != readable && name != symbol.name && last_component(readable) != name) continue;
        Global global{{}, 0, device};
        global.variable.name = readable;
        global.variable.lowered_name = symbol.name;
        global.variable.dtype = {DType::Kind::unsigned_integer, 1};
        global.variable.shape.push_back(static_cast<std::int64_t>(symbol.bytes));
        return located(std::move(global), library, symbol, device);
    }
    fail(name, image, "the code has no variable '{}'.{}{}", name, did_you_mean(name, known),
         known.empty() ? "" : fmt::format(" Its variables: {}.", fmt::join(known, ", ")));
}

Global find_global_of_images(const Module& module, const std::string& name, Device device) {
    const std::shared_ptr<const Library> library = module.library(device);
    module.note_exposed_variables();
    const Arch arch = module.options().arch.value_or(device.arch());
    if (auto found = find_in_texts(*module.images(), *library, name, arch, device)) return *std::move(found);
    return find_in_code(*library, name, device);
}

/// A variable of the one text that `probed` was compiled from.
Global find_in_text(const Module& module, const ProbedProgram& probed, const std::string& name,
                    Device device) {
    const Source& source = module.source();
    const std::vector<std::string> known = find_variables(source.text);
    const std::string wanted =
        qualified_variable(name.substr(name.starts_with("::") ? 2 : 0), known, source.name);
    Global global{{}, 0, device};
    try {
        global.variable = reflect_variable(probed, wanted);
    } catch (const CompileError& error) {
        if (error.details().name_expression.empty()) throw;
        fail_name(error, name, known, source, *probed.made.image);
    }
    const LoadedVariable memory = module.variable(global.variable, device);
    return located(std::move(global), memory);
}

}  // namespace

ArrayView Global::view() const {
    const std::string typestr = to_typestr(variable.dtype);
    RawInterface fields;
    fields.shape = variable.shape;
    fields.typestr = typestr;
    fields.pointer = address;
    fields.readonly = variable.constant;
    ArrayView view = validate(fields);
    view.in_constant_memory = in_constant_memory;
    view.dtype = variable.dtype;  // the typestr does not distinguish small formats, such as fp8
    return view;
}

Global find_global(const Kernel& kernel, const std::string& name, Device device) {
    const Module& module = kernel.module();
    if (module.images() != nullptr) return find_global_of_images(module, name, device);
    if (kernel.existing(device) == nullptr) require_loadable(std::nullopt, kernel.name());
    kernel.loaded(device);
    module.note_exposed_variables();
    return find_in_text(module, kernel.probed(device), name, device);
}

Global find_global(const Module& module, const std::string& name, Device device) {
    if (module.images() != nullptr) return find_global_of_images(module, name, device);
    module.note_exposed_variables();
    return find_in_text(module, module.probed(device), name, device);
}

}  // namespace bascule

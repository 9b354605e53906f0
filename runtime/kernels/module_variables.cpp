#include <algorithm>

#include <fmt/format.h>

#include <bascule/interface/errors/error.hpp>
#include <bascule/jit/questions/probed_program.hpp>
#include <bascule/jit/signatures/demangle.hpp>
#include <bascule/runtime/faults/bounds_report.hpp>
#include <bascule/runtime/kernels/module_variables.hpp>

namespace bascule {
namespace {

/// Whether the variable is declared const: it then need not be shared, because all copies have the same value. Asks the
/// compiler, but only about variables with an initial value.
bool is_const(const ProbedProgram& program, const PtxVariable& variable) {
    const std::string name = variable.has_value ? name_in_text(variable.name) : "";
    if (name.empty()) return false;
    try {
        return reflect_variable(program, name).constant;
    } catch (const CompileError&) {  // the name cannot be used at the end of the text
        return false;
    }
}

[[noreturn]] void fail_to_share(const ProbedProgram& program, const PtxVariable& variable, const char* why) {
    std::string name = name_in_text(variable.name);
    if (name.empty()) name = readable_name(variable.name);
    throw Error(fmt::format("variable '{}' of {} belongs to code that was loaded before, and {}. {}", name,
                            program.program.source.name, why, advice_on_one_image()));
}

/// An image that uses variables of other libraries, and keeps them alive.
struct DependentImage {
    Image image;
    std::vector<std::shared_ptr<const Library>> owners;
};

}  // namespace

const std::vector<PtxVariable>& ModuleVariables::LoadedImage::variables() {
    if (!known) known = variables_of(library->image().ptx);
    return *known;
}

ModuleVariables::Elsewhere ModuleVariables::find_elsewhere(const ProbedProgram& program, Device device) {
    Elsewhere elsewhere;
    std::vector<LoadedImage>& images = loaded_[device.ordinal()];
    if (images.empty()) return elsewhere;
    for (const PtxVariable& variable : variables_of(program.made.image->ptx)) {
        // The bounds hook is never shared.
        if (!variable.is_used || variable.name == bounds_hook) continue;
        const std::string name = name_in_every_image(variable.name);
        const auto is_it = [&](const PtxVariable& each) {
            return each.bytes == variable.bytes && name_in_every_image(each.name) == name;
        };
        const auto owner = std::ranges::find_if(
            images, [&](LoadedImage& image) { return std::ranges::any_of(image.variables(), is_it); });
        if (owner == images.end() || is_const(program, variable)) continue;
        const PtxVariable& there = *std::ranges::find_if(owner->variables(), is_it);
        // A table of functions that no kernel changes is as good as const, while the host cannot change it.
        if (variable.is_only_read && there.is_only_read && !exposed_.contains(name)) continue;
        const std::optional<LoadedVariable> memory = owner->library->variable(there.name, device);
        if (!memory) fail_to_share(program, variable, "the driver does not tell its address");
        if (variable.points_to_function)
            fail_to_share(program, variable,
                          "begins with the address of a function, which only that code can call");
        elsewhere.addresses.emplace(variable.name, memory->address);
        elsewhere.owners.push_back(owner->library);
    }
    return elsewhere;
}

std::shared_ptr<const Library> ModuleVariables::load(const ProbedProgram& program, Device device,
                                                     const std::shared_ptr<const Library>& same) {
    const std::shared_ptr<const Image>& image = program.made.image;
    if (!has_variables(image->ptx)) return same != nullptr ? same : Library::load(image, device);
    const std::lock_guard lock(mutex_);
    Elsewhere elsewhere = find_elsewhere(program, device);
    std::shared_ptr<const Library> library;
    if (elsewhere.addresses.empty()) {
        library = same != nullptr ? same : Library::load(image, device);
    } else {
        const auto dependent = std::make_shared<DependentImage>(DependentImage{*image, elsewhere.owners});
        dependent->image.ptx = with_addresses(image->ptx, elsewhere.addresses);
        dependent->image.cubin.clear();
        library = Library::load({dependent, &dependent->image}, device);
    }
    loaded_[device.ordinal()].push_back({library, std::nullopt});
    return library;
}

std::optional<LoadedVariable> ModuleVariables::find(const Variable& variable, Device device) {
    const std::lock_guard lock(mutex_);
    std::optional<LoadedVariable> found;
    for (LoadedImage& image : loaded_[device.ordinal()]) {
        const std::string name = name_in_image(variable, image.library->image().ptx);
        const auto known = std::ranges::find(image.variables(), name, &PtxVariable::name);
        if (known == image.variables().end()) continue;
        std::optional<LoadedVariable> memory = image.library->variable(name, device);
        if (!memory) continue;
        if (known->points_to_function) {
            if (found) {
                throw Error(fmt::format(
                    "variable '{}' has the address of a function, and each image of the text has its own. {}",
                    variable.name, advice_on_one_image()));
            }
            exposed_.insert(name_in_every_image(name));
        }
        memory->is_constant = known->is_constant;
        if (!found) found = memory;
    }
    return found;
}

}  // namespace bascule

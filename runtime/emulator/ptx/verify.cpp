// Checks that a driver's assembler makes after parsing.
#include <algorithm>
#include <string>
#include <unordered_set>

#include <fmt/format.h>

#include "ptx/lexer.hpp"
#include "ptx/limits.hpp"
#include "ptx/module.hpp"
#include "ptx/names.hpp"

namespace emulated::ptx {
namespace {

// --- sizes -------------------------------------------------------------------------------------------------

// The end of a variable placed after `end` bytes of others; UINT64_MAX on overflow.
std::uint64_t end_of(const Variable& variable, std::uint64_t end) {
    end = (end + variable.alignment - 1) / variable.alignment * variable.alignment;
    return __builtin_add_overflow(end, variable.bytes, &end) ? UINT64_MAX : end;
}

std::uint64_t most_parameter_bytes(const Module& module) {
    const bool version = module.major > 8 || (module.major == 8 && module.minor >= 1);
    return version && module.architecture >= 70 ? limits::parameters_since_ptx_8_1 : limits::parameters;
}

void verify_parameters(const Module& module, const Function& function) {
    std::uint64_t end = 0;
    for (const std::int32_t index : function.parameters) end = end_of(function.variable(index), end);
    const std::uint64_t most = most_parameter_bytes(module);
    if (function.is_entry && end > most) {
        throw SyntaxError(function.line,
                          fmt::format("the parameters of kernel '{}' need {} bytes, and a kernel can have "
                                      "{}: pass a pointer to the larger ones",
                                      demangled(function.name), end, most));
    }
    // Each parameter must fit into local memory, because a GPU may pass arguments there.
    for (const Variable& variable : function.variables) {
        if (variable.space == Space::param && variable.bytes > limits::local) {
            throw SyntaxError(variable.line,
                              fmt::format("the parameter '{}' has {} bytes, and a thread has {} bytes of "
                                          "local memory",
                                          variable.name, variable.bytes, limits::local));
        }
    }
}

void verify_constants(const Module& module) {
    std::uint64_t end = 0;
    for (const Variable& variable : module.variables) {
        if (variable.space != Space::constant || variable.is_extern) continue;
        end = std::max(end, end_of(variable, end));
        if (end > limits::constants) {
            throw SyntaxError(variable.line,
                              fmt::format("with '{}' the constant variables of this module need {} bytes, "
                                          "and a module can have {}: declare the larger ones __device__",
                                          demangled(variable.name), end, limits::constants));
        }
    }
}

// --- names -------------------------------------------------------------------------------------------------

// Names that are declared and not defined, each with its first use.
class Undefined {
  public:
    explicit Undefined(const Module& module) : module_(module) {
        for (const Function& function : module.functions) {
            if (!function.has_body && !is_provided(function.name)) declared_.insert(function.name);
        }
        // Dynamic shared memory is declared and never defined.
        for (const Variable& variable : module.variables) {
            if (variable.is_extern && variable.space != Space::shared) declared_.insert(variable.name);
        }
        for (const Variable& variable : module.variables) {
            if (!variable.is_extern) declared_.erase(variable.name);
        }
    }

    void find() {
        for (const Variable& variable : module_.variables) {
            // ptxas looks for an array of unknown size even if nothing uses it.
            if (variable.unsized && declared_.contains(variable.name)) add(variable.name, variable.line, "");
            for (const Variable::Reference& reference : variable.references) {
                if (declared_.contains(reference.symbol)) add(reference.symbol, variable.line, "");
            }
        }
        for (const Function& function : module_.functions) {
            for (const Instruction& instruction : function.body) {
                for (const Operand& operand : instruction.operands) find(instruction, operand);
            }
        }
        if (names_.empty()) return;
        throw SyntaxError(line_, fmt::format("not defined: {}. Every function and variable that a module "
                                             "uses must be defined in its own text{}",
                                             names_, places_));
    }

  private:
    void find(const Instruction& instruction, const Operand& operand) {
        if (operand.kind == Operand::Kind::symbol && declared_.contains(operand.name))
            add(operand.name, instruction.line, place_of(instruction));
        for (const Operand& part : operand.parts) find(instruction, part);
    }

    void add(std::string_view name, std::uint32_t line, const std::string& place) {
        declared_.erase(name);  // only the first use is reported
        if (names_.empty()) line_ = line;
        names_ += fmt::format("{}'{}'", names_.empty() ? "" : ", ", demangled(name));
        if (!place.empty()) places_ += fmt::format("\n  '{}' is used at {}", demangled(name), place);
    }

    std::string place_of(const Instruction& instruction) const {
        const auto file = std::ranges::find(module_.files, instruction.file, &Module::File::index);
        if (instruction.source_line == 0 || file == module_.files.end()) return "";
        return fmt::format("line {} of {}", instruction.source_line, file->name);
    }

    const Module& module_;
    std::unordered_set<std::string_view> declared_;
    std::string names_, places_;
    std::uint32_t line_ = 0;
};

}  // namespace

bool is_provided(std::string_view function) noexcept {
    static constexpr std::string_view provided[] = {"vprintf",
                                                    "__assertfail",
                                                    "malloc",
                                                    "free",
                                                    "__cuda_syscall_aligned_malloc",
                                                    "cudaGraphSetConditional"};
    return std::ranges::find(provided, function) != std::end(provided);
}

void verify(const Module& module) {
    for (const Function& function : module.functions) verify_parameters(module, function);
    verify_constants(module);
    Undefined(module).find();
}

}  // namespace emulated::ptx

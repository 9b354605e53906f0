// Any text becomes a module or an error with a line: the parser, the lowering and the register allocation accept any
// input. Use the kernels of tests/emulator/ptx as seeds, and -dict=ptx.dict.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <variant>

#include "program/code.hpp"
#include "program/loaded_module.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace emulated::program;
    const auto loaded = load({reinterpret_cast<const char*>(data), size});
    if (const auto* error = std::get_if<LoadError>(&loaded)) {
        if (error->message.empty()) std::abort();
        return 0;
    }
    for (const Kernel& kernel : std::get<0>(loaded)->kernels) {
        if (kernel.refusal.empty() != (kernel.code != nullptr)) std::abort();
        if (!kernel.code) continue;
        const Code& code = *kernel.code;
        if (code.keys.size() != code.instructions.size() || code.lines.size() != code.keys.size())
            std::abort();
        for (const Code::Line& line : code.lines) {
            if (line.file >= code.files.size()) std::abort();
        }
        // A branch target is inside the code.
        for (std::size_t i = 0; i < code.keys.size(); ++i) {
            const Operation operation = code.keys[i].operation;
            if (operation != Operation::bra && operation != Operation::branch && operation != Operation::call)
                continue;
            const std::int64_t target = code.instructions[i].immediate;
            if (target < 0 || target >= static_cast<std::int64_t>(code.instructions.size())) std::abort();
        }
    }
    return 0;
}

// cuLink*, with which Numba and others link PTX. A single PTX text is passed through, several are joined into one;
// CU_JIT_MAX_REGISTERS is applied to the result. Other inputs, such as cubins, are refused with the reason in the
// caller's log, except for libcudadevrt, which has a replacement.
#include <cstring>
#include <fstream>
#include <iterator>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "driver/call.hpp"
#include "driver/code_calls/device_runtime.hpp"
#include "driver/code_calls/jit_log.hpp"
#include "driver/code_calls/loadable_code.hpp"
#include "ptx/join.hpp"
#include "ptx/lexer.hpp"
#include "ptx/module.hpp"

namespace emulated::driver {
namespace {

/// The object of a CUlinkState.
struct Link {
    struct Input {
        std::string name, text;
    };
    JitLog errors;
    unsigned most_registers = 0;
    std::vector<Input> inputs;
    std::string text;  ///< the joined text of all inputs
    bool complete = false;
};

void refuse_link(const Link& link, CUresult code, const std::string& message) {
    link.errors.write(message);
    return refuse(code, message);
}

// Recognises libcudadevrt by its path or its name.
bool is_device_runtime(CUjitInputType type, std::string_view called) {
    const std::string_view file = called.substr(called.find_last_of('/') + 1);
    return type == CU_JIT_INPUT_LIBRARY &&
           (file.starts_with("libcudadevrt") || file.starts_with("cudadevrt"));
}

void add(Link& link, CUjitInputType type, std::string text, const char* name) {
    require(!link.complete, CUDA_ERROR_INVALID_HANDLE);
    const std::string called = name == nullptr ? "<unnamed>" : name;
    if (is_device_runtime(type, called)) {
        link.inputs.push_back({called, std::string(device_runtime)});
        return;
    }
    if (type != CU_JIT_INPUT_PTX) {
        return refuse_link(link, CUDA_ERROR_NO_BINARY_FOR_GPU,
                           fmt::format("'{}' is not PTX, and the emulated device runs PTX alone: compile for "
                                       "compute_80 and link that",
                                       called));
    }
    while (!text.empty() && text.back() == '\0') text.pop_back();  // the size may include the terminator
    try {
        // Checks everything but names that other inputs may define.
        ptx::parse(text, Process::get().environment().architecture);
    } catch (const ptx::SyntaxError& error) {
        return refuse_link(link, CUDA_ERROR_INVALID_PTX,
                           fmt::format("{}: {}\n  PTX line {}", called, error.what(), error.line));
    }
    link.inputs.push_back({called, std::move(text)});
}

void complete(Link& link) {
    if (link.inputs.size() == 1) {
        link.text = std::move(link.inputs[0].text);
    } else {
        std::vector<ptx::Text> texts;
        for (const Link::Input& input : link.inputs) texts.push_back({input.name, input.text});
        try {
            link.text = ptx::join(texts);
        } catch (const ptx::SyntaxError& error) {
            return refuse_link(link, CUDA_ERROR_INVALID_PTX, error.what());
        }
    }
    const auto loaded = load_ptx(link.text);
    if (const auto* refusal = std::get_if<CodeRefusal>(&loaded))
        return refuse_link(link, refusal->code, refusal->message);
}

}  // namespace

EMULATED_CONTEXT_API(cuLinkCreate, 6050, unsigned int count, CUjit_option* options, void** values,
                     CUlinkState* state) {
    require(state != nullptr);
    auto link = std::make_shared<Link>();
    link->errors =
        JitLog(count, options, values, CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES);
    // The log is written now and later only if there is a message: cuda.core before 1.2 frees the option values after this
    // call.
    link->errors.write("");
    link->most_registers = number_of(CU_JIT_MAX_REGISTERS, count, options, values);
    *state = new_handle<CUlinkState>(std::move(link));
}

EMULATED_CONTEXT_API(cuLinkAddData, 6050, CUlinkState state, CUjitInputType type, void* data,
                     std::size_t bytes, const char* name, unsigned int, CUjit_option*, void**) {
    const auto link = object_of<Link>(state);
    require(data != nullptr && bytes > 0);
    return add(*link, type, std::string(static_cast<const char*>(data), bytes), name);
}

EMULATED_CONTEXT_API(cuLinkAddFile, 6050, CUlinkState state, CUjitInputType type, const char* path,
                     unsigned int, CUjit_option*, void**) {
    const auto link = object_of<Link>(state);
    require(path != nullptr);
    std::ifstream file(path, std::ios::binary);
    require(file, CUDA_ERROR_FILE_NOT_FOUND);
    return add(*link, type, {std::istreambuf_iterator<char>(file), {}}, path);
}

/// The image is the PTX text itself and lives as long as the link.
EMULATED_CONTEXT_API(cuLinkComplete, 5050, CUlinkState state, void** image, std::size_t* bytes) {
    const auto link = object_of<Link>(state);
    require(!link->inputs.empty() && image != nullptr);
    if (!link->complete) {
        complete(*link);
        link->complete = true;
        link->text = with_register_limit(link->text, link->most_registers);
    }
    *image = link->text.data();
    if (bytes != nullptr) *bytes = link->text.size() + 1;
}

EMULATED_API(cuLinkDestroy, 5050, CUlinkState state) { remove<Link>(state); }

}  // namespace emulated::driver

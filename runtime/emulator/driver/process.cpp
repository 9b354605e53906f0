#include "driver/process.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace emulated::driver {
namespace {

constexpr std::uint64_t default_memory = std::uint64_t{2} << 30;

std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
    const char* text = std::getenv(variable);
    if (text == nullptr || *text == '\0') return otherwise;
    char* end = nullptr;
    const unsigned long long value = std::strtoull(text, &end, 10);
    return *end == '\0' && value > 0 ? value : otherwise;
}

bool is_set_to(const char* variable, const char* value) {
    const char* text = std::getenv(variable);
    return text != nullptr && std::strcmp(text, value) == 0;
}

}  // namespace

Process& Process::get() {
    static Process& process = *new Process;
    return process;
}

Process::Process()
    : devices_(static_cast<int>(std::min<std::uint64_t>(number_from("BASCULE_EMULATED_DEVICES", 1), 16))),
      executes_(!is_set_to("BASCULE_EMULATED_EXECUTE", "0")),
      workers_(static_cast<unsigned>(
          number_from("BASCULE_EMULATED_WORKERS", std::max(1U, std::thread::hardware_concurrency())))),
      policy_(is_set_to("BASCULE_EMULATED_SCHEDULE", "lazy") ? streams::Policy::lazy
                                                             : streams::Policy::eager),
      heap_(
          std::make_unique<memory::Heap>(devices_, number_from("BASCULE_EMULATED_MEMORY", default_memory))) {
    for (int device = 0; device < devices_; ++device) {
        primaries_.push_back(std::make_unique<Context>(device, true, policy_));
    }
}

Context* Process::create_context(int device) {
    auto context = std::make_unique<Context>(device, false, policy_);
    Context* handle = context.get();
    const std::lock_guard lock(mutex_);
    created_.emplace(handle, std::move(context));
    return handle;
}

bool Process::destroy_context(Context* context) {
    const std::lock_guard lock(mutex_);
    return created_.erase(context) == 1;
}

bool Process::knows(Context* context) {
    const std::lock_guard lock(mutex_);
    return created_.contains(context) ||
           std::any_of(primaries_.begin(), primaries_.end(),
                       [&](const auto& primary) { return primary.get() == context; });
}

std::vector<Context*> Process::contexts() {
    const std::lock_guard lock(mutex_);
    std::vector<Context*> all;
    for (const auto& primary : primaries_) all.push_back(primary.get());
    for (const auto& [handle, context] : created_) all.push_back(handle);
    return all;
}

Library* Process::add_library(std::unique_ptr<Library> library) {
    Library* handle = library.get();
    const std::lock_guard lock(mutex_);
    libraries_.emplace(handle, std::move(library));
    return handle;
}

bool Process::remove_library(Library* library) {
    const std::lock_guard lock(mutex_);
    return libraries_.erase(library) == 1;
}

bool Process::knows(Library* library) {
    const std::lock_guard lock(mutex_);
    return libraries_.contains(library);
}

void Process::set_report(std::string text) {
    const std::lock_guard lock(mutex_);
    report_ = std::move(text);
}

std::string Process::report() {
    const std::lock_guard lock(mutex_);
    return report_;
}

std::vector<Context*>& context_stack() noexcept {
    thread_local std::vector<Context*> stack;
    return stack;
}

Context* current_context() noexcept {
    const std::vector<Context*>& stack = context_stack();
    return stack.empty() ? nullptr : stack.back();
}

streams::Stream* find_stream(Context& context, CUstream handle) {
    if (handle == nullptr || handle == CU_STREAM_LEGACY) return &context.graph.legacy();
    const std::lock_guard lock(context.mutex);
    if (handle == CU_STREAM_PER_THREAD) {
        std::unique_ptr<Stream>& mine = context.per_thread[std::this_thread::get_id()];
        if (mine == nullptr) {
            mine = std::make_unique<Stream>();
            mine->context = &context;
            context.graph.add(mine->stream);
        }
        return &mine->stream;
    }
    const auto found = context.streams.find(reinterpret_cast<Stream*>(handle));
    return found == context.streams.end() ? nullptr : &found->second->stream;
}

Context* context_of(CUstream handle) {
    const bool is_default = handle == nullptr || handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD;
    Context* current = current_context();
    if (is_default) return current;
    if (current != nullptr) {
        const std::lock_guard lock(current->mutex);
        if (current->streams.contains(reinterpret_cast<Stream*>(handle))) return current;
    }
    for (Context* context : Process::get().contexts()) {
        const std::lock_guard lock(context->mutex);
        if (context->streams.contains(reinterpret_cast<Stream*>(handle))) return context;
    }
    return nullptr;
}

Event* find_event(CUevent handle) {
    auto* event = reinterpret_cast<Event*>(handle);
    if (Context* current = current_context()) {
        const std::lock_guard lock(current->mutex);
        if (current->events.contains(event)) return event;
    }
    for (Context* context : Process::get().contexts()) {
        const std::lock_guard lock(context->mutex);
        if (context->events.contains(event)) return event;
    }
    return nullptr;
}

}  // namespace emulated::driver

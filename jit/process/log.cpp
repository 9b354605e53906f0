#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <utility>

#include <bascule/jit/process/log.hpp>

namespace bascule {
namespace {

/// The least level that BASCULE_LOG asks for; nothing if it asks for no messages.
std::optional<LogLevel> level_from_environment() noexcept {
    const char* value = std::getenv("BASCULE_LOG");
    const std::string_view level = value == nullptr ? "" : value;
    if (level == "debug") return LogLevel::debug;
    if (level == "info") return LogLevel::info;
    if (!level.empty() && level != "off") {
        std::fprintf(stderr, "bascule: BASCULE_LOG is \"%s\": set it to info, debug or off, or unset it.\n",
                     value);
    }
    return std::nullopt;
}

bool environment_wants(const char*, LogLevel level) noexcept {
    static const std::optional<LogLevel> least = level_from_environment();
    return least && level >= *least;
}

void print_message(const char* logger, LogLevel, const std::string& message) noexcept {
    std::fprintf(stderr, "%s: %s\n", logger, message.c_str());
}

constinit thread_local int handlers_running = 0;
constexpr int most_handlers = 2;
constinit thread_local LogMessages* held = nullptr;

constexpr LogHandler standard_error{&environment_wants, &print_message};

const LogHandler& handler() noexcept {
    const LogHandler& given = jit_services().log;
    return given.wants != nullptr ? given : standard_error;
}

std::atomic<bool>& memory_hits() noexcept {
    static std::atomic<bool> wanted = environment_wants(cache_logger, LogLevel::debug);
    return wanted;
}

}  // namespace

bool logs(const char* logger, LogLevel level) noexcept {
    if (handlers_running == most_handlers) return false;
    const bool wanted = handler().wants(logger, level);
    if (level == LogLevel::debug && logger == cache_logger) memory_hits().store(wanted);
    return wanted;
}

void log(const char* logger, LogLevel level, const std::string& message) {
    if (handlers_running == most_handlers) return;
    if (held != nullptr) {
        held->push_back({logger, level, message});
        return;
    }
    ++handlers_running;
    handler().write(logger, level, message);
    --handlers_running;
}

void log(const LogMessages& messages) {
    for (const auto& [logger, level, text] : messages) log(logger, level, text);
}

MessagesHeld::MessagesHeld(LogMessages& list) noexcept : outer_(std::exchange(held, &list)) {}
MessagesHeld::~MessagesHeld() { held = outer_; }

bool logs_memory_hits() noexcept { return memory_hits().load(std::memory_order_relaxed); }

}  // namespace bascule

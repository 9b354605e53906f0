// What the program that uses the JIT provides: its language, its log, and how its threads wait for compiles.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include <bascule/interface/errors/wording.hpp>

namespace bascule {

enum class LogLevel : std::uint8_t { debug, info };

/// The receiver of log messages. Any thread may call it, also several at once, without a lock; no other thread waits
/// for the caller meanwhile. So a handler may take locks and compile.
struct LogHandler {
    bool (*wants)(const char* logger, LogLevel level) noexcept = nullptr;
    void (*write)(const char* logger, LogLevel level, const std::string& message) noexcept = nullptr;
};

/// How threads wait for compiles. Only Python's main thread handles signals.
struct CompileWatch {
    /// Whether to call is_interrupted while the calling thread waits; its compiles then run on separate threads.
    bool (*watches_this_thread)() noexcept = nullptr;
    /// Called in the waiting thread every 50 ms, without a lock. `what` is being compiled; true ends the wait.
    bool (*is_interrupted)(const std::string& what, std::chrono::milliseconds waited) noexcept = nullptr;
    /// Called in the waiting thread when a wait ends for which is_interrupted was called.
    void (*ended)() noexcept = nullptr;
};

/// Without functions, messages that BASCULE_LOG (info or debug) asks for go to stderr, and no wait is interrupted.
struct JitServices {
    Language language = Language::cpp;  ///< of the advice in messages
    LogHandler log{};
    CompileWatch compile_watch{};
};

namespace detail {
inline constexpr JitServices no_jit_services{};
inline constinit std::atomic<const JitServices*> jit_services{&no_jit_services};
}  // namespace detail

inline const JitServices& jit_services() noexcept {
    return *detail::jit_services.load(std::memory_order_acquire);
}

/// Replaces the services of the process. `services` must live as long as the process.
inline void install(const JitServices& services) noexcept {
    language_of_advice.store(services.language, std::memory_order_relaxed);
    detail::jit_services.store(&services, std::memory_order_release);
}

}  // namespace bascule

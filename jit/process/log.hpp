// Messages about what was compiled and why: of the loggers "bascule.cache" and "bascule.jit".
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace bascule {

enum class LogLevel : std::uint8_t { debug, info };

inline constexpr const char* cache_logger = "bascule.cache";
inline constexpr const char* jit_logger = "bascule.jit";

/// What gets the messages. Called by any thread, several at once, with no lock of ours held, and no other thread waits for
/// what this one does: a handler may have locks of its own, and compile.
struct LogHandler {
    bool (*wants)(const char* logger, LogLevel level) noexcept;
    void (*write)(const char* logger, LogLevel level, const std::string& message) noexcept;
};

/// From now on instead of standard error, where C++ programs see what BASCULE_LOG (info or debug) asks for. `handler`
/// lives as long as the process.
void set_log_handler(const LogHandler& handler) noexcept;

/// A handler is told of what it compiles itself, and not of what it compiles then: that would never end.
bool logs(const char* logger, LogLevel level) noexcept;
void log(const char* logger, LogLevel level, const std::string& message);

struct LogMessage {
    const char* logger;
    LogLevel level;
    std::string text;
};
using LogMessages = std::vector<LogMessage>;
void log(const LogMessages& messages);

/// While it lives, the messages of the calling thread go to a list, because others wait for what the thread does.
class MessagesHeld {
  public:
    explicit MessagesHeld(LogMessages& list) noexcept;
    ~MessagesHeld();
    MessagesHeld(MessagesHeld&&) = delete;

  private:
    LogMessages* outer_;
};

/// Whether hits in memory are logged: one load. As the handler said when it was asked last, and at first as BASCULE_LOG
/// says.
bool logs_memory_hits() noexcept;

}  // namespace bascule

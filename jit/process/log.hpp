// Logs what was compiled and why, with the loggers "bascule.cache" and "bascule.jit".
#pragma once

#include <vector>

#include <bascule/jit/process/services.hpp>

namespace bascule {

inline constexpr const char* cache_logger = "bascule.cache";
inline constexpr const char* jit_logger = "bascule.jit";

/// Whether a message is wanted. A handler may compile, and gets the messages about that compile too. If it compiles
/// again for one of these, the answer is false, because that would recurse forever.
bool logs(const char* logger, LogLevel level) noexcept;
void log(const char* logger, LogLevel level, const std::string& message);

struct LogMessage {
    const char* logger;
    LogLevel level;
    std::string text;
};
using LogMessages = std::vector<LogMessage>;
void log(const LogMessages& messages);

/// While it lives, messages of the calling thread are collected in a list, because other threads wait for this one.
class MessagesHeld {
  public:
    explicit MessagesHeld(LogMessages& list) noexcept;
    ~MessagesHeld();
    MessagesHeld(MessagesHeld&&) = delete;

  private:
    LogMessages* outer_;
};

/// Whether hits in memory are logged. One atomic load of the handler's last answer; at first, the value of BASCULE_LOG
/// decides.
bool logs_memory_hits() noexcept;

}  // namespace bascule

// The one way the library speaks: messages go to a sink that the program sets. Without a sink they
// are dropped, so a library user never finds text on their stderr.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <string_view>
#include <utility>

namespace rlx {

enum class LogLevel { kDebug, kInfo, kWarning };

using LogSink = std::function<void(LogLevel, std::string_view message)>;

// Replaces the sink; an empty function drops all messages. Not to be called while another thread
// logs.
void set_log_sink(LogSink sink);

void log_message(LogLevel level, std::string_view message);

template <typename... Args>
void log(LogLevel level, fmt::format_string<Args...> format, Args&&... args) {
  log_message(level, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace rlx

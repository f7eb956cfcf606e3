#include "base/log.h"

namespace rlx {
namespace {

LogSink& sink() {
  static LogSink instance;
  return instance;
}

}  // namespace

void set_log_sink(LogSink new_sink) { sink() = std::move(new_sink); }

void log_message(LogLevel level, std::string_view message) {
  if (sink()) sink()(level, message);
}

}  // namespace rlx

#include "base/error.h"

#include <cstdio>
#include <cstdlib>

namespace rlx {

const char* to_string(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return "invalid argument";
    case ErrorCode::kNotFound:
      return "not found";
    case ErrorCode::kUnsupported:
      return "unsupported";
    case ErrorCode::kOutOfRange:
      return "out of range";
    case ErrorCode::kCorruptData:
      return "corrupt data";
    case ErrorCode::kOutOfMemory:
      return "out of memory";
    case ErrorCode::kIo:
      return "input/output error";
    case ErrorCode::kCancelled:
      return "cancelled";
    case ErrorCode::kInternal:
      return "internal error";
  }
  return "unknown error";
}

Error::Error(ErrorCode code, std::string message)
    : code_(code), message_(std::move(message)), what_(message_) {}

void Error::add_context(std::string where) {
  what_ = where + ": " + what_;
  context_.insert(context_.begin(), std::move(where));
}

void fail_check(const char* condition, const char* file, int line, const std::string& message) {
  std::fprintf(stderr, "rlx: internal error: %s does not hold at %s:%d%s%s\n", condition, file,
               line, message.empty() ? "" : ": ", message.c_str());
  std::abort();
}

}  // namespace rlx

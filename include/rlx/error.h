// The error that loading and compiling throw: a code to branch on, a full sentence to read, and the
// chain of what was being worked on (file, tensor, node), outermost first.
#pragma once

#include <cstdint>
#include <exception>
#include <string>
#include <vector>

namespace rlx {

enum class ErrorCode : uint8_t {
  kInvalidArgument,  // the caller's request makes no sense (wrong shape, wrong option)
  kNotFound,         // a file, tensor, name or device that is not there
  kUnsupported,      // understood, but not something this build can do
  kOutOfRange,       // an index, size or extent beyond its declared bound
  kCorruptData,      // a file that contradicts its own format
  kOutOfMemory,      // an allocation or a budget that does not fit
  kIo,               // the operating system refused to read or write
  kCancelled,        // stopped on request
  kInternal,         // our own fault
};

// The code as a lower-case word, such as "corrupt data".
const char* to_string(ErrorCode code);

class Error : public std::exception {
 public:
  Error(ErrorCode code, std::string message);

  ErrorCode code() const { return code_; }
  const std::string& message() const { return message_; }
  const std::vector<std::string>& context() const { return context_; }

  // Adds what was being worked on, one level further out ("model.gguf", "tensor 'x'").
  // Call in a catch block, then `throw;`.
  void add_context(std::string where);

  // "outer: inner: message".
  const char* what() const noexcept override { return what_.c_str(); }

 private:
  ErrorCode code_;
  std::string message_;
  std::vector<std::string> context_;
  std::string what_;
};

}  // namespace rlx

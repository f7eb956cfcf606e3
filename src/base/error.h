// How the library reports failure: `throw_error` for what a user can cause, `RLX_CHECK` for what
// only a bug of ours can. See rlx/error.h for the type that users see.
#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>

#include "rlx/error.h"

namespace rlx {

// Throws rlx::Error. The message is a full sentence, present tense, with the given and the expected
// value: "Tensor has 3 dimensions, but matmul expects at least 2."
template <typename... Args>
[[noreturn]] void throw_error(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) {
  throw Error(code, fmt::format(format, std::forward<Args>(args)...));
}

// Runs `body`; an Error that passes gets `where` added to its context.
template <typename Body>
auto with_context(const std::string& where, Body&& body) -> decltype(body()) {
  try {
    return body();
  } catch (Error& error) {
    error.add_context(where);
    throw;
  }
}

// Stops the process through the one handler for broken invariants: prints the condition, the place
// and the message to stderr, then aborts.
[[noreturn]] void fail_check(const char* condition, const char* file, int line,
                             const std::string& message);

}  // namespace rlx

// An invariant of ours. On in every build; use where the cost is small against the work around it.
#define RLX_CHECK(condition, ...)                                                       \
  do {                                                                                  \
    if (!(condition)) [[unlikely]] {                                                    \
      ::rlx::fail_check(#condition, __FILE__, __LINE__, ::fmt::format("" __VA_ARGS__)); \
    }                                                                                   \
  } while (false)

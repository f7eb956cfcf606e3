#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "commands.h"

namespace rlx::cli {

namespace {

DType find_dtype(const std::string& name) {
  DType dtype;
  if (!parse_dtype(name, dtype)) {
    throw_error(ErrorCode::kInvalidArgument, "'{}' is not an element type; f32, f16 and bf16 are.",
                name);
  }
  return dtype;
}

}  // namespace

LanguageModelOptions make_load_options(const ModelOptions& options, DType default_cache_type) {
  if (options.device != "cpu") {
    throw_error(ErrorCode::kNotFound, "This build has no device '{}'; it has: cpu.",
                options.device);
  }
  LanguageModelOptions load;
  load.context = options.context;
  load.max_tokens = options.max_tokens;
  load.threads = options.threads;
  load.quantize_activations = options.activations == "int8";
  load.cache_dtype =
      options.cache_type.empty() ? default_cache_type : find_dtype(options.cache_type);
  load.rope_dtype = find_dtype(options.rope_type);
  return load;
}

std::atomic<bool> interrupted{false};

std::string read_stdin() {
  std::string text;
  char buffer[1 << 16];
  while (true) {
    // A signal ends the wait, whatever its handler asks of system calls; a read would go on.
    pollfd stdin_event{STDIN_FILENO, POLLIN, 0};
    const int ready = poll(&stdin_event, 1, -1);
    if (interrupted.load()) throw Error(ErrorCode::kCancelled, "Stopped while reading stdin.");
    if (ready < 0 && errno == EINTR) continue;
    const ssize_t count = ready < 0 ? -1 : read(STDIN_FILENO, buffer, sizeof(buffer));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw_error(ErrorCode::kIo, "Cannot read stdin: {}.", std::strerror(errno));
    if (count == 0) return text;
    text.append(buffer, static_cast<size_t>(count));
  }
}

}  // namespace rlx::cli

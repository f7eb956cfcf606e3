#include <cstdio>

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

std::string read_stdin() {
  std::string text;
  char buffer[1 << 16];
  size_t count = 0;
  while ((count = std::fread(buffer, 1, sizeof(buffer), stdin)) > 0) text.append(buffer, count);
  if (std::ferror(stdin) != 0) throw_error(ErrorCode::kIo, "Cannot read stdin.");
  return text;
}

}  // namespace rlx::cli

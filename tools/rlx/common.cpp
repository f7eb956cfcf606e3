#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <limits>
#include <map>

#include "base/error.h"
#include "base/mapped_file.h"
#include "commands.h"
#include "rlx/budget.h"

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
  load.parallel = options.parallel;
  load.threads = options.threads;
  load.quantize_activations = options.activations == "int8";
  load.cache_dtype =
      options.cache_type.empty() ? default_cache_type : find_dtype(options.cache_type);
  load.rope_dtype = find_dtype(options.rope_type);
  load.poison = options.poison;
  if (!options.max_allocation.empty()) {
    load.max_allocation_bytes = parse_bytes(options.max_allocation);
  }
  return load;
}

std::atomic<bool> interrupted{false};

int64_t parse_bytes(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string unit(end, text.data() + text.size());
  static const std::map<std::string, double> kUnits = {{"", 1},
                                                       {"B", 1},
                                                       {"kB", 1e3},
                                                       {"KB", 1e3},
                                                       {"MB", 1e6},
                                                       {"GB", 1e9},
                                                       {"KiB", 1024},
                                                       {"MiB", 1024.0 * 1024},
                                                       {"GiB", 1024.0 * 1024 * 1024}};
  const auto found = kUnits.find(unit);
  const double bytes = found == kUnits.end() ? -1 : value * found->second;
  if (error != std::errc() || !(bytes >= 0) || bytes > 9e18) {
    throw_error(ErrorCode::kInvalidArgument,
                "'{}' is not a number of bytes; something like 2GiB or 500MB is expected.", text);
  }
  return static_cast<int64_t>(bytes);
}

bool parse_logit_bias(const std::string& text, LogitBias& bias) {
  const char* end = text.data() + text.size();
  const auto id = std::from_chars(text.data(), end, bias.token);
  if (id.ec != std::errc() || bias.token < 0 || id.ptr == end || *id.ptr != '=') return false;
  const char* begin = id.ptr + 1;
  if (begin != end && *begin == '+') ++begin;
  const auto value = std::from_chars(begin, end, bias.bias);
  return value.ec == std::errc() && value.ptr == end &&
         bias.bias <= std::numeric_limits<float>::max();
}

LanguageModelOptions fit_budget(const ModelOptions& options, const LanguageModelOptions& load) {
  if (options.budget.empty()) return load;
  const BudgetFit fit = fit_to_budget(
      options.model, load,
      {.budget_bytes = parse_bytes(options.budget),
       .least_context = options.least_context,
       .least_cache_dtype = options.least_cache_type.empty()
                                ? std::nullopt
                                : std::optional(find_dtype(options.least_cache_type))});
  for (const std::string& taken : fit.taken) fmt::print(stderr, "budget    {}\n", taken);
  return fit.options;
}

void write_file(const std::string& path, std::string_view text) {
  const std::string temporary = path + ".part";
  std::FILE* file = std::fopen(temporary.c_str(), "wb");
  bool ok = file != nullptr && std::fwrite(text.data(), 1, text.size(), file) == text.size();
  if (file != nullptr && std::fclose(file) != 0) ok = false;
  if (ok && std::rename(temporary.c_str(), path.c_str()) == 0) return;
  const int cause = errno;
  std::remove(temporary.c_str());
  throw_error(ErrorCode::kIo, "Cannot write the file '{}': {}.", path, std::strerror(cause));
}

std::vector<std::string> read_lines(const std::string& path) {
  std::string text;
  if (path == "-") {
    text = read_stdin();
  } else {
    const MappedFile file(path);
    text.assign(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
  }
  std::vector<std::string> lines;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    std::string line = text.substr(begin, end - begin);
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (!line.empty()) lines.push_back(std::move(line));
    begin = end + 1;
  }
  return lines;
}

void write_text(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
    throw_error(ErrorCode::kIo, "Cannot write to stdout: {}.", std::strerror(errno));
  }
}

std::string read_stdin() {
  std::string text;
  char buffer[1 << 16];
  while (true) {
    // A signal may come just before the wait begins, so the wait is short and the flag looked at
    // again.
    pollfd stdin_event{STDIN_FILENO, POLLIN, 0};
    constexpr int kWaitMilliseconds = 100;
    const int ready = poll(&stdin_event, 1, kWaitMilliseconds);
    if (interrupted.load()) throw Error(ErrorCode::kCancelled, "Stopped while reading stdin.");
    if (ready == 0 || (ready < 0 && errno == EINTR)) continue;
    const ssize_t count = ready < 0 ? -1 : read(STDIN_FILENO, buffer, sizeof(buffer));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw_error(ErrorCode::kIo, "Cannot read stdin: {}.", std::strerror(errno));
    if (count == 0) return text;
    text.append(buffer, static_cast<size_t>(count));
  }
}

}  // namespace rlx::cli

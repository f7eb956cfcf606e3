#include "text/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/error.h"
#include "text/unicode.h"

namespace rlx {
namespace {

// The stack that compiled patterns backtrack on. It grows from the first to the second size; a
// pattern that needs more is run again by the interpreter, which uses the heap.
constexpr size_t kJitStackBytes = 32 * 1024;
constexpr size_t kMaxJitStackBytes = 4 * 1024 * 1024;
constexpr uint32_t kMatchLimit = 100'000'000;
constexpr uint32_t kHeapLimitKib = 256 * 1024;

// What a match needs besides the pattern, one per thread: patterns have few groups, and only the
// whole match is read, so one match block serves all.
struct Scratch {
  pcre2_match_data* data = pcre2_match_data_create(1, nullptr);
  pcre2_match_context* context = pcre2_match_context_create(nullptr);
  pcre2_jit_stack* stack = pcre2_jit_stack_create(kJitStackBytes, kMaxJitStackBytes, nullptr);

  Scratch() {
    if (data == nullptr || context == nullptr) {
      release();
      throw_error(ErrorCode::kOutOfMemory, "No memory is left to match regular expressions.");
    }
    pcre2_set_match_limit(context, kMatchLimit);
    pcre2_set_heap_limit(context, kHeapLimitKib);
    if (stack != nullptr) pcre2_jit_stack_assign(context, nullptr, stack);
  }
  ~Scratch() { release(); }
  void release() {
    pcre2_match_data_free(data);
    pcre2_match_context_free(context);
    pcre2_jit_stack_free(stack);
  }
};

Scratch& scratch() {
  thread_local Scratch instance;
  return instance;
}

}  // namespace

struct Regex::Code {
  pcre2_code* code = nullptr;
  ~Code() { pcre2_code_free(code); }
};

Regex::Regex(std::string_view pattern) : pattern_(pattern), code_(std::make_unique<Code>()) {
  const std::string translated = translate_pattern(pattern);
  int error = 0;
  PCRE2_SIZE error_offset = 0;
  pcre2_compile_context* context = pcre2_compile_context_create(nullptr);
  if (context == nullptr) {
    throw_error(ErrorCode::kOutOfMemory, "No memory is left to compile regular expressions.");
  }
  pcre2_set_newline(context, PCRE2_NEWLINE_LF);
  code_->code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()), translated.size(),
                              PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C,
                              &error, &error_offset, context);
  pcre2_compile_context_free(context);
  if (code_->code == nullptr) {
    PCRE2_UCHAR message[256] = {};
    pcre2_get_error_message(error, message, sizeof(message));
    throw_error(ErrorCode::kUnsupported,
                "The regular expression '{}' cannot be compiled: {} at byte {} of '{}'.", pattern_,
                reinterpret_cast<const char*>(message), error_offset, translated);
  }
  // Where JIT is not available, pcre2_match interprets.
  pcre2_jit_compile(code_->code, PCRE2_JIT_COMPLETE);
}

Regex::~Regex() = default;

bool Regex::find(std::string_view text, size_t start, Match& match) const {
  Scratch& s = scratch();
  const auto subject = reinterpret_cast<PCRE2_SPTR>(text.data());
  int result =
      pcre2_match(code_->code, subject, text.size(), start, PCRE2_NO_UTF_CHECK, s.data, s.context);
  if (result == PCRE2_ERROR_JIT_STACKLIMIT) {
    result = pcre2_match(code_->code, subject, text.size(), start,
                         PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, s.data, s.context);
  }
  if (result == PCRE2_ERROR_NOMATCH) return false;
  if (result < 0) {
    PCRE2_UCHAR message[256] = {};
    pcre2_get_error_message(result, message, sizeof(message));
    throw_error(ErrorCode::kUnsupported,
                "The regular expression '{}' fails on a text of {} bytes: {}.", pattern_,
                text.size(), reinterpret_cast<const char*>(message));
  }
  const PCRE2_SIZE* offsets = pcre2_get_ovector_pointer(s.data);
  match = {offsets[0], offsets[1]};
  // \K can put the start of a match behind its end.
  if (match.begin > match.end) match.begin = match.end;
  return true;
}

size_t Regex::next_character(std::string_view text, size_t at) {
  return at < text.size() ? at + decode_utf8(text, at).length_bytes : at + 1;
}

}  // namespace rlx

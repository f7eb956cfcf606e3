// Runs any bytes as a chat template over a fixed conversation: it throws rlx::Error or writes a
// text, within its bounds.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "rlx/error.h"
#include "templates/json.h"
#include "templates/template.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const rlx::templates::Value context = rlx::templates::read_json(
      R"({"messages": [{"role": "system", "content": "s\u00e9"}, {"role": "user", "content": " u "},
          {"role": "assistant", "content": null, "tool_calls": [{"function": {"name": "f"}}]}],
          "tools": [{"type": "function", "function": {"name": "f", "parameters": {"a": [1, 2.5]}}}],
          "add_generation_prompt": true, "bos_token": "<s>", "eos_token": "</s>"})",
      "context");
  // Small bounds keep each input fast; the paths are the same.
  const rlx::templates::Limits limits = {.max_output_bytes = 1 << 16, .max_work = 200'000};
  try {
    const std::string_view source(reinterpret_cast<const char*>(data), size);
    rlx::templates::Template(source, "fuzz").render(context, 0, limits);
  } catch (const rlx::Error&) {
  }
  return 0;
}

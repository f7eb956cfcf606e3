// Reads any bytes as a tokenizer.json: the reader throws rlx::Error, or makes a tokenizer that
// encodes and decodes a probe. The first byte says how long the probe is, which lies at the end.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "rlx/error.h"
#include "text/tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view input(reinterpret_cast<const char*>(data) + 1, size - 1);
  const size_t probe_size = std::min<size_t>(data[0], input.size());
  const std::string_view probe = input.substr(input.size() - probe_size);
  try {
    const rlx::Tokenizer tokenizer =
        rlx::make_tokenizer_from_json(input.substr(0, input.size() - probe_size), "fuzz.json");
    const auto ids = tokenizer.encode(probe);
    rlx::StreamDecoder stream(tokenizer);
    std::string streamed;
    for (const int32_t id : ids) streamed += stream.push(id);
    streamed += stream.finish();
    tokenizer.decode(ids);
    tokenizer.encode(tokenizer.decode(ids), {.add_special = false, .parse_special = false});
  } catch (const rlx::Error&) {
  }
  return 0;
}

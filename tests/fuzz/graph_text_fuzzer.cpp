// Reads any bytes as the text form of a graph: what is read must print, and read back to the same.

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "ir/text.h"
#include "ops/registry.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  try {
    const rlx::Graph graph = rlx::parse_graph(input, rlx::all_ops());
    const std::string text = to_string(graph);
    std::string again;
    try {
      again = to_string(rlx::parse_graph(text, rlx::all_ops()));
    } catch (const rlx::Error& error) {
      RLX_CHECK(false, "{}\n{}", text, error.what());
    }
    RLX_CHECK(again == text, "{}\n{}", text, again);
  } catch (const rlx::Error&) {
  }
  return 0;
}

// Reads any bytes as the index of a sharded safetensors folder.

#include <cstdint>
#include <span>

#include "base/error.h"
#include "frontends/safetensors/safetensors_header.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    rlx::safetensors::parse_index(std::as_bytes(std::span(data, size)));
  } catch (const rlx::Error&) {
  }
  return 0;
}

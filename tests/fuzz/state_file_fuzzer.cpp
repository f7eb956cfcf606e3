// Reads any bytes as a saved state. Checksums would keep the fuzzer out of the description, so they
// are put right first when the bytes are long enough to have a header.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "api/state_file.h"
#include "rlx/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::vector<std::byte> bytes(size);
  if (size > 0) std::memcpy(bytes.data(), data, size);
  uint32_t header_bytes = 0;
  if (size >= 40) {
    std::memcpy(&header_bytes, bytes.data() + 12, 4);
    const uint64_t file_bytes = size;
    std::memcpy(bytes.data() + 16, &file_bytes, 8);
    if (header_bytes >= 40 && header_bytes <= size) {
      const std::span<const std::byte> all = bytes;
      const uint64_t sum =
          rlx::checksum(all.subspan(32, header_bytes - 32), rlx::checksum(all.first(24)));
      std::memcpy(bytes.data() + 24, &sum, 8);
    }
  }
  try {
    const rlx::StateFile state = rlx::parse_state_file(bytes, "fuzz.state");
    for (const rlx::StatePlace& place : state.places) rlx::checksum(place.bytes);
  } catch (const rlx::Error&) {
  }
  return 0;
}

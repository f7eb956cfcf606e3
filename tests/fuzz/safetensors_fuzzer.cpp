// Opens any bytes as a safetensors file and touches all data that the reader then promises.

#include <cstdint>
#include <span>

#include "base/error.h"
#include "frontends/safetensors/safetensors_file.h"
#include "tensor/storage.h"

namespace {

volatile unsigned checksum = 0;

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const auto bytes = std::as_bytes(std::span(data, size));
    const auto file = rlx::SafetensorsFile::from_bytes(bytes, "fuzz");
    for (const rlx::SafetensorsTensor& tensor : file.tensors()) {
      RLX_CHECK(file.find_tensor(tensor.name) == &tensor);
      // The sanitizer notices if any promised byte is not there.
      for (const std::byte byte : file.data(tensor))
        checksum = checksum + static_cast<unsigned>(byte);
    }
  } catch (const rlx::Error&) {
  }
  return 0;
}

// Opens any bytes as a .npy file; what can be read must print to a header that reads back the same.

#include <cstdint>
#include <span>

#include "base/error.h"
#include "frontends/npy/npy.h"
#include "frontends/npy/npy_header.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const rlx::NpyArray array = rlx::parse_npy(std::as_bytes(std::span(data, size)), "fuzz");
    const auto again = rlx::npy::parse_header(rlx::npy::print_header(array.dtype, array.shape));
    RLX_CHECK(again.dtype == array.dtype && again.shape == array.shape);
  } catch (const rlx::Error&) {
  }
  return 0;
}

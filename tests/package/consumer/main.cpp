// A program that knows only the installed library.
#include <cstdio>
#include <string>

#include "rlx/dtype.h"
#include "rlx/error.h"

int main() {
  rlx::DType dtype;
  if (!rlx::parse_dtype("q8_0", dtype)) return 1;
  std::printf("%s: %d bytes for %d elements\n", std::string(rlx::to_string(dtype)).c_str(),
              static_cast<int>(rlx::bytes_per_block(dtype)),
              static_cast<int>(rlx::elements_per_block(dtype)));
  try {
    throw rlx::Error(rlx::ErrorCode::kNotFound, "There is no such file.");
  } catch (const rlx::Error& error) {
    return error.code() == rlx::ErrorCode::kNotFound ? 0 : 1;
  }
}

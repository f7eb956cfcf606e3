// The header of a .npy file: a Python dictionary of three entries. Private to this folder.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rlx/dtype.h"

namespace rlx::npy {

struct Header {
  DType dtype;
  std::vector<int64_t> shape;
};

// Reads "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }" and blanks. Throws
// kCorruptData or kUnsupported.
Header parse_header(std::string_view text);

// The reverse, without blanks at the end. Throws kUnsupported for a dtype that .npy has no name
// for.
std::string print_header(DType dtype, std::span<const int64_t> shape);

}  // namespace rlx::npy

// NumPy's .npy files, for moving single arrays in and out of the program: inputs and outputs of a
// run, reference values for a comparison.
//
// Read and written: format versions 1 and 2, little endian, row-major, with the element types f2,
// f4, f8, i1 to i8, u1 to u8, b1, c8 and c16. Everything else is refused by name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "rlx/dtype.h"

namespace rlx {

struct NpyArray {
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;   // outermost dimension first; empty for a scalar
  std::vector<std::byte> data;  // row-major; a bool is 0 or 1
};

// Reads the whole file. Throws kNotFound, kIo, kUnsupported (Fortran order, big endian, objects,
// strings, records, other versions) or kCorruptData, with the path in the context.
NpyArray read_npy(const std::string& path);

// The same for bytes in memory; `name` stands for the path in errors.
NpyArray parse_npy(std::span<const std::byte> bytes, const std::string& name);

// Writes a version 1 file (version 2 when the header does not fit). The file appears whole or not
// at all: it is written under another name in the same folder and then renamed. What is there
// already and no file, such as a pipe or /dev/stdout, is written to as it is. Throws
// kInvalidArgument when the size of `data` is not that of the shape, kUnsupported when .npy has no
// such element type (bf16 and the packed formats), kIo when the system refuses.
void write_npy(const std::string& path, DType dtype, std::span<const int64_t> shape,
               std::span<const std::byte> data);
void write_npy(const std::string& path, const NpyArray& array);

}  // namespace rlx

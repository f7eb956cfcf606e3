// Conversion of elements from one dtype to another: the one definition of what a conversion means,
// used for constants, inputs and outputs, weights, and as the reference for cast kernels.
//
// The rules, for `count` elements to `count` elements:
// - To a float: the nearest value, ties to even, in one rounding also where an intermediate type
//   would be convenient; too large becomes infinity, NaN stays NaN.
// - To an integer from an integer: exact, through no float. From a float: rounded to a whole number
//   first, as the options say. A NaN, or a value outside the range, is an error naming the first
//   such element; with `saturate` the nearest bound is taken, and 0 for a NaN.
// - To bool: whether the value is not zero (a NaN is not zero). From bool: 0 or 1, any stored byte
// but
//   0 being true.
// - To complex from a real: the imaginary part is 0. Between complex types: by component. From
// complex
//   to a real is an error, because it would drop the imaginary part; see the pairs below. To bool:
//   whether either part is not zero.
// - From a packed format: decoded to f32, then as above. To a packed format is an error; see
//   encode_row in packed.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rlx/dtype.h"

namespace rlx {

class ThreadPool;

// How a float becomes a whole number.
enum class WholeRounding : uint8_t {
  kNearestEven,
  kTowardZero,  // what a cast means in C, NumPy, PyTorch and ONNX
};

struct ConvertOptions {
  bool saturate = false;
  WholeRounding whole_rounding = WholeRounding::kNearestEven;
  // Shares the work of many elements among these threads, with the same bits and the same errors;
  // nobody else may use the pool meanwhile. Null: the caller's thread alone.
  ThreadPool* pool = nullptr;
};

// Converts `count` elements. Neither buffer needs alignment, and they must not overlap. Throws
// kOutOfRange (a value that does not fit; the destination is then partly written), kUnsupported
// (complex to real, to packed) or kInvalidArgument (a packed source that is not whole blocks).
void convert_elements(DType from, const std::byte* source, DType to, std::byte* destination,
                      int64_t count, const ConvertOptions& options = {});

// f32 for c64, f64 for c128. Precondition: the dtype is complex.
DType component_dtype(DType complex_dtype);

// The same between `count` complex elements and 2 * count reals: real part, imaginary part, and so
// on. Throws kInvalidArgument when the dtypes are not one complex and one real.
void convert_complex_to_pairs(DType from, const std::byte* source, DType to, std::byte* destination,
                              int64_t count, const ConvertOptions& options = {});
void convert_pairs_to_complex(DType from, const std::byte* source, DType to, std::byte* destination,
                              int64_t count, const ConvertOptions& options = {});

}  // namespace rlx

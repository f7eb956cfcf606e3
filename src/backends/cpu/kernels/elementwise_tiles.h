// The tile operations that elementwise programs are made of: loops over a few hundred elements that
// stay in the first-level cache. A tile holds one of four compute types; loads convert any unpacked
// dtype to it and stores convert back.
#pragma once

#include <cstdint>

#include "ir/formula.h"
#include "rlx/dtype.h"

namespace rlx::cpu {

// f32 serves f32, f16, bf16 and small integers among floats; i64 all integers and bool but u64.
enum class ComputeType : uint8_t { kF32, kF64, kI64, kU64 };

inline constexpr int64_t kTileBytes = 2048;
inline int64_t element_bytes(ComputeType type) { return type == ComputeType::kF32 ? 4 : 8; }
inline int64_t elements_per_tile(ComputeType type) { return kTileBytes / element_bytes(type); }
// The dtype whose storage is the compute type's.
DType storage_dtype(ComputeType type);
// The type that holds every value of the dtype.
ComputeType exact_compute_type(DType dtype);

// out[i] = op(a[i], b[i], c[i]) for i in [0, n). `out` may be one of the arguments; arguments that
// the op does not have are not read.
using TileFunction = void (*)(const void* a, const void* b, const void* c, void* out, int64_t n);
// Null when the op has no meaning on the type (exp on integers).
TileFunction find_tile_function(ComputeType type, FormulaOp op);

// out[i] = from[i * stride] converted to the compute type. A stride of 0 repeats one element.
using TileLoad = void (*)(const void* from, int64_t stride, void* out, int64_t n);
TileLoad find_tile_load(DType from, ComputeType type);

// to[i] = tile[i] converted: floats round to the nearest even; a float goes to an integer toward
// zero, stops at the ends, and NaN gives 0; an integer wraps; to bool, nonzero is true.
using TileStore = void (*)(const void* tile, void* to, int64_t n);
TileStore find_tile_store(ComputeType type, DType to);

// True for the unpacked, real dtypes, which alone the functions above accept.
bool is_tile_dtype(DType dtype);

}  // namespace rlx::cpu

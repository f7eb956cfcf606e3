#include "backends/cpu/kernels/elementwise_tiles.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "backends/cpu/kernels/elementwise_tiles_f32.h"
#include "base/error.h"
#include "tensor/half.h"

namespace rlx::cpu {
namespace {

// ---- Operations on f64, i64 and u64: the functions of ir/formula.h in a loop.

template <typename T, auto function, int arity>
void run_tile(const void* pa, const void* pb, const void* pc, void* pout, int64_t n) {
  const T* a = static_cast<const T*>(pa);
  [[maybe_unused]] const T* b = static_cast<const T*>(pb);
  [[maybe_unused]] const T* c = static_cast<const T*>(pc);
  T* out = static_cast<T*>(pout);
  for (int64_t i = 0; i < n; ++i) {
    if constexpr (arity == 1) {
      out[i] = function(a[i]);
    } else if constexpr (arity == 2) {
      out[i] = function(a[i], b[i]);
    } else {
      out[i] = function(a[i], b[i], c[i]);
    }
  }
}

template <typename T>
TileFunction find_plain_function(FormulaOp op) {
  switch (op) {
#define RLX_TILE_CASE(name, arity) \
  case FormulaOp::name:            \
    return run_tile<T, [](auto... x) { return fn::name<T>(x...); }, arity>;
    RLX_TILE_CASE(neg, 1)
    RLX_TILE_CASE(abs, 1)
    RLX_TILE_CASE(sign, 1)
    RLX_TILE_CASE(floor, 1)
    RLX_TILE_CASE(ceil, 1)
    RLX_TILE_CASE(round, 1)
    RLX_TILE_CASE(trunc, 1)
    RLX_TILE_CASE(logical_not, 1)
    RLX_TILE_CASE(add, 2)
    RLX_TILE_CASE(sub, 2)
    RLX_TILE_CASE(mul, 2)
    RLX_TILE_CASE(div, 2)
    RLX_TILE_CASE(rem, 2)
    RLX_TILE_CASE(pow, 2)
    RLX_TILE_CASE(min, 2)
    RLX_TILE_CASE(max, 2)
    RLX_TILE_CASE(equal, 2)
    RLX_TILE_CASE(less, 2)
    RLX_TILE_CASE(less_equal, 2)
    RLX_TILE_CASE(logical_and, 2)
    RLX_TILE_CASE(logical_or, 2)
    RLX_TILE_CASE(logical_xor, 2)
    RLX_TILE_CASE(select, 3)
    default:
      break;
  }
  if constexpr (std::is_floating_point_v<T>) {
    switch (op) {
      RLX_TILE_CASE(sqrt, 1)
      RLX_TILE_CASE(exp, 1)
      RLX_TILE_CASE(log, 1)
      RLX_TILE_CASE(sin, 1)
      RLX_TILE_CASE(cos, 1)
      RLX_TILE_CASE(tan, 1)
      RLX_TILE_CASE(tanh, 1)
      RLX_TILE_CASE(erf, 1)
      default:
        break;
    }
  }
#undef RLX_TILE_CASE
  return nullptr;
}

// ---- Conversions.

// Storage types that C++ has no arithmetic for.
struct F16 {
  uint16_t bits;
};
struct BF16 {
  uint16_t bits;
};
struct Bool {
  uint8_t byte;
};

// Rounds to f32 so that a second rounding to fewer bits gives what one rounding would: when the
// value lies between two f32, takes the one with the odd last bit.
template <typename T>
float round_to_odd(T value) {
  float nearest = static_cast<float>(value);
  bool is_exact = false;
  bool is_above = false;  // the nearest is further from zero than the value
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(value)) return nearest;
    if (std::isinf(nearest) && !std::isinf(value)) return nearest;
    is_exact = static_cast<double>(nearest) == value;
    is_above = std::abs(static_cast<double>(nearest)) > std::abs(value);
  } else {
    // 2^63 and 2^64 do not fit back, and lie above every value.
    const double wide = static_cast<double>(nearest);
    const double limit = std::is_signed_v<T> ? 0x1p63 : 0x1p64;
    if (wide >= limit) {
      is_above = true;
    } else {
      const T back = static_cast<T>(nearest);
      is_exact = back == value;
      is_above = value < 0 ? back < value : back > value;
    }
  }
  if (is_exact) return nearest;
  uint32_t bits = std::bit_cast<uint32_t>(nearest);
  if (is_above) --bits;  // toward zero
  return std::bit_cast<float>(bits | 1u);
}

template <typename To, typename From>
To float_to_integer(From value) {
  using Limits = std::numeric_limits<To>;
  if (std::isnan(value)) return 0;
  if (value <= static_cast<From>(Limits::lowest())) return Limits::lowest();
  // max + 1 is a power of two, exact in every float; values at or above it do not fit.
  const From limit = static_cast<From>(0x1p1) * static_cast<From>(Limits::max() / 2 + 1);
  if (value >= limit) return Limits::max();
  return static_cast<To>(value);
}

// From a compute type (or a storage type) to another.
template <typename To, typename From>
To convert(From value) {
  if constexpr (std::is_same_v<From, F16>) {
    return convert<To>(f16_to_f32(value.bits));
  } else if constexpr (std::is_same_v<From, BF16>) {
    return convert<To>(bf16_to_f32(value.bits));
  } else if constexpr (std::is_same_v<From, Bool>) {
    return static_cast<To>(value.byte != 0 ? 1 : 0);
  } else if constexpr (std::is_same_v<To, Bool>) {
    return Bool{static_cast<uint8_t>(value != 0 ? 1 : 0)};
  } else if constexpr (std::is_same_v<To, F16>) {
    if constexpr (std::is_same_v<From, float>) {
      return F16{f32_to_f16(value)};
    } else {
      return F16{f32_to_f16(round_to_odd(value))};
    }
  } else if constexpr (std::is_same_v<To, BF16>) {
    if constexpr (std::is_same_v<From, float>) {
      return BF16{f32_to_bf16(value)};
    } else {
      return BF16{f32_to_bf16(round_to_odd(value))};
    }
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    return float_to_integer<To>(value);
  } else {
    return static_cast<To>(value);
  }
}

template <typename From, typename To>
void load_tile(const void* pfrom, int64_t stride, void* pout, int64_t n) {
  const From* from = static_cast<const From*>(pfrom);
  To* out = static_cast<To*>(pout);
  if (stride == 0) {
    const To value = convert<To>(*from);
    for (int64_t i = 0; i < n; ++i) out[i] = value;
  } else if (stride == 1) {
    if constexpr (std::is_same_v<From, To>) {
      std::memcpy(out, from, static_cast<size_t>(n) * sizeof(To));
      return;
    } else if constexpr (std::is_same_v<To, float> && std::is_same_v<From, F16>) {
      f32_tiles().widen_f16(static_cast<const uint16_t*>(pfrom), out, n);
      return;
    } else if constexpr (std::is_same_v<To, float> && std::is_same_v<From, BF16>) {
      f32_tiles().widen_bf16(static_cast<const uint16_t*>(pfrom), out, n);
      return;
    } else {
      for (int64_t i = 0; i < n; ++i) out[i] = convert<To>(from[i]);
    }
  } else {
    for (int64_t i = 0; i < n; ++i) out[i] = convert<To>(from[i * stride]);
  }
}

template <typename From, typename To>
void store_tile(const void* ptile, void* pto, int64_t n) {
  const From* tile = static_cast<const From*>(ptile);
  To* to = static_cast<To*>(pto);
  if constexpr (std::is_same_v<From, To>) {
    std::memmove(to, tile, static_cast<size_t>(n) * sizeof(To));
  } else if constexpr (std::is_same_v<From, float> && std::is_same_v<To, F16>) {
    f32_tiles().narrow_f16(tile, static_cast<uint16_t*>(pto), n);
  } else if constexpr (std::is_same_v<From, float> && std::is_same_v<To, BF16>) {
    f32_tiles().narrow_bf16(tile, static_cast<uint16_t*>(pto), n);
  } else {
    for (int64_t i = 0; i < n; ++i) to[i] = convert<To>(tile[i]);
  }
}

template <typename To>
TileLoad find_load_to(DType from) {
  switch (from) {
    case DType::kF64:
      return load_tile<double, To>;
    case DType::kF32:
      return load_tile<float, To>;
    case DType::kF16:
      return load_tile<F16, To>;
    case DType::kBF16:
      return load_tile<BF16, To>;
    case DType::kI64:
      return load_tile<int64_t, To>;
    case DType::kI32:
      return load_tile<int32_t, To>;
    case DType::kI16:
      return load_tile<int16_t, To>;
    case DType::kI8:
      return load_tile<int8_t, To>;
    case DType::kU64:
      return load_tile<uint64_t, To>;
    case DType::kU32:
      return load_tile<uint32_t, To>;
    case DType::kU16:
      return load_tile<uint16_t, To>;
    case DType::kU8:
      return load_tile<uint8_t, To>;
    case DType::kBool:
      return load_tile<Bool, To>;
    default:
      return nullptr;
  }
}

template <typename From>
TileStore find_store_from(DType to) {
  switch (to) {
    case DType::kF64:
      return store_tile<From, double>;
    case DType::kF32:
      return store_tile<From, float>;
    case DType::kF16:
      return store_tile<From, F16>;
    case DType::kBF16:
      return store_tile<From, BF16>;
    case DType::kI64:
      return store_tile<From, int64_t>;
    case DType::kI32:
      return store_tile<From, int32_t>;
    case DType::kI16:
      return store_tile<From, int16_t>;
    case DType::kI8:
      return store_tile<From, int8_t>;
    case DType::kU64:
      return store_tile<From, uint64_t>;
    case DType::kU32:
      return store_tile<From, uint32_t>;
    case DType::kU16:
      return store_tile<From, uint16_t>;
    case DType::kU8:
      return store_tile<From, uint8_t>;
    case DType::kBool:
      return store_tile<From, Bool>;
    default:
      return nullptr;
  }
}

}  // namespace

DType storage_dtype(ComputeType type) {
  switch (type) {
    case ComputeType::kF32:
      return DType::kF32;
    case ComputeType::kF64:
      return DType::kF64;
    case ComputeType::kI64:
      return DType::kI64;
    case ComputeType::kU64:
      break;
  }
  return DType::kU64;
}

ComputeType exact_compute_type(DType dtype) {
  if (dtype == DType::kF64) return ComputeType::kF64;
  if (is_float(dtype)) return ComputeType::kF32;
  return dtype == DType::kU64 ? ComputeType::kU64 : ComputeType::kI64;
}

bool is_tile_dtype(DType dtype) { return dtype <= DType::kBool; }

TileFunction find_tile_function(ComputeType type, FormulaOp op) {
  switch (type) {
    case ComputeType::kF32:
      return f32_tiles().functions[static_cast<size_t>(op)];
    case ComputeType::kF64:
      return find_plain_function<double>(op);
    case ComputeType::kI64:
      return find_plain_function<int64_t>(op);
    case ComputeType::kU64:
      break;
  }
  return find_plain_function<uint64_t>(op);
}

TileLoad find_tile_load(DType from, ComputeType type) {
  switch (type) {
    case ComputeType::kF32:
      return find_load_to<float>(from);
    case ComputeType::kF64:
      return find_load_to<double>(from);
    case ComputeType::kI64:
      return find_load_to<int64_t>(from);
    case ComputeType::kU64:
      break;
  }
  return find_load_to<uint64_t>(from);
}

TileStore find_tile_store(ComputeType type, DType to) {
  switch (type) {
    case ComputeType::kF32:
      return find_store_from<float>(to);
    case ComputeType::kF64:
      return find_store_from<double>(to);
    case ComputeType::kI64:
      return find_store_from<int64_t>(to);
    case ComputeType::kU64:
      break;
  }
  return find_store_from<uint64_t>(to);
}

}  // namespace rlx::cpu

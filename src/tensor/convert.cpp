#include "tensor/convert.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <concepts>
#include <cstring>
#include <exception>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "base/error.h"
#include "base/thread_pool.h"
#include "tensor/half.h"
#include "tensor/packed.h"
#include "tensor/storage.h"

namespace rlx {
namespace {

// The stored form of the scalars that have no C++ type of their own.
struct F16 {
  uint16_t bits;
};
struct BF16 {
  uint16_t bits;
};
struct Bool {
  uint8_t byte;
};
template <typename Component>
struct Complex {
  Component real;
  Component imaginary;
};

template <typename T>
inline constexpr bool kIsComplex =
    std::is_same_v<T, Complex<float>> || std::is_same_v<T, Complex<double>>;

// Calls `body` with a value of the stored type of a scalar dtype.
template <typename Body>
void visit_scalar(DType dtype, Body&& body) {
  switch (dtype) {
    case DType::kF64:
      return body(double{});
    case DType::kF32:
      return body(float{});
    case DType::kF16:
      return body(F16{});
    case DType::kBF16:
      return body(BF16{});
    case DType::kI64:
      return body(int64_t{});
    case DType::kI32:
      return body(int32_t{});
    case DType::kI16:
      return body(int16_t{});
    case DType::kI8:
      return body(int8_t{});
    case DType::kU64:
      return body(uint64_t{});
    case DType::kU32:
      return body(uint32_t{});
    case DType::kU16:
      return body(uint16_t{});
    case DType::kU8:
      return body(uint8_t{});
    case DType::kBool:
      return body(Bool{});
    case DType::kC64:
      return body(Complex<float>{});
    case DType::kC128:
      return body(Complex<double>{});
    default:
      RLX_CHECK(false, "{} is not a scalar dtype.", to_string(dtype));
  }
}

// The value as a C++ number that holds it exactly: float, double, an integer, or bool.
inline float widen(F16 value) { return f16_to_f32(value.bits); }
inline float widen(BF16 value) { return bf16_to_f32(value.bits); }
inline bool widen(Bool value) { return value.byte != 0; }
template <typename T>
requires std::is_arithmetic_v<T> T widen(T value) { return value; }

// The f32 that a double rounds to, except that an inexact result always has an odd last bit.
// Rounding it again to a type with at least two bits less gives the same as rounding the double
// once.
inline float round_to_odd(double value) {
  const auto nearest = static_cast<float>(value);
  const auto back = static_cast<double>(nearest);
  const auto bits = std::bit_cast<uint32_t>(nearest);
  if (back == value || value != value || (bits & 1u) != 0) return nearest;
  // An even result: the odd neighbour lies on the other side of the value.
  return std::bit_cast<float>(std::fabs(back) > std::fabs(value) ? bits - 1 : bits + 1);
}

// An integer as a double that rounds to f16 and bf16 as the integer would: beyond 48 bits the low
// bits only matter as "some are set".
template <std::integral T>
double to_sticky_double(T value) {
  if constexpr (sizeof(T) <= 4) {
    return static_cast<double>(value);
  } else {
    const bool is_negative = value < 0;
    uint64_t magnitude = static_cast<uint64_t>(value);
    if (is_negative) magnitude = 0 - magnitude;
    double result = static_cast<double>(magnitude);
    if (magnitude >> 48 != 0) {
      const uint64_t sticky = (magnitude & 0xffffu) != 0 ? 1 : 0;
      result = static_cast<double>((magnitude >> 16) | sticky) * 65536.0;
    }
    return is_negative ? -result : result;
  }
}

template <typename T>
float to_odd_f32(T value) {
  if constexpr (std::is_same_v<T, float>) return value;
  if constexpr (std::is_same_v<T, double>) return round_to_odd(value);
  if constexpr (std::is_integral_v<T>) return round_to_odd(to_sticky_double(value));
}

// A whole number, still as a double. Below 2^52, adding 2^52 leaves no room for a fraction, so the
// addition rounds to nearest even; this vectorises on every machine, where a call of rint does not.
inline double round_to_whole(double value, WholeRounding rounding) {
  if (rounding == WholeRounding::kTowardZero) return std::trunc(value);
  const double shift = std::copysign(0x1p52, value);
  return std::fabs(value) < 0x1p52 ? (value + shift) - shift : value;
}

// Stores the value nearest to `value` in `result` and tells whether it fits.
template <std::integral To, typename From>
bool narrow_to_integer(From value, WholeRounding rounding, To& result) {
  using Limits = std::numeric_limits<To>;
  if constexpr (std::is_same_v<From, bool>) {
    result = value ? 1 : 0;
    return true;
  } else if constexpr (std::is_integral_v<From>) {
    const bool fits = std::in_range<To>(value);
    result = fits ? static_cast<To>(value) : (value < 0 ? Limits::min() : Limits::max());
    return fits;
  } else {
    constexpr auto kLeast = static_cast<double>(Limits::min());
    constexpr double kEnd = 2.0 * static_cast<double>(uint64_t{1} << (Limits::digits - 1));
    const double whole = round_to_whole(static_cast<double>(value), rounding);
    const bool fits = whole >= kLeast && whole < kEnd;
    if (fits) {
      result = static_cast<To>(whole);
    } else {
      result = whole < kLeast ? Limits::min() : (whole >= kEnd ? Limits::max() : To{0});
    }
    return fits;
  }
}

// One element; false when it does not fit, with the saturated value stored.
template <typename To, typename From>
bool convert_value(From source, WholeRounding rounding, To& result) {
  if constexpr (kIsComplex<To>) {
    using Component = decltype(To::real);
    if constexpr (kIsComplex<From>) {
      result = {static_cast<Component>(source.real), static_cast<Component>(source.imaginary)};
    } else {
      result = {static_cast<Component>(widen(source)), Component{0}};
    }
  } else if constexpr (kIsComplex<From>) {
    static_assert(std::is_same_v<To, Bool>);
    result.byte = source.real != 0 || source.imaginary != 0 ? 1 : 0;
  } else if constexpr (std::is_same_v<To, Bool>) {
    result.byte = widen(source) != 0 ? 1 : 0;
  } else if constexpr (std::is_integral_v<To>) {
    return narrow_to_integer(widen(source), rounding, result);
  } else if constexpr (std::is_same_v<To, F16>) {
    result.bits = f32_to_f16(to_odd_f32(widen(source)));
  } else if constexpr (std::is_same_v<To, BF16>) {
    result.bits = f32_to_bf16(to_odd_f32(widen(source)));
  } else {
    result = static_cast<To>(widen(source));
  }
  return true;
}

template <typename T>
T load(const std::byte* bytes, int64_t index) {
  T value;
  std::memcpy(&value, bytes + index * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return value;
}

// Converts all, then looks for the culprit only if there is one, so that the loop has no way out
// and can be vectorised. `first_index` is that of source[0], for the message.
template <typename To, typename From>
void convert_all(const std::byte* source, DType to, std::byte* destination, int64_t count,
                 int64_t first_index, const ConvertOptions& options) {
  const WholeRounding rounding = options.whole_rounding;
  bool all_fit = true;
  for (int64_t i = 0; i < count; ++i) {
    To result;
    all_fit &= convert_value(load<From>(source, i), rounding, result);
    std::memcpy(destination + i * static_cast<int64_t>(sizeof(To)), &result, sizeof(To));
  }
  if constexpr (std::is_integral_v<To> && !kIsComplex<From>) {
    if (all_fit || options.saturate) return;
    for (int64_t i = 0; i < count; ++i) {
      To ignored;
      const From value = load<From>(source, i);
      if (convert_value(value, rounding, ignored)) continue;
      throw_error(ErrorCode::kOutOfRange,
                  "Element {} is {}, which does not fit in {}: expected {} to {}.", first_index + i,
                  widen(value), to_string(to), std::numeric_limits<To>::min(),
                  std::numeric_limits<To>::max());
    }
  }
}

void convert_scalars(DType from, const std::byte* source, DType to, std::byte* destination,
                     int64_t count, int64_t first_index, const ConvertOptions& options) {
  if (from == to && from != DType::kBool) {
    if (count > 0) {
      std::memcpy(destination, source, static_cast<size_t>(storage_bytes(from, count)));
    }
    return;
  }
  visit_scalar(from, [&](auto from_value) {
    using From = decltype(from_value);
    visit_scalar(to, [&](auto to_value) {
      using To = decltype(to_value);
      if constexpr (kIsComplex<From> && !kIsComplex<To> && !std::is_same_v<To, Bool>) {
        throw_error(ErrorCode::kUnsupported,
                    "A conversion from {} to {} would drop the imaginary part; convert to pairs.",
                    to_string(from), to_string(to));
      } else {
        convert_all<To, From>(source, to, destination, count, first_index, options);
      }
    });
  });
}

constexpr int64_t kChunk = 256;  // elements: whole blocks of every packed format

// Elements [begin, end) of buffers that begin at element 0.
void convert_range(DType from, const std::byte* source, DType to, std::byte* destination,
                   const Range& range, const ConvertOptions& options) {
  const auto place = [](auto* bytes, DType dtype, int64_t element) {
    return bytes + storage_bytes(dtype, element);
  };
  if (!is_packed(from)) {
    convert_scalars(from, place(source, from, range.begin), to, place(destination, to, range.begin),
                    range.end - range.begin, range.begin, options);
    return;
  }
  float values[kChunk];
  for (int64_t first = range.begin; first < range.end; first += kChunk) {
    const int64_t chunk = std::min(kChunk, range.end - first);
    decode_row(from, place(source, from, first), chunk, values);
    convert_scalars(DType::kF32, reinterpret_cast<const std::byte*>(values), to,
                    place(destination, to, first), chunk, first, options);
  }
}

void check_pair_dtypes(DType complex_dtype, DType real_dtype) {
  if (!is_complex(complex_dtype) || is_complex(real_dtype) || is_packed(real_dtype)) {
    throw_error(ErrorCode::kInvalidArgument,
                "Pairs need one complex and one real dtype, but were given {} and {}.",
                to_string(complex_dtype), to_string(real_dtype));
  }
}

}  // namespace

void convert_elements(DType from, const std::byte* source, DType to, std::byte* destination,
                      int64_t count, const ConvertOptions& options) {
  storage_bytes(from, count);  // a count that is negative or not whole blocks is an error
  if (is_packed(to)) {
    throw_error(ErrorCode::kUnsupported, "There is no conversion from {} to the packed format {}.",
                to_string(from), to_string(to));
  }
  constexpr int64_t kWorthSharing = 1 << 16;
  if (options.pool == nullptr || count < kWorthSharing) {
    convert_range(from, source, to, destination, {0, count}, options);
    return;
  }
  std::vector<std::exception_ptr> errors(static_cast<size_t>(options.pool->num_threads()));
  options.pool->run([&](int thread) {
    try {
      convert_range(from, source, to, destination,
                    split_range(count, thread, options.pool->num_threads(), kChunk), options);
    } catch (...) {
      errors[static_cast<size_t>(thread)] = std::current_exception();
    }
  });
  // The first thread has the first elements.
  for (const std::exception_ptr& error : errors) {
    if (error != nullptr) std::rethrow_exception(error);
  }
}

DType component_dtype(DType complex_dtype) {
  RLX_CHECK(is_complex(complex_dtype), "{} is not complex.", to_string(complex_dtype));
  return complex_dtype == DType::kC64 ? DType::kF32 : DType::kF64;
}

void convert_complex_to_pairs(DType from, const std::byte* source, DType to, std::byte* destination,
                              int64_t count, const ConvertOptions& options) {
  check_pair_dtypes(from, to);
  convert_elements(component_dtype(from), source, to, destination, checked_mul(count, 2), options);
}

void convert_pairs_to_complex(DType from, const std::byte* source, DType to, std::byte* destination,
                              int64_t count, const ConvertOptions& options) {
  check_pair_dtypes(to, from);
  convert_elements(from, source, component_dtype(to), destination, checked_mul(count, 2), options);
}

}  // namespace rlx

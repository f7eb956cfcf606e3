// The typed access to metadata, and its printed form.

#include <fmt/format.h>

#include "base/error.h"
#include "base/printable_text.h"
#include "frontends/gguf/gguf_file.h"
#include "frontends/gguf/gguf_reader.h"

namespace rlx {
namespace {

using gguf::Cursor;
using gguf::load;

bool is_integer_type(GgufType type) {
  switch (type) {
    case GgufType::kU8:
    case GgufType::kI8:
    case GgufType::kU16:
    case GgufType::kI16:
    case GgufType::kU32:
    case GgufType::kI32:
    case GgufType::kU64:
    case GgufType::kI64:
      return true;
    default:
      return false;
  }
}

bool is_float_type(GgufType type) { return type == GgufType::kF32 || type == GgufType::kF64; }

int64_t load_int(GgufType type, const std::byte* bytes) {
  switch (type) {
    case GgufType::kU8:
      return load<uint8_t>(bytes);
    case GgufType::kI8:
      return load<int8_t>(bytes);
    case GgufType::kU16:
      return load<uint16_t>(bytes);
    case GgufType::kI16:
      return load<int16_t>(bytes);
    case GgufType::kU32:
      return load<uint32_t>(bytes);
    case GgufType::kI32:
      return load<int32_t>(bytes);
    case GgufType::kI64:
      return load<int64_t>(bytes);
    default:
      break;
  }
  const auto wide = load<uint64_t>(bytes);
  if (wide > static_cast<uint64_t>(INT64_MAX)) {
    throw_error(ErrorCode::kOutOfRange, "The value is {}, but expected at most {}.", wide,
                INT64_MAX);
  }
  return static_cast<int64_t>(wide);
}

double load_float(GgufType type, const std::byte* bytes) {
  if (type == GgufType::kF32) return static_cast<double>(load<float>(bytes));
  return load<double>(bytes);
}

bool load_bool(const std::byte* bytes) {
  const auto value = load<uint8_t>(bytes);
  if (value > 1) {
    throw_error(ErrorCode::kCorruptData, "The value of a bool is {}, but expected 0 or 1.", value);
  }
  return value == 1;
}

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string type_of(const GgufValue& value) {
  if (value.type != GgufType::kArray) return std::string(to_string(value.type));
  return fmt::format("array of {}", to_string(value.element_type));
}

std::string printable_scalar(GgufType type, const std::byte* bytes) {
  if (type == GgufType::kU64) return fmt::format("{}", load<uint64_t>(bytes));
  if (is_integer_type(type)) return fmt::format("{}", load_int(type, bytes));
  if (type == GgufType::kF32) return fmt::format("{}", load<float>(bytes));
  if (type == GgufType::kF64) return fmt::format("{}", load<double>(bytes));
  return load<uint8_t>(bytes) != 0 ? "true" : "false";
}

}  // namespace

std::string_view to_string(GgufType type) {
  switch (type) {
    case GgufType::kU8:
      return "u8";
    case GgufType::kI8:
      return "i8";
    case GgufType::kU16:
      return "u16";
    case GgufType::kI16:
      return "i16";
    case GgufType::kU32:
      return "u32";
    case GgufType::kI32:
      return "i32";
    case GgufType::kF32:
      return "f32";
    case GgufType::kBool:
      return "bool";
    case GgufType::kString:
      return "string";
    case GgufType::kArray:
      return "array";
    case GgufType::kU64:
      return "u64";
    case GgufType::kI64:
      return "i64";
    case GgufType::kF64:
      return "f64";
  }
  return "unknown";
}

std::string printable_value(const GgufValue& value) {
  constexpr size_t kMaxTextBytes = 60;
  constexpr int64_t kMaxElements = 4;
  if (value.type == GgufType::kString) return printable_text(as_text(value.payload), kMaxTextBytes);
  if (value.type != GgufType::kArray) return printable_scalar(value.type, value.payload.data());

  std::string result = fmt::format("{}[{}] [", to_string(value.element_type), value.count);
  Cursor cursor(value.payload);
  const size_t element_bytes = gguf::fixed_size_bytes(value.element_type);
  for (int64_t i = 0; i < value.count; ++i) {
    if (i > 0) result += ", ";
    if (i == kMaxElements || value.element_type == GgufType::kArray) {
      result += "...";
      break;
    }
    if (value.element_type == GgufType::kString) {
      result += printable_text(cursor.read_string("a string"), 20);
    } else {
      result += printable_scalar(value.element_type, cursor.take(element_bytes, "a value").data());
    }
  }
  return result + "]";
}

void GgufFile::throw_wrong_type(const GgufValue& value, std::string_view expected) const {
  throw_error(ErrorCode::kInvalidArgument, "{}: the key {} has the type {}, but expected {}.",
              path_, printable_text(value.key), type_of(value), expected);
}

const GgufValue* GgufFile::find_array(std::string_view key, std::string_view expected) const {
  const GgufValue* value = find(key);
  if (value != nullptr && value->type != GgufType::kArray) throw_wrong_type(*value, expected);
  return value;
}

std::optional<int64_t> GgufFile::find_int(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!is_integer_type(value->type)) throw_wrong_type(*value, "an integer");
  return with_context("key " + printable_text(key),
                      [&] { return load_int(value->type, value->payload.data()); });
}

std::optional<double> GgufFile::find_float(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!is_float_type(value->type)) throw_wrong_type(*value, "f32 or f64");
  return load_float(value->type, value->payload.data());
}

std::optional<bool> GgufFile::find_bool(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (value->type != GgufType::kBool) throw_wrong_type(*value, "bool");
  return with_context(path_ + ": key " + printable_text(key),
                      [&] { return load_bool(value->payload.data()); });
}

std::optional<std::string_view> GgufFile::find_string(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (value->type != GgufType::kString) throw_wrong_type(*value, "string");
  return as_text(value->payload);
}

std::optional<std::vector<int64_t>> GgufFile::find_int_array(std::string_view key) const {
  constexpr std::string_view kExpected = "array of integers";
  const GgufValue* value = find_array(key, kExpected);
  if (value == nullptr) return std::nullopt;
  if (!is_integer_type(value->element_type)) throw_wrong_type(*value, kExpected);
  return with_context(path_ + ": key " + printable_text(key), [&] {
    std::vector<int64_t> result;
    result.reserve(static_cast<size_t>(value->count));
    const size_t step = gguf::fixed_size_bytes(value->element_type);
    for (size_t at = 0; at < value->payload.size(); at += step) {
      result.push_back(load_int(value->element_type, value->payload.data() + at));
    }
    return result;
  });
}

std::optional<std::vector<float>> GgufFile::find_float_array(std::string_view key) const {
  constexpr std::string_view kExpected = "array of f32 or f64";
  const GgufValue* value = find_array(key, kExpected);
  if (value == nullptr) return std::nullopt;
  if (!is_float_type(value->element_type)) throw_wrong_type(*value, kExpected);
  std::vector<float> result;
  result.reserve(static_cast<size_t>(value->count));
  const size_t step = gguf::fixed_size_bytes(value->element_type);
  for (size_t at = 0; at < value->payload.size(); at += step) {
    const double element = load_float(value->element_type, value->payload.data() + at);
    result.push_back(static_cast<float>(element));
  }
  return result;
}

std::optional<std::vector<bool>> GgufFile::find_bool_array(std::string_view key) const {
  constexpr std::string_view kExpected = "array of bool";
  const GgufValue* value = find_array(key, kExpected);
  if (value == nullptr) return std::nullopt;
  if (value->element_type != GgufType::kBool) throw_wrong_type(*value, kExpected);
  return with_context(path_ + ": key " + printable_text(key), [&] {
    std::vector<bool> result;
    result.reserve(static_cast<size_t>(value->count));
    for (const std::byte& element : value->payload) result.push_back(load_bool(&element));
    return result;
  });
}

std::optional<std::vector<std::string_view>> GgufFile::find_string_array(
    std::string_view key) const {
  constexpr std::string_view kExpected = "array of string";
  const GgufValue* value = find_array(key, kExpected);
  if (value == nullptr) return std::nullopt;
  if (value->element_type != GgufType::kString) throw_wrong_type(*value, kExpected);
  std::vector<std::string_view> result;
  result.reserve(static_cast<size_t>(value->count));
  Cursor cursor(value->payload);
  for (int64_t i = 0; i < value->count; ++i) result.push_back(cursor.read_string("a string"));
  return result;
}

}  // namespace rlx

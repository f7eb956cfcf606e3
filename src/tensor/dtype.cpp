#include "rlx/dtype.h"

#include <array>

#include "base/checked.h"
#include "base/error.h"
#include "tensor/storage.h"

namespace rlx {
namespace {

struct DTypeFacts {
  DType dtype;
  std::string_view name;
  int16_t elements_per_block;
  int16_t bytes_per_block;
};

// In the order of the enum, which `is_in_enum_order` holds at compile time.
constexpr std::array<DTypeFacts, kNumDTypes> kFacts = {{
    {DType::kF64, "f64", 1, 8},
    {DType::kF32, "f32", 1, 4},
    {DType::kF16, "f16", 1, 2},
    {DType::kBF16, "bf16", 1, 2},
    {DType::kI64, "i64", 1, 8},
    {DType::kI32, "i32", 1, 4},
    {DType::kI16, "i16", 1, 2},
    {DType::kI8, "i8", 1, 1},
    {DType::kU64, "u64", 1, 8},
    {DType::kU32, "u32", 1, 4},
    {DType::kU16, "u16", 1, 2},
    {DType::kU8, "u8", 1, 1},
    {DType::kBool, "bool", 1, 1},
    {DType::kC64, "c64", 1, 8},
    {DType::kC128, "c128", 1, 16},
    {DType::kQ4_0, "q4_0", 32, 18},
    {DType::kQ4_1, "q4_1", 32, 20},
    {DType::kQ5_0, "q5_0", 32, 22},
    {DType::kQ5_1, "q5_1", 32, 24},
    {DType::kQ8_0, "q8_0", 32, 34},
    {DType::kQ8_1, "q8_1", 32, 36},
    {DType::kQ2_K, "q2_k", 256, 84},
    {DType::kQ3_K, "q3_k", 256, 110},
    {DType::kQ4_K, "q4_k", 256, 144},
    {DType::kQ5_K, "q5_k", 256, 176},
    {DType::kQ6_K, "q6_k", 256, 210},
    {DType::kQ8_K, "q8_k", 256, 292},
    {DType::kIQ2_XXS, "iq2_xxs", 256, 66},
    {DType::kIQ2_XS, "iq2_xs", 256, 74},
    {DType::kIQ2_S, "iq2_s", 256, 82},
    {DType::kIQ3_XXS, "iq3_xxs", 256, 98},
    {DType::kIQ3_S, "iq3_s", 256, 110},
    {DType::kIQ1_S, "iq1_s", 256, 50},
    {DType::kIQ1_M, "iq1_m", 256, 56},
    {DType::kIQ4_NL, "iq4_nl", 32, 18},
    {DType::kIQ4_XS, "iq4_xs", 256, 136},
    {DType::kTQ1_0, "tq1_0", 256, 54},
    {DType::kTQ2_0, "tq2_0", 256, 66},
    {DType::kMXFP4, "mxfp4", 32, 17},
    {DType::kNVFP4, "nvfp4", 64, 36},
    {DType::kQ1_0, "q1_0", 128, 18},
    {DType::kQ2_0, "q2_0", 64, 18},
}};

constexpr bool is_in_enum_order() {
  for (int i = 0; i < kNumDTypes; ++i) {
    if (static_cast<int>(kFacts[static_cast<size_t>(i)].dtype) != i) return false;
  }
  return true;
}
static_assert(is_in_enum_order());

const DTypeFacts& facts_of(DType dtype) {
  const auto index = static_cast<size_t>(dtype);
  RLX_CHECK(index < kFacts.size(), "The dtype number {} does not exist.", index);
  return kFacts[index];
}

}  // namespace

std::string_view to_string(DType dtype) { return facts_of(dtype).name; }

bool parse_dtype(std::string_view name, DType& dtype) {
  for (const DTypeFacts& facts : kFacts) {
    if (facts.name == name) {
      dtype = facts.dtype;
      return true;
    }
  }
  return false;
}

int64_t elements_per_block(DType dtype) { return facts_of(dtype).elements_per_block; }

int64_t bytes_per_block(DType dtype) { return facts_of(dtype).bytes_per_block; }

int64_t storage_bytes(DType dtype, int64_t elements) {
  const DTypeFacts& facts = facts_of(dtype);
  if (elements < 0) {
    throw_error(ErrorCode::kInvalidArgument, "A count of elements is {}, but expected at least 0.",
                elements);
  }
  if (elements % facts.elements_per_block != 0) {
    throw_error(ErrorCode::kInvalidArgument,
                "{} elements do not fill blocks of {}: expected a multiple of {}.", elements,
                facts.name, facts.elements_per_block);
  }
  return checked_mul(elements / facts.elements_per_block, facts.bytes_per_block);
}

}  // namespace rlx

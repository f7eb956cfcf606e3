#include "models/assembled_weights.h"

#include <charconv>
#include <cstring>
#include <optional>

#include "base/checked.h"
#include "base/error.h"
#include "rlx/dtype.h"

namespace rlx {

struct AssembledWeights::Weight {
  WeightInfo info;
  bool is_mxfp4 = false;
  std::vector<const Part*> parts;  // the bank's tensors in order; or blocks, scales
  std::unique_ptr<std::byte[]> bytes;
};

namespace {

struct ExpertName {
  std::string bank;  // with '*' for the number
  int64_t expert;
};

std::optional<ExpertName> parse_expert_name(std::string_view name) {
  constexpr std::string_view kMark = ".experts.";
  const size_t mark = name.find(kMark);
  if (mark == std::string_view::npos) return std::nullopt;
  const size_t first = mark + kMark.size();
  const size_t last = name.find('.', first);
  if (last == std::string_view::npos) return std::nullopt;
  int64_t expert = 0;
  const char* end = name.data() + last;
  const auto result = std::from_chars(name.data() + first, end, expert);
  if (result.ec != std::errc() || result.ptr != end || expert < 0) return std::nullopt;
  return ExpertName{std::string(name.substr(0, first)) + "*" + std::string(name.substr(last)),
                    expert};
}

// A folder's block: byte i holds element 2i in its low and 2i + 1 in its high half. Ours: byte i
// holds elements i and i + 16.
void join_mxfp4_block(const uint8_t* pairs, uint8_t scale, std::byte* out) {
  const auto element = [&](int i) -> uint8_t {
    return i % 2 == 0 ? pairs[i / 2] & 15 : pairs[i / 2] >> 4;
  };
  out[0] = std::byte{scale};
  for (int i = 0; i < 16; ++i) {
    out[1 + i] = static_cast<std::byte>(element(i) | element(i + 16) << 4);
  }
}

}  // namespace

AssembledWeights::AssembledWeights(std::vector<Part> parts) : parts_(std::move(parts)) {
  add_banks();
  add_mxfp4_pairs();
}

AssembledWeights::~AssembledWeights() = default;

void AssembledWeights::add_banks() {
  std::map<std::string, std::map<int64_t, const Part*>> groups;
  for (const Part& part : parts_) {
    if (auto name = parse_expert_name(part.name)) groups[name->bank].emplace(name->expert, &part);
  }
  for (const auto& [name, group] : groups) {
    const WeightInfo& first = *group.begin()->second->info;
    auto weight = std::make_unique<Weight>();
    bool regular = true;
    for (const auto& [expert, part] : group) {
      regular = regular && expert == static_cast<int64_t>(weight->parts.size()) &&
                part->info->dtype == first.dtype && part->info->shape == first.shape;
      weight->parts.push_back(part);
    }
    if (!regular) continue;
    const int64_t count = static_cast<int64_t>(group.size());
    weight->info = first;
    weight->info.shape.insert(weight->info.shape.begin(), count);
    weight->info.size_bytes = checked_mul(first.size_bytes, count);
    weights_.emplace(name, std::move(weight));
  }
}

void AssembledWeights::add_mxfp4_pairs() {
  constexpr std::string_view kBlocks = "_blocks", kScales = "_scales";
  std::map<std::string_view, const Part*> by_name;
  for (const Part& part : parts_) by_name.emplace(part.name, &part);
  for (const Part& part : parts_) {
    if (!part.name.ends_with(kBlocks)) continue;
    const std::string base = part.name.substr(0, part.name.size() - kBlocks.size());
    const auto scales = by_name.find(base + std::string(kScales));
    std::vector<int64_t> shape = part.info->shape;
    if (scales == by_name.end() || shape.size() < 2 || shape.back() != 16 ||
        part.info->dtype != DType::kU8 || scales->second->info->dtype != DType::kU8) {
      continue;
    }
    shape.pop_back();
    if (scales->second->info->shape != shape) continue;
    const int64_t blocks = scales->second->info->size_bytes;
    shape.back() = checked_mul(shape.back(), elements_per_block(DType::kMXFP4));
    auto weight = std::make_unique<Weight>();
    weight->info = *part.info;
    weight->info.dtype = DType::kMXFP4;
    weight->info.shape = std::move(shape);
    weight->info.size_bytes = checked_mul(blocks, bytes_per_block(DType::kMXFP4));
    weight->is_mxfp4 = true;
    weight->parts = {&part, scales->second};
    weights_.emplace(base, std::move(weight));
  }
}

const WeightInfo* AssembledWeights::find(std::string_view name) const {
  const auto found = weights_.find(name);
  return found == weights_.end() ? nullptr : &found->second->info;
}

std::span<const std::byte> AssembledWeights::bytes(std::string_view name) const {
  const auto found = weights_.find(name);
  RLX_CHECK(found != weights_.end(), "no weight is assembled as '{}'", name);
  Weight& weight = *found->second;
  const size_t size = static_cast<size_t>(weight.info.size_bytes);
  const std::lock_guard lock(mutex_);
  if (weight.bytes == nullptr) {
    // Not value-initialised: every byte is written below.
    std::unique_ptr<std::byte[]> bytes(new std::byte[size]);
    std::byte* out = bytes.get();
    if (weight.is_mxfp4) {
      const auto* pairs = reinterpret_cast<const uint8_t*>(weight.parts[0]->bytes.data());
      for (std::byte scale : weight.parts[1]->bytes) {
        join_mxfp4_block(pairs, std::to_integer<uint8_t>(scale), out);
        pairs += 16;
        out += 17;
      }
    } else {
      for (const Part* part : weight.parts) {
        if (!part->bytes.empty()) std::memcpy(out, part->bytes.data(), part->bytes.size());
        out += part->bytes.size();
      }
    }
    weight.bytes = std::move(bytes);
  }
  return {weight.bytes.get(), size};
}

}  // namespace rlx

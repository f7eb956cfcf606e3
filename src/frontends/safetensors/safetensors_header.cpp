#include "frontends/safetensors/safetensors_header.h"

#include <limits>

#include "base/error.h"
#include "base/printable_text.h"
#include "frontends/safetensors/json_events.h"

namespace rlx::safetensors {
namespace {

[[noreturn]] void throw_unexpected(const std::string& where, const char* found,
                                   const char* expected) {
  throw_error(ErrorCode::kCorruptData, "{} is {}, but expected {}.", where, found, expected);
}

// { "name": { "dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24] },
//   "__metadata__": { "key": "value" } }
class HeaderEvents final : public JsonEvents {
 public:
  explicit HeaderEvents(Header& header) : header_(header) {}

  void on_key(std::string& key) override {
    if (place_ == Place::kTop) {
      if (key == "__metadata__") {
        if (has_metadata_) {
          throw_error(ErrorCode::kCorruptData, "The key '__metadata__' appears twice.");
        }
        has_metadata_ = true;
        place_ = Place::kBeforeMetadata;
      } else {
        header_.entries.emplace_back().name = std::move(key);
        place_ = Place::kBeforeTensor;
      }
    } else if (place_ == Place::kMetadata) {
      header_.metadata.emplace_back(std::move(key), std::string());
    } else {
      start_field(key);
    }
  }

  void on_string(std::string& value) override {
    if (place_ == Place::kMetadata) {
      header_.metadata.back().second = std::move(value);
    } else if (place_ == Place::kDType) {
      header_.entries.back().dtype_name = std::move(value);
      place_ = Place::kTensor;
    } else {
      refuse(JsonKind::kString);
    }
  }

  void on_unsigned(uint64_t value) override {
    if (place_ != Place::kShape && place_ != Place::kOffsets) refuse(JsonKind::kNumber);
    if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      throw_error(ErrorCode::kCorruptData, "{} holds {}, which does not fit in 63 bits.", where(),
                  value);
    }
    const auto number = static_cast<int64_t>(value);
    HeaderEntry& entry = header_.entries.back();
    if (place_ == Place::kShape) {
      if (entry.shape.size() == kMaxDimensions) {
        throw_error(ErrorCode::kUnsupported, "{} has more than {} dimensions.", where(),
                    kMaxDimensions);
      }
      entry.shape.push_back(number);
    } else {
      if (num_offsets_ == 2) {
        throw_error(ErrorCode::kCorruptData, "{} has more than 2 elements.", where());
      }
      (num_offsets_ == 0 ? entry.begin : entry.end) = number;
      ++num_offsets_;
    }
  }

  void on_other(JsonKind kind) override {
    if (kind == JsonKind::kObject) {
      if (place_ == Place::kStart) {
        place_ = Place::kTop;
        return;
      }
      if (place_ == Place::kBeforeMetadata) {
        place_ = Place::kMetadata;
        return;
      }
      if (place_ == Place::kBeforeTensor) {
        has_dtype_ = has_shape_ = has_offsets_ = false;
        num_offsets_ = 0;
        place_ = Place::kTensor;
        return;
      }
    }
    if (kind == JsonKind::kArray) {
      if (place_ == Place::kBeforeShape) {
        place_ = Place::kShape;
        return;
      }
      if (place_ == Place::kBeforeOffsets) {
        place_ = Place::kOffsets;
        return;
      }
    }
    if (kind == JsonKind::kNull && place_ == Place::kBeforeMetadata) {
      place_ = Place::kTop;
      return;
    }
    refuse(kind);
  }

  void on_end() override {
    switch (place_) {
      case Place::kShape:
        place_ = Place::kTensor;
        return;
      case Place::kOffsets:
        if (num_offsets_ != 2) {
          throw_error(ErrorCode::kCorruptData, "{} has {} elements, but expected 2.", where(),
                      num_offsets_);
        }
        place_ = Place::kTensor;
        return;
      case Place::kTensor:
        if (!has_dtype_ || !has_shape_ || !has_offsets_) {
          throw_error(ErrorCode::kCorruptData, "{} lacks the field '{}'.", where(),
                      !has_dtype_ ? "dtype" : (!has_shape_ ? "shape" : "data_offsets"));
        }
        place_ = Place::kTop;
        return;
      case Place::kMetadata:
        place_ = Place::kTop;
        return;
      default:
        return;  // the end of the header
    }
  }

 private:
  // The rank of a tensor has no bound in the format; this one keeps a file from using the header as
  // a list of a million ones.
  static constexpr size_t kMaxDimensions = 64;

  enum class Place {
    kStart,
    kTop,
    kBeforeMetadata,
    kMetadata,
    kBeforeTensor,
    kTensor,
    kDType,
    kBeforeShape,
    kShape,
    kBeforeOffsets,
    kOffsets,
  };

  void start_field(const std::string& key) {
    const auto start = [&](bool& seen, Place place) {
      if (seen) {
        throw_error(ErrorCode::kCorruptData, "{} has the field '{}' twice.", where(), key);
      }
      seen = true;
      place_ = place;
    };
    if (key == "dtype") {
      start(has_dtype_, Place::kDType);
    } else if (key == "shape") {
      start(has_shape_, Place::kBeforeShape);
    } else if (key == "data_offsets") {
      start(has_offsets_, Place::kBeforeOffsets);
    } else {
      throw_error(ErrorCode::kCorruptData,
                  "{} has the field {}, but expected 'dtype', 'shape' and 'data_offsets'.", where(),
                  printable_text(key));
    }
  }

  std::string where() const {
    const auto tensor = [&] { return "tensor " + printable_text(header_.entries.back().name); };
    switch (place_) {
      case Place::kStart:
        return "The header";
      case Place::kBeforeMetadata:
        return "The entry '__metadata__'";
      case Place::kMetadata:
        if (header_.metadata.empty()) return "The entry '__metadata__'";
        return "The metadata " + printable_text(header_.metadata.back().first);
      case Place::kDType:
        return "The dtype of " + tensor();
      case Place::kBeforeShape:
      case Place::kShape:
        return "The shape of " + tensor();
      case Place::kBeforeOffsets:
      case Place::kOffsets:
        return "The data_offsets of " + tensor();
      default:
        return "The entry of " + tensor();
    }
  }

  [[noreturn]] void refuse(JsonKind kind) const {
    const char* expected = "an object";
    if (place_ == Place::kMetadata || place_ == Place::kDType) expected = "a string";
    if (place_ == Place::kBeforeShape || place_ == Place::kBeforeOffsets) expected = "an array";
    if (place_ == Place::kShape || place_ == Place::kOffsets) {
      throw_error(ErrorCode::kCorruptData, "{} holds {}, but expected only integers of at least 0.",
                  where(), to_string(kind));
    }
    throw_unexpected(where(), to_string(kind), expected);
  }

  Header& header_;
  Place place_ = Place::kStart;
  bool has_metadata_ = false;
  bool has_dtype_ = false;
  bool has_shape_ = false;
  bool has_offsets_ = false;
  int num_offsets_ = 0;
};

// { "metadata": { "total_size": 1 }, "weight_map": { "name": "model-00001-of-00002.safetensors" } }
class IndexEvents final : public JsonEvents {
 public:
  explicit IndexEvents(std::vector<std::pair<std::string, std::string>>& pairs) : pairs_(pairs) {}

  bool has_map() const { return has_map_; }

  void on_key(std::string& key) override {
    if (depth_ == 1) {
      in_map_ = key == "weight_map";
      if (in_map_ && has_map_) {
        throw_error(ErrorCode::kCorruptData, "The key 'weight_map' appears twice.");
      }
      has_map_ = has_map_ || in_map_;
    } else if (in_map_) {
      pairs_.emplace_back(std::move(key), std::string());
    }
  }

  void on_string(std::string& value) override {
    if (in_map_ && depth_ == 2) {
      pairs_.back().second = std::move(value);
    } else {
      check_place(JsonKind::kString);
    }
  }

  void on_unsigned(uint64_t) override { check_place(JsonKind::kNumber); }

  void on_other(JsonKind kind) override {
    if (kind == JsonKind::kObject && (depth_ == 0 || (in_map_ && depth_ == 1))) {
      ++depth_;
      return;
    }
    check_place(kind);
    if (kind == JsonKind::kObject || kind == JsonKind::kArray) ++depth_;
  }

  void on_end() override { --depth_; }

 private:
  void check_place(JsonKind kind) const {
    if (depth_ == 0) throw_unexpected("The index", to_string(kind), "an object");
    if (!in_map_) return;
    if (depth_ == 1) throw_unexpected("'weight_map'", to_string(kind), "an object");
    throw_unexpected("The file of tensor " + printable_text(pairs_.back().first), to_string(kind),
                     "a string");
  }

  std::vector<std::pair<std::string, std::string>>& pairs_;
  int64_t depth_ = 0;
  bool in_map_ = false;
  bool has_map_ = false;
};

}  // namespace

Header parse_header(std::span<const std::byte> text) {
  Header header;
  HeaderEvents events(header);
  read_json(text, events);
  return header;
}

std::vector<std::pair<std::string, std::string>> parse_index(std::span<const std::byte> text) {
  std::vector<std::pair<std::string, std::string>> pairs;
  IndexEvents events(pairs);
  read_json(text, events);
  if (!events.has_map()) {
    throw_error(ErrorCode::kCorruptData, "The index has no 'weight_map'.");
  }
  return pairs;
}

}  // namespace rlx::safetensors

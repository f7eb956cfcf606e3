#include "memory/csv.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/error.h"
#include "base/mapped_file.h"

namespace rlx::memory {
namespace {

enum Column { kId, kLower, kUpper, kSize, kAlignment, kOffset, kNumColumns };
constexpr std::array<std::string_view, kNumColumns> kNames = {"id",   "lower",     "upper",
                                                              "size", "alignment", "offset"};

class CsvReader {
 public:
  CsvReader(std::string_view text, const std::string& name) : text_(text), name_(name) {
    if (text_.substr(0, 3) == "\xEF\xBB\xBF") text_.remove_prefix(3);
  }

  CsvProblem read() {
    if (!next_line()) {
      throw_error(ErrorCode::kCorruptData,
                  "{} is empty, but a line with the names of the columns is "
                  "expected.",
                  name_);
    }
    read_header();
    while (next_line()) read_unit();
    return std::move(result_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw_error(ErrorCode::kCorruptData, "{}:{}: {}", name_, line_, what);
  }

  // Splits the next line that is not empty into fields.
  bool next_line() {
    while (!text_.empty()) {
      const size_t end = text_.find('\n');
      std::string_view line = text_.substr(0, end);
      text_.remove_prefix(end == std::string_view::npos ? text_.size() : end + 1);
      ++line_;
      if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
      if (line.empty()) continue;
      split(line);
      return true;
    }
    return false;
  }

  void split(std::string_view line) {
    fields_.clear();
    size_t at = 0;
    while (true) {
      std::string field;
      if (at < line.size() && line[at] == '"') {
        for (++at;; ++at) {
          if (at >= line.size()) fail("A quoted field has no closing quote.");
          if (line[at] != '"') {
            field += line[at];
          } else if (at + 1 < line.size() && line[at + 1] == '"') {
            field += line[++at];
          } else {
            ++at;
            break;
          }
        }
        if (at < line.size() && line[at] != ',') fail("Text follows the closing quote of a field.");
      } else {
        const size_t comma = std::min(line.find(',', at), line.size());
        field = line.substr(at, comma - at);
        at = comma;
      }
      fields_.push_back(std::move(field));
      if (at >= line.size()) return;
      ++at;
    }
  }

  void read_header() {
    column_.fill(-1);
    for (size_t i = 0; i < fields_.size(); ++i) {
      const auto it = std::find(kNames.begin(), kNames.end(), fields_[i]);
      if (it == kNames.end()) {
        fail(
            fmt::format("The column '{}' is not known; the columns are id, lower, upper, size and, "
                        "where given, alignment and offset.",
                        fields_[i]));
      }
      int& column = column_[it - kNames.begin()];
      if (column >= 0) fail(fmt::format("The column '{}' is named twice.", fields_[i]));
      column = static_cast<int>(i);
    }
    for (int c = 0; c <= kSize; ++c) {
      if (column_[c] < 0) fail(fmt::format("The column '{}' is missing.", kNames[c]));
    }
    num_columns_ = fields_.size();
  }

  int64_t number(Column column) const {
    const std::string& field = fields_[column_[column]];
    int64_t value = 0;
    const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value);
    if (error != std::errc() || end != field.data() + field.size()) {
      fail(fmt::format("The {} is '{}', but a whole number of at most 64 bits is expected.",
                       kNames[column], field));
    }
    return value;
  }

  void read_unit() {
    if (fields_.size() != num_columns_) {
      fail(fmt::format("The line has {} fields, but the first line names {} columns.",
                       fields_.size(), num_columns_));
    }
    Problem one;
    Unit& unit = one.units.emplace_back();
    const int64_t lower = number(kLower), upper = number(kUpper);
    unit.size_bytes = number(kSize);
    if (column_[kAlignment] >= 0) unit.alignment = number(kAlignment);
    if (lower > upper) {
      fail(
          fmt::format("The unit lives from step {} to step {}, but a lifetime cannot end before it "
                      "starts.",
                      lower, upper));
    }
    unit.pieces.push_back({lower, upper, 0, unit.size_bytes});
    if (unit.size_bytes < 0) {
      fail(fmt::format("The size is {}, but a size is at least 0.", unit.size_bytes));
    }
    if (unit.alignment <= 0 || (unit.alignment & (unit.alignment - 1)) != 0) {
      fail(fmt::format("The alignment is {}, but an alignment is a power of two.", unit.alignment));
    }
    result_.ids.push_back(fields_[column_[kId]]);
    result_.problem.units.push_back(std::move(unit));
    if (column_[kOffset] >= 0) result_.offsets.push_back(number(kOffset));
  }

  std::string_view text_;
  const std::string& name_;
  int64_t line_ = 0;
  std::vector<std::string> fields_;
  std::array<int, kNumColumns> column_;
  size_t num_columns_ = 0;
  CsvProblem result_;
};

std::string quote(const std::string& field) {
  if (field.find_first_of(",\"\r\n") == std::string::npos) return field;
  std::string result = "\"";
  for (char c : field) {
    if (c == '"') result += '"';
    result += c;
  }
  return result + '"';
}

}  // namespace

CsvProblem parse_csv(std::string_view text, const std::string& name) {
  return CsvReader(text, name).read();
}

CsvProblem read_csv(const std::string& path) {
  const MappedFile file(path);
  const auto bytes = file.bytes();
  return parse_csv({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path);
}

std::string write_csv(const CsvProblem& csv, const Placement& placement) {
  const std::vector<Unit>& units = csv.problem.units;
  RLX_CHECK(csv.ids.size() == units.size() && placement.offsets.size() == units.size());
  const bool has_alignment =
      std::any_of(units.begin(), units.end(), [](const Unit& unit) { return unit.alignment > 1; });
  std::string text =
      has_alignment ? "id,lower,upper,size,alignment,offset\n" : "id,lower,upper,size,offset\n";
  for (size_t i = 0; i < units.size(); ++i) {
    RLX_CHECK(units[i].pieces.size() == 1, "Unit {} has {} pieces.", i, units[i].pieces.size());
    const Piece& piece = units[i].pieces[0];
    text +=
        fmt::format("{},{},{},{},", quote(csv.ids[i]), piece.start, piece.end, units[i].size_bytes);
    if (has_alignment) text += fmt::format("{},", units[i].alignment);
    text += fmt::format("{}\n", placement.offsets[i]);
  }
  return text;
}

}  // namespace rlx::memory

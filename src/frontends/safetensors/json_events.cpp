#include "frontends/safetensors/json_events.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/printable_text.h"

namespace rlx::safetensors {
namespace {

// The interface of nlohmann's event parser, handed on.
class Adapter {
 public:
  using Json = nlohmann::json;

  explicit Adapter(JsonEvents& events) : events_(events) {}

  bool null() { return other(JsonKind::kNull); }
  bool boolean(bool) { return other(JsonKind::kBool); }
  bool number_integer(Json::number_integer_t) { return other(JsonKind::kNumber); }
  bool number_float(Json::number_float_t, const std::string&) { return other(JsonKind::kNumber); }
  bool number_unsigned(Json::number_unsigned_t value) {
    events_.on_unsigned(value);
    return true;
  }
  bool string(std::string& value) {
    events_.on_string(value);
    return true;
  }
  bool binary(Json::binary_t&) { return other(JsonKind::kNull); }
  bool start_object(size_t) { return other(JsonKind::kObject); }
  bool start_array(size_t) { return other(JsonKind::kArray); }
  bool key(std::string& key) {
    events_.on_key(key);
    return true;
  }
  bool end_object() { return end(); }
  bool end_array() { return end(); }
  bool parse_error(size_t position, const std::string& last_token, const Json::exception&) {
    throw_error(ErrorCode::kCorruptData, "The JSON is malformed at byte {}, near {}.", position,
                printable_text(last_token, 40));
  }

 private:
  bool other(JsonKind kind) {
    events_.on_other(kind);
    return true;
  }
  bool end() {
    events_.on_end();
    return true;
  }

  JsonEvents& events_;
};

}  // namespace

const char* to_string(JsonKind kind) {
  switch (kind) {
    case JsonKind::kNull:
      return "null";
    case JsonKind::kBool:
      return "a bool";
    case JsonKind::kNumber:
      return "a number";
    case JsonKind::kString:
      return "a string";
    case JsonKind::kObject:
      return "an object";
    case JsonKind::kArray:
      return "an array";
  }
  return "a value";
}

void read_json(std::span<const std::byte> text, JsonEvents& events) {
  const auto* begin = reinterpret_cast<const char*>(text.data());
  Adapter adapter(events);
  nlohmann::json::sax_parse(begin, begin + text.size(), &adapter);
}

}  // namespace rlx::safetensors

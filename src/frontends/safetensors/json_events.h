// JSON read as a stream of events: nothing is built that the reader does not keep, so neither depth
// nor repeated keys nor size can do harm. Private to this folder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace rlx::safetensors {

// What a value is, where its content does not matter.
enum class JsonKind { kNull, kBool, kNumber, kString, kObject, kArray };

const char* to_string(JsonKind kind);

// Receives the events. Each may throw, which ends the reading.
class JsonEvents {
 public:
  virtual ~JsonEvents() = default;
  virtual void on_key(std::string& key) = 0;
  virtual void on_string(std::string& value) = 0;
  // An integer that is not negative.
  virtual void on_unsigned(uint64_t value) = 0;
  // Every other value: null, a bool, another number, or the start of an object or array.
  virtual void on_other(JsonKind kind) = 0;
  // The end of an object or array.
  virtual void on_end() = 0;
};

// Reads one JSON text that takes all of `text` (blanks around it aside). Throws kCorruptData with
// the place when it is not JSON.
void read_json(std::span<const std::byte> text, JsonEvents& events);

}  // namespace rlx::safetensors

#include "text/byte_level.h"

#include <array>

#include "text/unicode.h"

namespace rlx {
namespace {

constexpr uint32_t kFirstMoved = 0x100;

struct Alphabet {
  struct Character {
    char bytes[2];
    uint8_t length;
  };
  std::array<Character, 256> characters;
  std::array<int16_t, kFirstMoved + 68> byte_of;

  Alphabet() {
    byte_of.fill(-1);
    uint32_t next = kFirstMoved;
    for (uint32_t byte = 0; byte < 256; ++byte) {
      const bool stays = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte != 0xAD);
      const uint32_t code_point = stays ? byte : next++;
      byte_of[code_point] = static_cast<int16_t>(byte);
      std::string text;
      append_utf8(code_point, text);
      characters[byte] = {{text[0], text.size() > 1 ? text[1] : '\0'},
                          static_cast<uint8_t>(text.size())};
    }
  }
};

const Alphabet& alphabet() {
  static const Alphabet instance;
  return instance;
}

}  // namespace

std::string_view byte_level_character(uint8_t byte) {
  const Alphabet::Character& c = alphabet().characters[byte];
  return {c.bytes, c.length};
}

int32_t byte_level_byte(uint32_t code_point) {
  const auto& byte_of = alphabet().byte_of;
  return code_point < byte_of.size() ? byte_of[code_point] : -1;
}

void append_byte_level(std::string_view bytes, std::string& out) {
  const Alphabet& table = alphabet();
  for (const char byte : bytes) {
    const Alphabet::Character& c = table.characters[static_cast<uint8_t>(byte)];
    out.append(c.bytes, c.length);
  }
}

}  // namespace rlx

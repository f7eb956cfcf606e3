// The alphabet of byte-level tokenizers: every byte is shown as one printable character, so that a
// vocabulary of arbitrary bytes can be written as text. Bytes that are printable in Latin-1 stand
// for themselves; the other 68 become U+0100, U+0101, ... in order (GPT-2's bytes_to_unicode).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace rlx {

// The character (UTF-8, 1 or 2 bytes) of a byte.
std::string_view byte_level_character(uint8_t byte);

// The byte of a character, or -1 if the character is not in the alphabet.
int32_t byte_level_byte(uint32_t code_point);

// Appends `bytes` in the alphabet.
void append_byte_level(std::string_view bytes, std::string& out);

}  // namespace rlx

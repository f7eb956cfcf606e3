// The file that a model's memory of a text is kept in: the tokens that were read, and the bytes of
// the cache that stand for them. Little endian:
//
//   offset  bytes
//        0  8  "RLXSTATE"
//        8  4  version, 1
//       12  4  size of the header
//       16  8  size of the file
//       24  8  checksum of the header without this field
//       32  8  checksum of everything behind the header
//       40     description: model, way of computing, rows written, the places of the cache, tokens
//
// then the bytes of each place, at multiples of 64. A reader finds every cut and every flipped bit
// before it believes anything; a writer leaves either the whole file or the old one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace rlx {

// A part of the cache: what the plan of the state segment says of it, and the bytes that are kept,
// which are the first of it.
struct StatePlace {
  std::string name;
  std::string dtype;
  std::vector<int64_t> shape;
  std::span<const std::byte> bytes;
};

struct StateFile {
  uint64_t fingerprint = 0;  // of the model's files
  std::string architecture;
  std::string computing;    // what else decides the cache's numbers, for people
  int64_t num_written = 0;  // rows that were written, at least as many as tokens
  std::vector<int32_t> tokens;
  std::vector<StatePlace> places;
};

// A checksum of 64 bits that continues `before`: finds accidents, not forgery.
uint64_t checksum(std::span<const std::byte> bytes, uint64_t before = 0);

// Throws kIo naming the path; the file is then as it was before.
void write_state_file(const std::string& path, const StateFile& state);

// `name` stands for the file in errors. The places point into `bytes`. Throws kCorruptData when the
// file is cut or damaged, kUnsupported for another version.
StateFile parse_state_file(std::span<const std::byte> bytes, const std::string& name);

}  // namespace rlx

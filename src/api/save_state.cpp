#include <algorithm>

#include "api/language_model_parts.h"
#include "api/state_file.h"
#include "base/error.h"
#include "base/mapped_file.h"
#include "rlx/language_model.h"
#include "runtime/arena.h"

namespace rlx {
namespace {

std::span<const std::byte> as_bytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

// Tells models apart without reading all of their bytes: the configuration, the names, types and
// shapes of all tensors, and 16 pieces of 64 bytes from each.
uint64_t compute_fingerprint(const ModelFile& file) {
  uint64_t hash = checksum(as_bytes(file.architecture()));
  for (const auto& [key, value] : file.list_metadata()) {
    hash = checksum(as_bytes(value), checksum(as_bytes(key), hash));
  }
  for (const std::string& name : file.list_names()) {
    const WeightInfo& info = *file.find(name);
    hash = checksum(as_bytes(name), hash);
    hash = checksum(as_bytes(to_string(info.dtype)), hash);
    hash = checksum(std::as_bytes(std::span(info.shape)), hash);
    const std::span<const std::byte> bytes = file.bytes(name);
    constexpr size_t kPieces = 16, kPieceBytes = 64;
    for (size_t i = 0; i < kPieces; ++i) {
      const size_t size = std::min(kPieceBytes, bytes.size());
      hash = checksum(bytes.subspan((bytes.size() - size) / (kPieces - 1) * i, size), hash);
    }
  }
  return hash;
}

// One cache of the program, and how much of it a number of rows takes.
struct Place {
  std::string name;
  int32_t value;
  std::vector<int64_t> shape;
  DType dtype;
  int64_t rows, row_bytes;

  int64_t kept_bytes(int64_t num_written) const { return std::min(num_written, rows) * row_bytes; }
};

std::vector<Place> list_places(const Program& program, const Arena& arena) {
  std::vector<Place> places;
  for (const NamedValue& state : program.states) {
    const std::vector<int64_t> shape = arena.shape(state.value);
    if (shape.size() < 2 || shape[0] != 1 || shape[1] < 1) {
      throw_error(ErrorCode::kUnsupported,
                  "The state '{}' has no rows of one text, so it cannot be saved.", state.name);
    }
    places.push_back({state.name, state.value, shape, arena.dtype(state.value), shape[1],
                      arena.value_bytes(state.value) / shape[1]});
  }
  return places;
}

std::string join_shape(const std::vector<int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

// Whether the shapes differ in nothing but the rows.
bool is_same_row(const std::vector<int64_t>& a, const std::vector<int64_t>& b) {
  if (a.size() != b.size() || a.size() < 2) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (i != 1 && a[i] != b[i]) return false;
  }
  return true;
}

void check_place(const std::string& path, const Place& place, const StatePlace& saved,
                 int64_t num_written) {
  if (saved.dtype != to_string(place.dtype)) {
    throw_error(ErrorCode::kInvalidArgument,
                "{}: The state keeps its cache in {}, but the model is loaded with a cache in {}.",
                path, saved.dtype, to_string(place.dtype));
  }
  if (saved.name != place.name || !is_same_row(saved.shape, place.shape)) {
    throw_error(ErrorCode::kInvalidArgument,
                "{}: The state has '{}' with the shape {}, but the model has '{}' with {}.", path,
                saved.name, join_shape(saved.shape), place.name, join_shape(place.shape));
  }
  // Rows that are used in turn lie elsewhere when there are more or fewer of them.
  const bool in_turn = num_written > std::min(saved.shape[1], place.rows);
  if (in_turn && saved.shape[1] != place.rows) {
    throw_error(ErrorCode::kInvalidArgument,
                "{}: The state keeps a sliding window in {} rows, but the model is loaded with {}; "
                "give the batch and the context that the state was saved with.",
                path, saved.shape[1], place.rows);
  }
  if (static_cast<int64_t>(saved.bytes.size()) != place.kept_bytes(num_written)) {
    throw_error(ErrorCode::kCorruptData,
                "{}: The state has {} bytes of '{}', but {} rows take {} bytes.", path,
                saved.bytes.size(), place.name, std::min(num_written, place.rows),
                place.kept_bytes(num_written));
  }
}

}  // namespace

void LanguageModel::save_state(const std::string& path) const {
  const Parts& p = *parts_;
  if (p.past_tokens.empty()) {
    throw_error(ErrorCode::kInvalidArgument,
                "{}: The model has read nothing, so there is no state to save.", path);
  }
  const Arena& arena = p.session->arena();
  StateFile state;
  state.fingerprint = compute_fingerprint(*p.model.file);
  state.architecture = p.model.file->architecture();
  state.computing = p.computing;
  state.tokens = p.past_tokens;
  // Rows behind the tokens matter where they have taken the place of older ones.
  const bool wraps = std::any_of(p.rings.begin(), p.rings.end(), [&](const Parts::Ring& ring) {
    return p.written_rows > ring.rows;
  });
  state.num_written = wraps ? p.written_rows : static_cast<int64_t>(p.past_tokens.size());
  const std::vector<Place> places = list_places(*p.model.program, arena);
  std::vector<std::vector<std::byte>> contents;
  for (const Place& place : places) {
    auto& bytes = contents.emplace_back(static_cast<size_t>(place.kept_bytes(state.num_written)));
    arena.read_bytes(place.value, 0, bytes);
    state.places.push_back({place.name, std::string(to_string(place.dtype)), place.shape, bytes});
  }
  write_state_file(path, state);
}

void LanguageModel::load_state(const std::string& path) {
  Parts& p = *parts_;
  const MappedFile file(path);
  const StateFile state = parse_state_file(file.bytes(), path);
  const std::string& model = p.model.file->path();
  if (state.fingerprint != compute_fingerprint(*p.model.file)) {
    throw_error(ErrorCode::kInvalidArgument,
                "{}: The state is of another model ({}) than '{}' ({}).", path, state.architecture,
                model, p.model.file->architecture());
  }
  if (state.computing != p.computing) {
    throw_error(ErrorCode::kInvalidArgument,
                "{}: The state was computed with {}, but the model is loaded with {}.", path,
                state.computing, p.computing);
  }
  Arena& arena = p.session->arena();
  const std::vector<Place> places = list_places(*p.model.program, arena);
  if (state.places.size() != places.size()) {
    throw_error(ErrorCode::kInvalidArgument,
                "{}: The state has {} caches, but the model is loaded with {}.", path,
                state.places.size(), places.size());
  }
  if (static_cast<int64_t>(state.tokens.size()) > p.context) {
    throw_error(ErrorCode::kOutOfRange,
                "{}: The state holds {} tokens, but the context holds {} tokens.", path,
                state.tokens.size(), p.context);
  }
  for (const int32_t token : state.tokens) {
    if (token >= 0 && token < p.vocab_size) continue;
    throw_error(ErrorCode::kCorruptData,
                "{}: The state holds the token {}, but the vocabulary has {} tokens.", path, token,
                p.vocab_size);
  }
  for (size_t i = 0; i < places.size(); ++i) {
    check_place(path, places[i], state.places[i], state.num_written);
  }
  for (size_t i = 0; i < places.size(); ++i) {
    arena.write_bytes(places[i].value, 0, state.places[i].bytes);
  }
  p.past_tokens.assign(state.tokens.begin(), state.tokens.end());
  p.written_rows = state.num_written;
}

}  // namespace rlx

// The one allocation of a session, and typed, checked access to every value in it by id or name.
// State, io and work lie at the offsets that the plan gave them; weights lie in their file and can
// only be read. On the CPU the arena is host memory: the program and its user see the same bytes,
// and nothing is copied or staged. Device arenas keep the same contract.
//
// Shapes and element counts are those of the extents set last (at first the symbols' upper bounds),
// and never derived from the size of a slot, which may be larger. A value whose place is reused
// later in the program holds its content only until then: list_occupants tells who else lies there,
// and when.
//
// Reading and writing while a run is going on in another thread is an error (kInvalidArgument),
// never a race: a run marks the arena as busy from its first to its last step.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "program/program.h"
#include "program/weight_store.h"
#include "runtime/extents.h"
#include "tensor/convert.h"

namespace rlx {

// The dtype whose elements are stored as the C++ type T. f16, bf16 and bool have wrapper types, so
// that a span never shows one type as another.
struct F16 {
  uint16_t bits;
};
struct BF16 {
  uint16_t bits;
};
template <typename T>
struct DTypeOf;
template <>
struct DTypeOf<double> {
  static constexpr DType value = DType::kF64;
};
template <>
struct DTypeOf<float> {
  static constexpr DType value = DType::kF32;
};
template <>
struct DTypeOf<F16> {
  static constexpr DType value = DType::kF16;
};
template <>
struct DTypeOf<BF16> {
  static constexpr DType value = DType::kBF16;
};
template <>
struct DTypeOf<int64_t> {
  static constexpr DType value = DType::kI64;
};
template <>
struct DTypeOf<int32_t> {
  static constexpr DType value = DType::kI32;
};
template <>
struct DTypeOf<int16_t> {
  static constexpr DType value = DType::kI16;
};
template <>
struct DTypeOf<int8_t> {
  static constexpr DType value = DType::kI8;
};
template <>
struct DTypeOf<uint64_t> {
  static constexpr DType value = DType::kU64;
};
template <>
struct DTypeOf<uint32_t> {
  static constexpr DType value = DType::kU32;
};
template <>
struct DTypeOf<uint16_t> {
  static constexpr DType value = DType::kU16;
};
template <>
struct DTypeOf<uint8_t> {
  static constexpr DType value = DType::kU8;
};
template <>
struct DTypeOf<bool> {
  static constexpr DType value = DType::kBool;
};

// A value that shares bytes with another, and the steps at which its storage is occupied.
struct Occupant {
  int32_t value;
  int32_t first_step, last_step;  // 0 and the last step for state and io
};

class Arena {
 public:
  // Reserves the plan's bytes, zero-filled, and binds every value. `weights` may be null when the
  // program has none; it is kept alive, so several arenas share one. Throws kOutOfMemory with the
  // plan's figures, and what check_weights throws.
  Arena(std::shared_ptr<const Program> program, std::shared_ptr<const WeightStore> weights);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  const Program& program() const { return *program_; }
  const std::shared_ptr<const WeightStore>& weights() const { return weights_; }

  // Bytes of the allocation.
  int64_t size_bytes() const { return size_bytes_; }
  std::span<std::byte> bytes() const { return {data_, static_cast<size_t>(size_bytes_)}; }
  // A segment's bytes; not kWeights, which lies elsewhere.
  std::span<std::byte> segment(Segment segment) const;

  // Sets the symbols' values, in the table's order, within their bounds (the session checks).
  void set_extents(std::span<const int64_t> values);

  // The id of a value by its name ("%logits" or "logits"), or of an input, output, state or weight
  // by its own. Throws kNotFound.
  int32_t find_value(std::string_view name) const;

  // Facts about a value. An id out of range throws kOutOfRange. A value of zero elements has a slot
  // of zero bytes.
  const ProgramValue& value(int32_t id) const;
  const TensorView& view(int32_t id) const { return views_[check_id(id)]; }
  DType dtype(int32_t id) const { return view(id).dtype; }
  std::vector<int64_t> shape(int32_t id) const;
  int64_t num_elements(int32_t id) const { return view(id).num_elements(); }
  // Bytes that the elements take now, in the dtype.
  int64_t value_bytes(int32_t id) const;
  // Values that share at least one byte of the arena with this one at some time.
  std::vector<Occupant> list_occupants(int32_t id) const;

  // The elements in place. Throws kInvalidArgument naming both types when T is not the value's,
  // when the value is not contiguous, or for writing when it is a weight.
  template <typename T>
  std::span<T> span(int32_t id) {
    return {reinterpret_cast<T*>(checked_data(id, DTypeOf<T>::value, true)),
            static_cast<size_t>(num_elements(id))};
  }
  template <typename T>
  std::span<const T> span(int32_t id) const {
    return {reinterpret_cast<const T*>(checked_data(id, DTypeOf<T>::value, false)),
            static_cast<size_t>(num_elements(id))};
  }

  // Copies all elements out or in, converting between the value's dtype and T (see
  // tensor/convert.h; packed values decode on read, and encode on write where an encoder exists).
  // The length must be the number of elements. Throws kInvalidArgument for another length,
  // kOutOfRange naming the first element that T or the value cannot hold.
  template <typename T>
  void read(int32_t id, std::span<T> into, const ConvertOptions& options = {}) const {
    read_converted(id, 0, -1, DTypeOf<T>::value, std::as_writable_bytes(into), options);
  }
  template <typename T>
  void write(int32_t id, std::span<const T> from, const ConvertOptions& options = {}) {
    write_converted(id, 0, -1, DTypeOf<T>::value, std::as_bytes(from), options);
  }
  // The same for `num_rows` rows from `first_row` of the first dimension longer than 1 before which
  // all are 1 (the rows of a key/value cache); their elements must be the length of the span.
  template <typename T>
  void read_rows(int32_t id, int64_t first_row, int64_t num_rows, std::span<T> into,
                 const ConvertOptions& options = {}) const {
    check_rows(id, first_row, num_rows);
    read_converted(id, first_row, num_rows, DTypeOf<T>::value, std::as_writable_bytes(into),
                   options);
  }
  template <typename T>
  void write_rows(int32_t id, int64_t first_row, int64_t num_rows, std::span<const T> from,
                  const ConvertOptions& options = {}) {
    check_rows(id, first_row, num_rows);
    write_converted(id, first_row, num_rows, DTypeOf<T>::value, std::as_bytes(from), options);
  }

  // Copies inside the arena; same dtype, overlap is safe, out of range is kOutOfRange.
  void copy(int32_t from, int32_t to);                          // all elements; same count
  void copy_first(int32_t from, int32_t to, int64_t elements);  // the first n elements
  void copy_rows(int32_t from, int64_t from_row, int32_t to, int64_t to_row, int64_t num_rows);
  // From another arena: same dtype and shape.
  void copy_from(const Arena& other, int32_t from, int32_t to);

  // Raw bytes at an offset into the value's own bytes: packed weights, one slot of a bank of
  // experts.
  void read_bytes(int32_t id, int64_t offset_bytes, std::span<std::byte> into) const;
  void write_bytes(int32_t id, int64_t offset_bytes, std::span<const std::byte> from);

  // Marks the arena as used by a run; false when it is already.
  bool begin_run() { return !busy_.exchange(true, std::memory_order_acquire); }
  void end_run() { busy_.store(false, std::memory_order_release); }

 private:
  struct DynamicOffset {
    int32_t value;
    int64_t elements;
  };

  int32_t check_id(int32_t id) const;
  std::byte* find_base(const ProgramValue& value) const;
  void bind_values();
  void place_view(int32_t value, int64_t offset_elements);
  std::string describe(int32_t id) const;
  void check_idle() const;
  void check_contiguous(int32_t id) const;
  void check_writable(int32_t id) const;
  void check_same_dtype(DType from, int32_t from_id, int32_t to_id) const;
  // Number of rows, and elements of one row.
  struct Rows {
    int64_t count, elements;
  };
  Rows rows_of(int32_t id) const;
  void check_rows(int32_t id, int64_t first_row, int64_t num_rows) const;
  std::byte* checked_data(int32_t id, DType dtype, bool for_writing) const;
  void read_converted(int32_t id, int64_t first_row, int64_t num_rows, DType to,
                      std::span<std::byte> into, const ConvertOptions& options) const;
  void write_converted(int32_t id, int64_t first_row, int64_t num_rows, DType from,
                       std::span<const std::byte> source, const ConvertOptions& options);

  std::shared_ptr<const Program> program_;
  std::shared_ptr<const WeightStore> weights_;
  std::byte* data_ = nullptr;
  int64_t size_bytes_ = 0;
  ExtentEvaluator extents_;
  std::vector<TensorView> views_;  // by program value
  std::vector<std::byte*> bases_;  // by program value
  std::vector<DynamicOffset> dynamic_offsets_;
  std::unordered_map<std::string, int32_t> ids_;
  std::atomic<bool> busy_{false};
};

}  // namespace rlx

#include "runtime/arena.h"

#include <sys/mman.h>

#include <cstring>

#include "base/error.h"
#include "runtime/session.h"
#include "tensor/packed.h"
#include "tensor/storage.h"

namespace rlx {

Arena::Arena(std::shared_ptr<const Program> program, std::shared_ptr<const WeightStore> weights)
    : program_(std::move(program)), weights_(std::move(weights)), extents_(program_->symbols) {
  if (!program_->weights.empty()) {
    if (weights_ == nullptr) {
      throw_error(ErrorCode::kInvalidArgument, "The program needs {} weights, but none are given.",
                  program_->weights.size());
    }
    check_weights(*program_, *weights_);
  }
  const MemoryPlan& plan = program_->plan;
  size_bytes_ = plan.arena_bytes;
  if (size_bytes_ > 0) {
    void* mapping = ::mmap(nullptr, static_cast<size_t>(size_bytes_), PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapping == MAP_FAILED) {
      throw_error(ErrorCode::kOutOfMemory,
                  "The arena of {} bytes (state {}, io {}, work {}) cannot be allocated.",
                  size_bytes_, plan.segment(Segment::kState).size_bytes,
                  plan.segment(Segment::kIo).size_bytes, plan.segment(Segment::kWork).size_bytes);
    }
    // Huge pages nearly double what one thread can read; a refusal only costs speed.
    ::madvise(mapping, static_cast<size_t>(size_bytes_), MADV_HUGEPAGE);
    data_ = static_cast<std::byte*>(mapping);
  }
  bind_values();
  // Upper bounds to begin with: every extent is then defined.
  std::vector<int64_t> values;
  for (const Symbol& symbol : program_->symbols.symbols()) values.push_back(symbol.upper);
  set_extents(values);
}

Arena::~Arena() {
  if (data_ != nullptr) ::munmap(data_, static_cast<size_t>(size_bytes_));
}

std::span<std::byte> Arena::segment(Segment segment) const {
  RLX_CHECK(segment != Segment::kWeights);
  return {data_ + program_->plan.base_bytes[static_cast<int>(segment)],
          static_cast<size_t>(program_->plan.segment(segment).size_bytes)};
}

void Arena::bind_values() {
  const std::vector<ProgramValue>& values = program_->values;
  views_.resize(values.size());
  bases_.resize(values.size());
  dynamic_offsets_.reserve(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    const ProgramValue& value = values[i];
    TensorView& view = views_[i];
    view.dtype = value.type.dtype;
    view.rank = value.type.rank();
    for (int axis = 0; axis < view.rank; ++axis) {
      extents_.add(value.type.shape[axis], &view.extents[axis]);
      extents_.add(value.layout.strides[axis], &view.strides[axis]);
    }
    bases_[i] = find_base(value);
    if (value.layout.offset.is_constant()) {
      place_view(static_cast<int32_t>(i), value.layout.offset.constant());
    } else {
      dynamic_offsets_.push_back({static_cast<int32_t>(i), 0});
      extents_.add(value.layout.offset, &dynamic_offsets_.back().elements);
    }
    ids_.emplace(value.name, static_cast<int32_t>(i));
  }
  for (const auto* list :
       {&program_->inputs, &program_->outputs, &program_->states, &program_->weights}) {
    for (const NamedValue& named : *list) ids_.emplace(named.name, named.value);
  }
}

std::byte* Arena::find_base(const ProgramValue& value) const {
  // Weights are only read; views have one pointer type for both, and check_writable keeps the
  // promise.
  if (!value.weight.empty()) return const_cast<std::byte*>(weights_->bytes(value.weight).data());
  if (value.segment == Segment::kWeights) {
    return const_cast<std::byte*>(program_->constants.data()) + value.offset_bytes;
  }
  return segment(value.segment).data() + value.offset_bytes;
}

void Arena::place_view(int32_t value, int64_t offset_elements) {
  const DType dtype = views_[value].dtype;
  views_[value].data =
      bases_[value] + offset_elements / elements_per_block(dtype) * bytes_per_block(dtype);
}

void Arena::set_extents(std::span<const int64_t> values) {
  extents_.evaluate(values);
  for (const DynamicOffset& dynamic : dynamic_offsets_) place_view(dynamic.value, dynamic.elements);
}

int32_t Arena::find_value(std::string_view name) const {
  for (const std::string& spelling : {std::string(name), "%" + std::string(name)}) {
    const auto found = ids_.find(spelling);
    if (found != ids_.end()) return found->second;
  }
  throw_error(ErrorCode::kNotFound, "The program '{}' has no value named '{}'.", program_->name,
              name);
}

int32_t Arena::check_id(int32_t id) const {
  if (id < 0 || id >= static_cast<int32_t>(views_.size())) {
    throw_error(ErrorCode::kOutOfRange, "Value {} is asked for, but the program has {} values.", id,
                views_.size());
  }
  return id;
}

const ProgramValue& Arena::value(int32_t id) const { return program_->values[check_id(id)]; }

std::vector<int64_t> Arena::shape(int32_t id) const {
  const TensorView& v = view(id);
  return {v.extents.begin(), v.extents.begin() + v.rank};
}

int64_t Arena::value_bytes(int32_t id) const {
  return storage_bytes(view(id).dtype, num_elements(id));
}

std::vector<Occupant> Arena::list_occupants(int32_t id) const {
  const ProgramValue& mine = value(id);
  const int32_t last =
      std::max<int32_t>(0, static_cast<int32_t>(program_->instructions.size()) - 1);
  std::vector<Occupant> occupants;
  for (size_t i = 0; i < program_->values.size(); ++i) {
    const ProgramValue& other = program_->values[i];
    if (static_cast<int32_t>(i) == id || other.segment != mine.segment ||
        other.weight != mine.weight) {
      continue;
    }
    const bool overlaps =
        !mine.weight.empty() || (other.offset_bytes < mine.offset_bytes + mine.size_bytes &&
                                 mine.offset_bytes < other.offset_bytes + other.size_bytes);
    if (!overlaps) continue;
    const bool reused = other.segment == Segment::kWork;
    occupants.push_back(
        {static_cast<int32_t>(i), reused ? other.first_step : 0, reused ? other.last_step : last});
  }
  return occupants;
}

std::string Arena::describe(int32_t id) const {
  const TensorView& v = view(id);
  return fmt::format("{} ({}[{}])", value(id).name, to_string(v.dtype),
                     fmt::join(v.extents.begin(), v.extents.begin() + v.rank, ", "));
}

void Arena::check_idle() const {
  if (busy_.load(std::memory_order_acquire)) {
    throw_error(ErrorCode::kInvalidArgument,
                "The arena is being used by a run; read and write it before or after.");
  }
}

void Arena::check_contiguous(int32_t id) const {
  if (!view(id).is_contiguous()) {
    throw_error(ErrorCode::kInvalidArgument,
                "{} is a strided view; its elements are not one run of "
                "bytes.",
                describe(id));
  }
}

void Arena::check_writable(int32_t id) const {
  if (value(id).segment == Segment::kWeights) {
    throw_error(ErrorCode::kInvalidArgument, "{} is a weight or constant and can only be read.",
                describe(id));
  }
}

std::byte* Arena::checked_data(int32_t id, DType dtype, bool for_writing) const {
  check_idle();
  if (view(id).dtype != dtype) {
    throw_error(ErrorCode::kInvalidArgument, "{} is asked for as {}.", describe(id),
                to_string(dtype));
  }
  check_contiguous(id);
  if (for_writing) check_writable(id);
  return view(id).data;
}

Arena::Rows Arena::rows_of(int32_t id) const {
  const TensorView& v = view(id);
  for (int axis = 0; axis < v.rank; ++axis) {
    if (v.extents[axis] == 1 && axis + 1 < v.rank) continue;
    int64_t elements = 1;
    for (int inner = axis + 1; inner < v.rank; ++inner) elements *= v.extents[inner];
    return {v.extents[axis], elements};
  }
  return {1, 1};
}

void Arena::check_rows(int32_t id, int64_t first_row, int64_t num_rows) const {
  const Rows rows = rows_of(id);
  if (first_row < 0 || num_rows < 0 || first_row > rows.count ||
      num_rows > rows.count - first_row) {
    throw_error(ErrorCode::kOutOfRange,
                "{} rows from row {} of {} are asked for, but it has {} rows.", num_rows, first_row,
                describe(id), rows.count);
  }
}

namespace {

// Bytes of `elements` elements that start at an element which begins a block.
int64_t offset_of(DType dtype, int64_t elements) {
  return elements / elements_per_block(dtype) * bytes_per_block(dtype);
}

}  // namespace

void Arena::read_converted(int32_t id, int64_t first_row, int64_t num_rows, DType to,
                           std::span<std::byte> into, const ConvertOptions& options) const {
  check_idle();
  check_contiguous(id);
  const Rows rows = rows_of(id);
  const int64_t elements = num_rows < 0 ? num_elements(id) : num_rows * rows.elements;
  const int64_t given = static_cast<int64_t>(into.size()) / bytes_per_block(to);
  if (given != elements) {
    throw_error(ErrorCode::kInvalidArgument,
                "{} elements of {} are to be read into a place for {}.", elements, describe(id),
                given);
  }
  if (elements == 0) return;
  const DType from = view(id).dtype;
  const std::byte* source = view(id).data + offset_of(from, first_row * rows.elements);
  with_context(describe(id),
               [&] { convert_elements(from, source, to, into.data(), elements, options); });
}

void Arena::write_converted(int32_t id, int64_t first_row, int64_t num_rows, DType from,
                            std::span<const std::byte> source, const ConvertOptions& options) {
  check_idle();
  check_contiguous(id);
  check_writable(id);
  const Rows rows = rows_of(id);
  const int64_t elements = num_rows < 0 ? num_elements(id) : num_rows * rows.elements;
  const int64_t given = static_cast<int64_t>(source.size()) / bytes_per_block(from);
  if (given != elements) {
    throw_error(ErrorCode::kInvalidArgument, "{} elements are given for {} elements of {}.", given,
                elements, describe(id));
  }
  if (elements == 0) return;
  const DType to = view(id).dtype;
  std::byte* target = view(id).data + offset_of(to, first_row * rows.elements);
  with_context(describe(id), [&] {
    if (!is_packed(to)) {
      convert_elements(from, source.data(), to, target, elements, options);
      return;
    }
    std::vector<float> floats(static_cast<size_t>(elements));
    convert_elements(from, source.data(), DType::kF32, reinterpret_cast<std::byte*>(floats.data()),
                     elements, options);
    encode_row(to, floats.data(), elements, target);
  });
}

void Arena::check_same_dtype(DType from, int32_t from_id, int32_t to_id) const {
  if (from != view(to_id).dtype) {
    throw_error(ErrorCode::kInvalidArgument,
                "Value {} of {} cannot be copied to {}: the element types differ.", from_id,
                to_string(from), describe(to_id));
  }
}

void Arena::copy(int32_t from, int32_t to) {
  if (num_elements(from) != num_elements(to)) {
    throw_error(ErrorCode::kInvalidArgument,
                "{} cannot be copied to {}: the element counts differ.", describe(from),
                describe(to));
  }
  copy_first(from, to, num_elements(from));
}

void Arena::copy_first(int32_t from, int32_t to, int64_t elements) {
  check_idle();
  check_same_dtype(dtype(from), from, to);
  check_contiguous(from);
  check_contiguous(to);
  check_writable(to);
  if (elements < 0 || elements > num_elements(from) || elements > num_elements(to)) {
    throw_error(ErrorCode::kOutOfRange, "{} elements are to be copied from {} to {}.", elements,
                describe(from), describe(to));
  }
  std::memmove(view(to).data, view(from).data,
               static_cast<size_t>(storage_bytes(dtype(from), elements)));
}

void Arena::copy_rows(int32_t from, int64_t from_row, int32_t to, int64_t to_row,
                      int64_t num_rows) {
  check_idle();
  check_same_dtype(dtype(from), from, to);
  check_contiguous(from);
  check_contiguous(to);
  check_writable(to);
  check_rows(from, from_row, num_rows);
  check_rows(to, to_row, num_rows);
  const int64_t elements = rows_of(from).elements;
  if (elements != rows_of(to).elements) {
    throw_error(ErrorCode::kInvalidArgument, "A row of {} has {} elements, but a row of {} has {}.",
                describe(from), elements, describe(to), rows_of(to).elements);
  }
  const DType type = dtype(from);
  std::memmove(view(to).data + offset_of(type, to_row * elements),
               view(from).data + offset_of(type, from_row * elements),
               static_cast<size_t>(storage_bytes(type, num_rows * elements)));
}

void Arena::copy_from(const Arena& other, int32_t from, int32_t to) {
  check_idle();
  other.check_idle();
  check_same_dtype(other.dtype(from), from, to);
  if (other.shape(from) != shape(to)) {
    throw_error(ErrorCode::kInvalidArgument, "{} cannot be copied to {}: the shapes differ.",
                other.describe(from), describe(to));
  }
  other.check_contiguous(from);
  check_contiguous(to);
  check_writable(to);
  std::memmove(view(to).data, other.view(from).data, static_cast<size_t>(value_bytes(to)));
}

namespace {

void check_byte_range(int64_t offset, size_t count, int64_t size, const std::string& what) {
  // Compared without a sum, which could overflow.
  if (offset < 0 || offset > size ||
      static_cast<uint64_t>(count) > static_cast<uint64_t>(size - offset)) {
    throw_error(ErrorCode::kOutOfRange, "{} bytes at offset {} are asked for, but {} has {} bytes.",
                count, offset, what, size);
  }
}

}  // namespace

void Arena::read_bytes(int32_t id, int64_t offset_bytes, std::span<std::byte> into) const {
  check_idle();
  check_contiguous(id);
  check_byte_range(offset_bytes, into.size(), value_bytes(id), describe(id));
  if (!into.empty()) std::memcpy(into.data(), view(id).data + offset_bytes, into.size());
}

void Arena::write_bytes(int32_t id, int64_t offset_bytes, std::span<const std::byte> from) {
  check_idle();
  check_contiguous(id);
  check_writable(id);
  check_byte_range(offset_bytes, from.size(), value_bytes(id), describe(id));
  if (!from.empty()) std::memmove(view(id).data + offset_bytes, from.data(), from.size());
}

}  // namespace rlx

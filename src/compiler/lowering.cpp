#include "compiler/lowering.h"

#include <algorithm>
#include <limits>
#include <map>

#include "base/checked.h"
#include "ops/elementwise.h"
#include "ops/move.h"

namespace rlx {
namespace {

constexpr int32_t kAfterTheEnd = std::numeric_limits<int32_t>::max();

class Lowering {
 public:
  Lowering(const Graph& graph, const Target& target, const LowerOptions& options)
      : graph_(graph), target_(target), options_(options) {}

  Lowered run() {
    program().name = graph_.name();
    program().symbols = graph_.symbols();
    value_of_.assign(graph_.values().size(), -1);
    find_last_users();
    for (size_t i = 0; i < graph_.nodes().size(); ++i) {
      node_index_ = static_cast<int32_t>(i);
      const Node& node = graph_.node(node_index_);
      switch (node.op.kind().meaning) {
        case Meaning::kSource:
          lower_source(node);
          break;
        case Meaning::kLayout:
          lower_view(node);
          break;
        default:
          if (!options_.join_concatenations || !join_concatenation(node)) lower_compute(node);
      }
    }
    lower_outputs();
    finish_parts();
    return std::move(lowered_);
  }

 private:
  Program& program() { return lowered_.program; }
  int32_t step() const { return static_cast<int32_t>(lowered_.program.instructions.size()); }

  void find_last_users() {
    last_user_.assign(graph_.values().size(), -1);
    is_output_.assign(graph_.values().size(), false);
    for (size_t i = 0; i < graph_.nodes().size(); ++i) {
      for (ValueId input : graph_.node(static_cast<int32_t>(i)).inputs) {
        last_user_[input.index] = static_cast<int32_t>(i);
      }
    }
    for (const GraphOutput& output : graph_.outputs()) {
      last_user_[output.value.index] = kAfterTheEnd;
      is_output_[output.value.index] = true;
    }
  }

  int32_t add_storage(Segment segment, int64_t size_bytes) {
    lowered_.storages.push_back({segment, size_bytes});
    storage_last_user_.push_back(-1);
    return static_cast<int32_t>(lowered_.storages.size()) - 1;
  }

  int32_t add_value(int32_t storage, TensorType type, Layout layout, std::string name,
                    const Node& node) {
    ProgramValue value;
    value.name = std::move(name);
    value.source = node.source;
    value.op = node.op.name();
    value.type = std::move(type);
    value.layout = std::move(layout);
    program().values.push_back(std::move(value));
    lowered_.storage_of_value.push_back(storage);
    return static_cast<int32_t>(program().values.size()) - 1;
  }

  // Makes `value` stand for the graph's value, and keeps the storage alive for its users.
  void bind(ValueId id, int32_t value) {
    value_of_[id.index] = value;
    int32_t& last = storage_last_user_[find_whole(lowered_.storage_of_value[value])];
    last = std::max(last, last_user_[id.index]);
  }

  // The storage that holds the bytes of `storage`: itself, or what it is a part of in the end.
  int32_t find_whole(int32_t storage) const {
    while (lowered_.storages[storage].part_of >= 0) storage = lowered_.storages[storage].part_of;
    return storage;
  }

  std::string name_of(ValueId id) const {
    const std::string& name = graph_.value(id).name;
    return name.empty() ? fmt::format("%{}", id.index) : "%" + name;
  }

  void lower_source(const Node& node) {
    const ValueId id = node.outputs[0];
    const TensorType& type = graph_.type(id);
    const int64_t size = upper_bound_bytes(type, graph_.symbols());
    Segment segment = Segment::kWeights;
    if (node.op.is<Input>()) segment = Segment::kIo;
    if (node.op.is<State>()) segment = Segment::kState;
    const int32_t storage = add_storage(segment, size);
    const int32_t value =
        add_value(storage, type, make_contiguous_layout(type.shape), name_of(id), node);
    bind(id, value);
    if (const Input* input = node.op.as<Input>()) {
      program().inputs.push_back({input->name, value});
    } else if (const State* state = node.op.as<State>()) {
      program().states.push_back({state->name, value});
    } else if (const Weight* weight = node.op.as<Weight>()) {
      program().values[value].weight = weight->name;
      program().weights.push_back({weight->name, value});
    } else if (const Constant* constant = node.op.as<Constant>()) {
      std::vector<std::byte>& bytes = program().constants;
      bytes.resize(align_up(static_cast<int64_t>(bytes.size()), target_.alignment_bytes()));
      lowered_.storages[storage].offset_bytes = static_cast<int64_t>(bytes.size());
      bytes.insert(bytes.end(), constant->data->bytes.begin(), constant->data->bytes.end());
    }
  }

  void lower_view(const Node& node) {
    int32_t input = value_of_[node.inputs[0].index];
    const TensorType& type = graph_.type(node.outputs[0]);
    std::optional<Layout> layout = view_layout(node, input, type);
    if (!layout) {
      input = materialize(input, node, "the view does not follow from these strides");
      layout = view_layout(node, input, type);
      RLX_CHECK(layout.has_value(), "op '{}' has no layout on a contiguous input", node.op.name());
    }
    bind(node.outputs[0], add_value(lowered_.storage_of_value[input], type, std::move(*layout),
                                    name_of(node.outputs[0]), node));
    ProgramValue& view = program().values.back();
    view.weight = program().values[input].weight;
  }

  std::optional<Layout> view_layout(const Node& node, int32_t input, const TensorType& type) {
    const ProgramValue& value = program().values[input];
    return node.op.kind().layout(node.op.attributes(), {value.type, value.layout, type});
  }

  // A contiguous copy of a value; made once, whoever asks.
  int32_t materialize(int32_t value, const Node& consumer, std::string_view reason) {
    const auto known = copies_.find(value);
    if (known != copies_.end()) {
      // The copy's storage must last for this consumer too.
      touch(known->second, step());
      return known->second;
    }
    const ProgramValue original = program().values[value];
    const TensorType& type = original.type;
    const int64_t size = upper_bound_bytes(type, graph_.symbols());
    const int32_t storage = add_storage(Segment::kWork, size);
    const Node copy_node{Op(Copy{}), {}, {}, consumer.source};
    const int32_t copy = add_value(storage, type, make_contiguous_layout(type.shape),
                                   original.name + ".copy", copy_node);
    // Consumers of the original may use the copy as long as the original lives.
    storage_last_user_[storage] = kAfterTheEnd;
    emit(copy_node, {value}, {copy}, choose(copy_node, {value}, {type}));
    program().materialized.push_back({original.name,
                                      fmt::format("{} ({})", consumer.op.name(), consumer.source),
                                      std::string(reason), size});
    copies_.emplace(value, copy);
    return copy;
  }

  KernelChoice choose(const Node& node, const std::vector<int32_t>& inputs,
                      const std::vector<TensorType>& outputs) {
    std::string reasons;
    std::optional<KernelChoice> choice = find_kernel(node, inputs, outputs, &reasons);
    if (!choice) fail_unsupported(node, inputs, reasons);
    return *choice;
  }

  std::optional<KernelChoice> find_kernel(const Node& node, const std::vector<int32_t>& inputs,
                                          const std::vector<TensorType>& outputs,
                                          std::string* reasons) {
    std::vector<TensorType> types;
    std::vector<Layout> layouts;
    for (int32_t input : inputs) {
      types.push_back(program().values[input].type);
      layouts.push_back(program().values[input].layout);
    }
    return target_.choose_kernel({node.op, types, layouts, outputs, graph_.symbols()}, reasons);
  }

  [[noreturn]] void fail_unsupported(const Node& node, const std::vector<int32_t>& inputs,
                                     const std::string& reasons) {
    std::string types;
    for (int32_t input : inputs) {
      types += (types.empty() ? "" : ", ") + to_string(program().values[input].type);
    }
    throw_error(ErrorCode::kUnsupported, "Target '{}' has no kernel for op '{}' on ({}){}: {}.",
                target_.name(), node.op.name(), types,
                node.source.empty() ? "" : " of '" + node.source + "'",
                reasons.empty() ? "none is known" : reasons);
  }

  void lower_compute(const Node& node) {
    std::vector<int32_t> inputs;
    for (ValueId input : node.inputs) inputs.push_back(value_of_[input.index]);
    std::vector<TensorType> types;
    for (ValueId output : node.outputs) types.push_back(graph_.type(output));

    std::string reasons;
    std::optional<KernelChoice> choice = find_kernel(node, inputs, types, &reasons);
    // Copies make the inputs contiguous one by one, the last first, until a kernel accepts: weights
    // come last and are contiguous already, so the first copy is the one that most often helps.
    for (size_t i = inputs.size(); i-- > 0 && !choice;) {
      if (static_cast<int>(i) == node.op.kind().in_place_input) continue;
      const ProgramValue& value = program().values[inputs[i]];
      if (is_contiguous(value.type.shape, value.layout)) continue;
      inputs[i] = materialize(inputs[i], node, reasons);
      choice = find_kernel(node, inputs, types, nullptr);
    }
    if (!choice) fail_unsupported(node, inputs, reasons);

    const int in_place = node.op.kind().in_place_input;
    if (in_place >= 0) {
      check_old_content(find_whole(lowered_.storage_of_value[inputs[in_place]]), node);
    }
    std::vector<int32_t> outputs;
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      const ValueId id = node.outputs[i];
      const int32_t storage = pick_storage(node, static_cast<int>(i), inputs, *choice);
      Layout layout = make_contiguous_layout(types[i].shape);
      if (i == 0 && in_place >= 0) layout = program().values[inputs[in_place]].layout;
      outputs.push_back(add_value(storage, types[i], std::move(layout), name_of(id), node));
      bind(id, outputs.back());
    }
    emit(node, std::move(inputs), std::move(outputs), *choice);
  }

  // A state read after an update gives its new content. A view of it, or the result of an earlier
  // update, was another value at its place in the graph, so reading it afterwards is refused.
  void check_old_content(int32_t storage, const Node& node) const {
    for (size_t i = 0; i < value_of_.size(); ++i) {
      const int32_t value = value_of_[i];
      if (value < 0 || find_whole(lowered_.storage_of_value[value]) != storage) continue;
      const bool is_state = graph_.producer({static_cast<int32_t>(i)}).op.is<State>();
      if (is_state || last_user_[i] <= node_index_) continue;
      throw_error(ErrorCode::kUnsupported,
                  "Op '{}'{} updates bytes in place that {} lies in, which is used afterwards.",
                  node.op.name(), node.source.empty() ? "" : " of '" + node.source + "'",
                  lowered_.program.values[value].name);
    }
  }

  int32_t pick_storage(const Node& node, int output, const std::vector<int32_t>& inputs,
                       const KernelChoice& choice) {
    const ValueId id = node.outputs[output];
    const int in_place = node.op.kind().in_place_input;
    if (output == 0 && in_place >= 0) {
      return lowered_.storage_of_value[inputs[in_place]];
    }
    const TensorType& type = graph_.type(id);
    const int64_t size = upper_bound_bytes(type, graph_.symbols());
    if (is_output_[id.index]) return add_storage(Segment::kIo, size);
    if (output == 0) {
      for (size_t i = 0; i < inputs.size() && i < 32; ++i) {
        if ((choice.may_alias_inputs >> i & 1) != 0 && can_take_over(inputs, i, type, choice)) {
          return lowered_.storage_of_value[inputs[i]];
        }
      }
    }
    return add_storage(Segment::kWork, size);
  }

  // True when the output may be written over input i: the input dies here, has the same elements at
  // the same places, and no other input reads those bytes in another order.
  bool can_take_over(const std::vector<int32_t>& inputs, size_t i, const TensorType& type,
                     const KernelChoice& choice) {
    const ProgramValue& value = program().values[inputs[i]];
    const int32_t storage = lowered_.storage_of_value[inputs[i]];
    if (lowered_.storages[storage].segment != Segment::kWork) return false;
    if (lowered_.storages[storage].part_of >= 0) return false;
    if (storage_last_user_[storage] != node_index_) return false;
    if (value.type.shape != type.shape ||
        bytes_per_block(value.type.dtype) != bytes_per_block(type.dtype)) {
      return false;
    }
    if (!value.layout.offset.is(0) || !is_contiguous(value.type.shape, value.layout)) return false;
    for (size_t k = 0; k < inputs.size(); ++k) {
      if (find_whole(lowered_.storage_of_value[inputs[k]]) != storage || k == i) continue;
      const ProgramValue& other = program().values[inputs[k]];
      const bool same = other.layout == value.layout && other.type == value.type;
      if (!same || k >= 32 || (choice.may_alias_inputs >> k & 1) == 0) return false;
    }
    return true;
  }

  // Makes the output of a concatenation from its parts' own bytes: possible where the parts follow
  // one another in memory and begin at aligned places. A part that lies in bytes which cannot move
  // there is copied.
  bool join_concatenation(const Node& node) {
    const Concat* concat = node.op.as<Concat>();
    if (concat == nullptr) return false;
    const TensorType& type = graph_.type(node.outputs[0]);
    const size_t axis = concat->axis < 0 ? concat->axis + type.shape.size() : concat->axis;
    for (size_t i = 0; i < axis; ++i) {
      if (!type.shape[i].is(1)) return false;
    }
    std::vector<int64_t> offsets;
    int64_t end = 0;
    for (ValueId input : node.inputs) {
      const TensorType& part = graph_.type(input);
      if (end % target_.alignment_bytes() != 0) return false;
      if (!std::ranges::all_of(part.shape, [](const Dim& d) { return d.is_constant(); })) {
        return false;
      }
      offsets.push_back(end);
      end = checked_add(end, upper_bound_bytes(part, graph_.symbols()));
    }
    const bool is_output = is_output_[node.outputs[0].index];
    const int32_t whole = add_storage(is_output ? Segment::kIo : Segment::kWork, end);
    const int32_t output =
        add_value(whole, type, make_contiguous_layout(type.shape), name_of(node.outputs[0]), node);
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      int32_t part = value_of_[node.inputs[i].index];
      if (!may_become_part(part)) {
        const ProgramValue original = program().values[part];
        const Node copy_node{Op(Copy{}), {}, {}, node.source};
        const int32_t place =
            add_storage(Segment::kWork, upper_bound_bytes(original.type, graph_.symbols()));
        part = add_value(place, original.type, make_contiguous_layout(original.type.shape),
                         original.name + ".part", copy_node);
        const int32_t from = value_of_[node.inputs[i].index];
        emit(copy_node, {from}, {part}, choose(copy_node, {from}, {original.type}));
      } else {
        ++lowered_.num_joined_parts;
      }
      Storage& storage = lowered_.storages[lowered_.storage_of_value[part]];
      storage.part_of = whole;
      storage.part_offset_bytes = offsets[i];
      storage_last_user_[whole] =
          std::max(storage_last_user_[whole], storage_last_user_[lowered_.storage_of_value[part]]);
    }
    bind(node.outputs[0], output);
    return true;
  }

  // True when the value is all of a storage of work that is not a part of something yet.
  bool may_become_part(int32_t value) const {
    const ProgramValue& part = lowered_.program.values[value];
    const Storage& storage = lowered_.storages[lowered_.storage_of_value[value]];
    return storage.segment == Segment::kWork && storage.part_of < 0 && part.layout.offset.is(0) &&
           is_contiguous(part.type.shape, part.layout) &&
           storage.size_bytes == upper_bound_bytes(part.type, graph_.symbols());
  }

  // A whole and its parts lie in one segment and stay until the last use of any of them.
  void finish_parts() {
    std::vector<Storage>& storages = lowered_.storages;
    for (size_t i = 0; i < storages.size(); ++i) {
      Storage& whole = storages[find_whole(static_cast<int32_t>(i))];
      whole.last_step = std::max(whole.last_step, storages[i].last_step);
    }
    for (size_t i = 0; i < storages.size(); ++i) {
      const Storage& whole = storages[find_whole(static_cast<int32_t>(i))];
      storages[i].segment = whole.segment;
      storages[i].last_step = whole.last_step;
    }
  }

  void touch(int32_t value, int32_t at_step) {
    Storage& storage = lowered_.storages[lowered_.storage_of_value[value]];
    if (storage.segment != Segment::kWork) return;
    if (storage.first_step < 0) storage.first_step = at_step;
    storage.last_step = std::max(storage.last_step, at_step);
  }

  void emit(const Node& node, std::vector<int32_t> inputs, std::vector<int32_t> outputs,
            const KernelChoice& choice) {
    for (int32_t input : inputs) touch(input, step());
    for (int32_t output : outputs) touch(output, step());
    Instruction instruction{
        choice.kernel, node.op, std::move(inputs), std::move(outputs), 0, 0, {}};
    instruction.scratch_bytes = choice.scratch_bytes;
    instruction.source = node.source;
    program().instructions.push_back(std::move(instruction));
  }

  // An output is a value of its own in io: what is a view, a source or in-place state is copied
  // there.
  void lower_outputs() {
    for (const GraphOutput& output : graph_.outputs()) {
      int32_t value = value_of_[output.value.index];
      if (lowered_.storages[lowered_.storage_of_value[value]].segment != Segment::kIo ||
          graph_.producer(output.value).op.is<Input>() ||
          graph_.producer(output.value).op.kind().meaning == Meaning::kLayout) {
        const TensorType type = program().values[value].type;
        const Node copy_node{Op(Copy{}), {}, {}, graph_.producer(output.value).source};
        const int32_t storage =
            add_storage(Segment::kIo, upper_bound_bytes(type, graph_.symbols()));
        const int32_t copy = add_value(storage, type, make_contiguous_layout(type.shape),
                                       "%" + output.name, copy_node);
        emit(copy_node, {value}, {copy}, choose(copy_node, {value}, {type}));
        value = copy;
      }
      program().outputs.push_back({output.name, value});
    }
  }

  const Graph& graph_;
  const Target& target_;
  const LowerOptions options_;
  Lowered lowered_;
  int32_t node_index_ = 0;
  std::vector<int32_t> value_of_;           // program value by graph value
  std::vector<int32_t> last_user_;          // node index by graph value
  std::vector<bool> is_output_;             // by graph value
  std::vector<int32_t> storage_last_user_;  // node index by storage
  std::map<int32_t, int32_t> copies_;       // contiguous copy by program value
};

}  // namespace

Lowered lower(const Graph& graph, const Target& target, const LowerOptions& options) {
  return Lowering(graph, target, options).run();
}

}  // namespace rlx

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>

#include "api/compiled_model.h"
#include "backends/cpu/session.h"
#include "base/error.h"
#include "base/thread_pool.h"
#include "commands.h"
#include "frontends/npy/npy.h"
#include "models/config.h"
#include "tensor/convert.h"
#include "tensor/storage.h"

namespace rlx::cli {
namespace {

using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

struct NamedFile {
  std::string name, file;
};

NamedFile split_named_file(const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) {
    throw_error(ErrorCode::kInvalidArgument, "'{}' is not of the form NAME=FILE.npy.", text);
  }
  return {text.substr(0, equals), text.substr(equals + 1)};
}

using Arrays = std::map<std::string, NpyArray>;

Arrays read_inputs(const std::vector<std::string>& texts) {
  Arrays arrays;
  for (const std::string& text : texts) {
    const NamedFile input = split_named_file(text);
    if (arrays.contains(input.name)) {
      throw_error(ErrorCode::kInvalidArgument, "The input '{}' is given twice.", input.name);
    }
    arrays.emplace(input.name, read_npy(input.file));
  }
  return arrays;
}

// Every model has them; the program is planned for their shape.
const NpyArray& find_token_ids(const Arrays& arrays) {
  const auto found = arrays.find("input_ids");
  if (found == arrays.end()) {
    std::string given;
    for (const auto& [name, array] : arrays) given += (given.empty() ? "'" : ", '") + name + "'";
    throw_error(ErrorCode::kInvalidArgument, "The inputs are {}, but every model has 'input_ids'.",
                given);
  }
  return found->second;
}

void check_token_ids(const NpyArray& array, int64_t vocab_size) {
  std::vector<int64_t> ids(array.data.size() / bytes_per_block(array.dtype));
  convert_elements(array.dtype, array.data.data(), DType::kI64,
                   reinterpret_cast<std::byte*>(ids.data()), static_cast<int64_t>(ids.size()));
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0 || ids[i] >= vocab_size) {
      throw_error(ErrorCode::kOutOfRange,
                  "Input 'input_ids': token id {} at position {} is outside the vocabulary of {} "
                  "tokens.",
                  ids[i], i, vocab_size);
    }
  }
}

// An encoder's inputs that mean nothing special when they are absent: every token counts, and all
// are of the first segment.
void add_default_inputs(const Program& program, Arrays& arrays) {
  const NpyArray& ids = arrays.at("input_ids");
  for (const auto& [name, value] : {std::pair{"attention_mask", 1}, {"token_type_ids", 0}}) {
    const bool is_known = std::any_of(program.inputs.begin(), program.inputs.end(),
                                      [&](const NamedValue& input) { return input.name == name; });
    if (!is_known || arrays.contains(name)) continue;
    NpyArray array;
    array.dtype = DType::kI64;
    array.shape = ids.shape;
    const std::vector<int64_t> values(ids.data.size() / bytes_per_block(ids.dtype), value);
    const auto bytes = std::as_bytes(std::span(values));
    array.data.assign(bytes.begin(), bytes.end());
    arrays.emplace(name, std::move(array));
  }
}

void check_names(const Program& program, const Arrays& arrays) {
  for (const auto& [name, array] : arrays) find_input(program, name);
  for (const NamedValue& input : program.inputs) {
    if (!arrays.contains(input.name)) {
      throw_error(ErrorCode::kInvalidArgument, "The input '{}' is missing; {} is expected.",
                  input.name, to_string(program.values[input.value].type));
    }
  }
}

// Integers of another width convert.
void check_type(const std::string& name, const NpyArray& array, const TensorType& type,
                const SymbolTable& symbols) {
  bool fits = array.dtype == type.dtype || (is_integer(array.dtype) && is_integer(type.dtype));
  fits = fits && static_cast<int>(array.shape.size()) == type.rank();
  for (size_t axis = 0; fits && axis < array.shape.size(); ++axis) {
    const Dim& extent = type.shape[axis];
    fits = extent.is_constant() ? array.shape[axis] == extent.constant()
                                : array.shape[axis] >= extent.lower_bound(symbols);
  }
  if (fits) return;
  throw_error(ErrorCode::kInvalidArgument, "Input '{}' is {}[{}], but {} is expected.", name,
              to_string(array.dtype), fmt::join(array.shape, ", "), to_string(type));
}

// The symbols' values: an extent that is a bare symbol takes what the array has there. A symbol
// that no input has, such as the number of past tokens, is at its least.
std::vector<int64_t> find_extents(const Program& program, const Arrays& arrays) {
  std::vector<int64_t> values;
  for (const Symbol& symbol : program.symbols.symbols()) values.push_back(symbol.lower);
  for (const NamedValue& input : program.inputs) {
    const TensorType& type = program.values[input.value].type;
    const NpyArray& array = arrays.at(input.name);
    check_type(input.name, array, type, program.symbols);
    for (size_t axis = 0; axis < type.shape.size(); ++axis) {
      const auto terms = type.shape[axis].terms();
      const bool bare = type.shape[axis].constant_part() == 0 && terms.size() == 1 &&
                        terms[0].coefficient == 1 && terms[0].symbols.size() == 1;
      if (!bare) continue;
      const int32_t symbol = program.symbols.index_of(terms[0].symbols[0]);
      const int64_t most = program.symbols.symbols()[symbol].upper;
      if (array.shape[axis] > most) {
        throw_error(ErrorCode::kOutOfRange, "Input '{}': {} {} do not fit; {} is the most.",
                    input.name, array.shape[axis], terms[0].symbols[0], most);
      }
      values[symbol] = array.shape[axis];
    }
  }
  return values;
}

// Copies the array into the input, whose extents the run has set.
void write_input(Session& session, int index, const NpyArray& array, const std::string& name) {
  const TensorView view = session.input(index);
  const std::vector<int64_t> expected(view.extents.begin(), view.extents.begin() + view.rank);
  if (array.shape != expected) {
    throw_error(ErrorCode::kInvalidArgument,
                "Input '{}' has the shape [{}], but with the other inputs [{}] is expected.", name,
                fmt::join(array.shape, ", "), fmt::join(expected, ", "));
  }
  convert_elements(array.dtype, array.data.data(), view.dtype, view.data, view.num_elements());
}

void write_output(const TensorView& view, const std::string& file) {
  const int64_t bytes = storage_bytes(view.dtype, view.num_elements());
  write_npy(file, view.dtype, std::span(view.extents.data(), static_cast<size_t>(view.rank)),
            {view.data, static_cast<size_t>(bytes)});
}

CompiledModel compile_for(const RunOptions& options, const NpyArray& ids,
                          const std::vector<NamedFile>& outputs) {
  const auto bound = [&](size_t axis) {
    return axis < ids.shape.size() ? std::max<int64_t>(ids.shape[axis], 1) : 1;
  };
  LanguageModelOptions load = make_load_options(options.model, DType::kF32);
  load.max_tokens = bound(1);
  // One run from the start needs no more; longrope then turns as for a text of this length.
  if (load.context == 0) load.context = load.max_tokens;
  GraphOptions graph = make_graph_options(load);
  graph.max_batch = bound(0);
  graph.all_logits = true;
  for (const NamedFile& output : outputs) {
    graph.hidden_states = graph.hidden_states || output.name.starts_with("hidden.");
  }
  return compile_model(ModelFile::open(options.model.model), graph, make_target_options(load));
}

}  // namespace

int run_tensors(const RunOptions& options) {
  const Clock::time_point start = Clock::now();
  std::vector<NamedFile> outputs;
  for (const std::string& text : options.outputs) outputs.push_back(split_named_file(text));
  Arrays arrays = read_inputs(options.inputs);
  const NpyArray& ids = find_token_ids(arrays);
  const CompiledModel model = compile_for(options, ids, outputs);
  const Program& program = *model.program;
  add_default_inputs(program, arrays);
  check_names(program, arrays);
  const std::vector<int64_t> extents = find_extents(program, arrays);
  std::vector<int> indices;
  for (const NamedFile& output : outputs) indices.push_back(find_output(program, output.name));
  check_token_ids(ids, read_vocab_size(*model.file));

  const auto session = cpu::make_session(model.program, model.file,
                                         std::make_shared<ThreadPool>(model.target.max_threads),
                                         model.target, {.poison = options.model.poison});
  session->set_extents(extents).throw_if_failed();
  for (size_t i = 0; i < program.inputs.size(); ++i) {
    const std::string& name = program.inputs[i].name;
    write_input(*session, static_cast<int>(i), arrays.at(name), name);
  }
  const double load_ms = milliseconds_since(start);
  const Clock::time_point run_start = Clock::now();
  session->run().throw_if_failed();
  const double run_ms = milliseconds_since(run_start);
  for (size_t i = 0; i < outputs.size(); ++i) {
    write_output(session->output(indices[i]), outputs[i].file);
  }
  fmt::print(stderr, "load {:.1f} ms, run {:.1f} ms\n", load_ms, run_ms);
  return 0;
}

}  // namespace rlx::cli

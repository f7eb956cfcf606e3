#include "api/compiled_model.h"

#include <algorithm>
#include <functional>
#include <map>

#include "base/error.h"
#include "base/group_digits.h"
#include "base/mapped_file.h"
#include "base/thread_pool.h"
#include "ops/attention.h"
#include "ops/cache.h"

namespace rlx {

namespace {

bool is_half_or_float(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16;
}

}  // namespace

GraphOptions make_graph_options(const LanguageModelOptions& options) {
  if (!is_half_or_float(options.cache_dtype) && options.cache_dtype != DType::kQ8_0) {
    throw_error(ErrorCode::kUnsupported,
                "Caches of {} are not supported; f32, f16, bf16 and q8_0 are.",
                to_string(options.cache_dtype));
  }
  if (!is_half_or_float(options.rope_dtype)) {
    throw_error(ErrorCode::kUnsupported,
                "Rotary frequencies of {} are not supported; f32, f16 and bf16 are.",
                to_string(options.rope_dtype));
  }
  if (options.all_logits && options.parallel > 1) {
    throw_error(ErrorCode::kInvalidArgument,
                "Logits of every token are asked for with {} texts at once; 1 text has them.",
                options.parallel);
  }
  GraphOptions graph;
  graph.context = options.context;
  graph.texts = options.parallel;
  graph.max_tokens = options.max_tokens;
  graph.cache_dtype = options.cache_dtype;
  graph.rope_dtype = options.rope_dtype;
  graph.all_logits = options.all_logits;
  return graph;
}

cpu::TargetOptions make_target_options(const LanguageModelOptions& options) {
  if (options.threads < 0 || options.threads > 1024) {
    throw_error(ErrorCode::kInvalidArgument,
                "{} threads are asked for, but 1 to 1024 are expected.", options.threads);
  }
  cpu::TargetOptions target;
  target.max_threads = options.threads > 0 ? options.threads : count_usable_processors();
  target.quantize_activations = options.quantize_activations;
  if (options.max_allocation_bytes != 0) {
    if (options.max_allocation_bytes < kPageBytes) {
      throw_error(ErrorCode::kInvalidArgument,
                  "The largest allocation is to be {} bytes, but at least {} are expected.",
                  options.max_allocation_bytes, kPageBytes);
    }
    target.max_block_bytes = options.max_allocation_bytes / kPageBytes * kPageBytes;
  }
  return target;
}

CompiledModel compile_model(std::shared_ptr<const ModelFile> file, const GraphOptions& graph,
                            const cpu::TargetOptions& target,
                            const CompileOptions& compile_options) {
  const Graph built = build_graph(*file, graph);  // its errors name the file
  return with_context(file->path(), [&] {
    CompileResult result = compile(built, cpu::CpuTarget(target), compile_options);
    auto program = std::make_shared<const Program>(std::move(result.program));
    PlanReport report = make_plan_report(*program, file.get());
    return CompiledModel{file, std::move(program), std::move(result.optimized), target,
                         std::move(report)};
  });
}

namespace {

// The layers of a decoder whose caches have the same number of rows.
struct CacheGroup {
  int64_t layers = 0;
  int64_t row_bytes = 0;  // of a layer's keys and values
};

// The window of each layer's attention, by its cache: 0 where all rows are read.
std::map<int32_t, int64_t> find_windows(const Program& program) {
  std::map<int32_t, int64_t> windows;
  for (const Instruction& instruction : program.instructions) {
    int64_t window = 0;
    if (const auto* op = instruction.op.as<Attention>()) window = op->window;
    if (const auto* op = instruction.op.as<CachedAttention>()) window = op->window;
    if (window == 0) continue;
    const ProgramValue& keys = program.values[instruction.inputs[1]];
    for (const NamedValue& state : program.states) {
      const ProgramValue& value = program.values[state.value];
      if (value.segment == keys.segment && value.offset_bytes == keys.offset_bytes) {
        windows[state.value] = window;
      }
    }
  }
  return windows;
}

// "key/value cache, f16, 6 layers x 1,024 rows" for the states of a decoder; layers that keep only
// a window stand apart, with what that saves, or with the reason why they keep everything.
std::string describe_state(const Program& program) {
  if (program.states.empty()) return "none";
  const Symbol* past = program.symbols.find("past");
  std::map<int64_t, CacheGroup, std::greater<>> groups;  // by rows
  int64_t texts = 1, whole_windows = 0, largest_window = 0;
  const std::map<int32_t, int64_t> windows = find_windows(program);
  for (const NamedValue& state : program.states) {
    if (!state.name.starts_with("cache.k.")) continue;
    const TensorType& type = program.values[state.value].type;
    const int64_t rows = type.shape[1].constant();
    texts = type.shape[0].constant();
    CacheGroup& group = groups[rows];
    ++group.layers;
    group.row_bytes = 2 * upper_bound_bytes(type, program.symbols) / (rows * texts);
    const auto window = windows.find(state.value);
    if (past != nullptr && rows > past->upper && window != windows.end()) {
      ++whole_windows;
      largest_window = std::max(largest_window, window->second);
    }
  }
  if (groups.empty() || past == nullptr) return fmt::format("{} values", program.states.size());
  const int64_t context = past->upper + 1;
  const DType dtype = program.values[program.states[0].value].type.dtype;
  std::string text = fmt::format("key/value cache, {}", to_string(dtype));
  if (texts > 1) text += fmt::format(", {} texts", group_digits(texts));
  for (const auto& [rows, group] : groups) {
    text += fmt::format(", {} layers x {} rows", group.layers, group_digits(rows));
    if (rows >= context) continue;
    const int64_t saved = (context - rows) * group.row_bytes * group.layers * texts;
    text += fmt::format(" of a sliding window ({} B less than {} rows)", group_digits(saved),
                        group_digits(context));
  }
  if (whole_windows > 0) {
    text += fmt::format(
        ", {} of them for a sliding window of {}, which with the token batch takes "
        "no less",
        whole_windows, group_digits(largest_window));
  }
  return text;
}

int64_t count_assembled_bytes(const Program& program, const ModelFile& file) {
  int64_t bytes = 0;
  for (const NamedValue& weight : program.weights) {
    if (file.is_assembled(weight.name)) bytes += file.find(weight.name)->size_bytes;
  }
  return bytes;
}

}  // namespace

PlanReport make_plan_report(const Program& program, const ModelFile* file) {
  PlanReport report;
  for (int i = 0; i < kNumSegments; ++i) {
    const SegmentPlan& segment = program.plan.segments[i];
    report.segments.push_back({std::string(to_string(static_cast<Segment>(i))), segment.size_bytes,
                               segment.lower_bound_bytes, segment.optimal});
  }
  report.arena_bytes = program.plan.arena_bytes;
  for (const BlockPlan& block : program.plan.blocks) {
    report.blocks.push_back(
        {std::string(to_string(block.segment)), block.begin_bytes, block.size_bytes});
  }
  if (file != nullptr) {
    report.weight_files = file->list_files();
    report.assembled_weight_bytes = count_assembled_bytes(program, *file);
  }
  report.mapped_weight_bytes = program.plan.mapped_weight_bytes - report.assembled_weight_bytes;
  report.state_description = describe_state(program);
  report.unordered_bound_bytes = program.plan.unordered_bound_bytes;
  report.num_steps = static_cast<int64_t>(program.instructions.size());
  report.peak_step = program.plan.peak_step;
  report.peak_source = program.plan.peak_source;
  for (const PeakValue& value : program.plan.peak_values) {
    report.peak_values.push_back({value.name, value.source, value.size_bytes});
  }
  return report;
}

namespace {

Tokenizer load_gguf_tokenizer(const GgufFile& file) {
  const auto model = file.find_string("tokenizer.ggml.model");
  const auto tokens = file.find_string_array("tokenizer.ggml.tokens");
  if (!model || *model == "none" || *model == "no_vocab" || !tokens) {
    throw_error(ErrorCode::kNotFound, "{}: The file carries no vocabulary.", file.path());
  }
  const auto find_id = [&](std::string_view key) -> std::optional<int32_t> {
    const auto id = file.find_int(key);
    return id ? std::optional<int32_t>(static_cast<int32_t>(*id)) : std::nullopt;
  };
  GgufVocab vocab;
  vocab.model = *model;
  vocab.pre = file.find_string("tokenizer.ggml.pre").value_or("");
  vocab.tokens = *tokens;
  if (auto merges = file.find_string_array("tokenizer.ggml.merges")) vocab.merges = *merges;
  if (auto scores = file.find_float_array("tokenizer.ggml.scores")) vocab.scores = *scores;
  if (auto types = file.find_int_array("tokenizer.ggml.token_type")) {
    vocab.token_types.assign(types->begin(), types->end());
  }
  vocab.bos = find_id("tokenizer.ggml.bos_token_id");
  vocab.eos = find_id("tokenizer.ggml.eos_token_id");
  vocab.unk = find_id("tokenizer.ggml.unknown_token_id");
  vocab.pad = find_id("tokenizer.ggml.padding_token_id");
  vocab.cls = find_id("tokenizer.ggml.cls_token_id");
  vocab.sep = find_id("tokenizer.ggml.seperator_token_id");  // the format's own spelling
  vocab.add_bos = file.find_bool("tokenizer.ggml.add_bos_token");
  vocab.add_eos = file.find_bool("tokenizer.ggml.add_eos_token");
  vocab.add_space_prefix = file.find_bool("tokenizer.ggml.add_space_prefix");
  return make_tokenizer_from_gguf(vocab, file.path());
}

}  // namespace

Tokenizer load_tokenizer(const ModelFile& file) {
  if (file.gguf() != nullptr) return load_gguf_tokenizer(*file.gguf());
  const std::string path = file.path() + "/tokenizer.json";
  const MappedFile json(path);
  const std::string_view text(reinterpret_cast<const char*>(json.bytes().data()),
                              json.bytes().size());
  return make_tokenizer_from_json(text, path);
}

std::vector<int32_t> list_end_tokens(const ModelFile& file, const Tokenizer* tokenizer) {
  std::vector<int32_t> tokens = file.list_end_tokens();
  if (file.gguf() == nullptr) return tokens;
  const auto append = [&](int32_t id) {
    if (std::find(tokens.begin(), tokens.end(), id) == tokens.end()) tokens.push_back(id);
  };
  if (const auto id = file.gguf()->find_int("tokenizer.ggml.eom_token_id")) {
    if (*id >= 0 && *id <= INT32_MAX) append(static_cast<int32_t>(*id));
  }
  if (tokenizer == nullptr) return tokens;
  // Models whose turns have several messages end a turn with one of the first two, and only a
  // message with <|end|>.
  const bool has_messages =
      tokenizer->find_token("<|return|>") && tokenizer->find_token("<|call|>");
  for (const char* text : {"<|return|>", "<|call|>", "<|eot_id|>", "<|eom_id|>", "<|im_end|>",
                           "<|end|>", "<end_of_turn>", "<|endoftext|>"}) {
    if (has_messages && std::string_view(text) == "<|end|>") continue;
    const auto id = tokenizer->find_token(text);
    if (id && tokenizer->is_special(*id)) append(*id);
  }
  return tokens;
}

}  // namespace rlx

#include "rlx/embedding_model.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "api/compiled_model.h"
#include "backends/cpu/session.h"
#include "base/error.h"
#include "models/pooling.h"

namespace rlx {

struct EmbeddingModel::Parts {
  Parts(CompiledModel compiled, Tokenizer model_tokenizer, const Pooling& model_pooling,
        bool truncates)
      : model(std::move(compiled)),
        tokenizer(std::move(model_tokenizer)),
        pooling(model_pooling),
        truncate(truncates),
        session(cpu::make_session(model.program, model.file,
                                  std::make_shared<ThreadPool>(model.target.max_threads),
                                  model.target)),
        input_ids(find_input(*model.program, "input_ids")),
        attention_mask(find_input(*model.program, "attention_mask")),
        token_type_ids(find_input(*model.program, "token_type_ids")),
        hidden(find_output(*model.program, "last_hidden_state")),
        batch_symbol(model.program->symbols.index_of("batch")),
        tokens_symbol(model.program->symbols.index_of("tokens")) {
    const SymbolTable& symbols = model.program->symbols;
    extents.resize(symbols.symbols().size());
    max_batch = symbols.symbols()[batch_symbol].upper;
    max_tokens = symbols.symbols()[tokens_symbol].upper;
    const int32_t output = model.program->outputs[static_cast<size_t>(hidden)].value;
    num_dimensions = model.program->values[static_cast<size_t>(output)].type.shape[2].constant();
  }

  std::vector<int32_t> encode(const std::string& text, size_t index) const {
    std::vector<int32_t> tokens = tokenizer.encode(text);
    if (tokens.empty()) {
      throw_error(ErrorCode::kInvalidArgument, "Text {} has no tokens.", index + 1);
    }
    if (static_cast<int64_t>(tokens.size()) <= max_tokens) return tokens;
    if (!truncate) {
      throw_error(ErrorCode::kOutOfRange,
                  "{}: Text {} has {} tokens, but the model takes {}; truncation would cut it.",
                  model.file->path(), index + 1, tokens.size(), max_tokens);
    }
    // The token that ends a text stays its last one.
    tokens[static_cast<size_t>(max_tokens) - 1] = tokens.back();
    tokens.resize(static_cast<size_t>(max_tokens));
    return tokens;
  }

  // Runs the texts side by side, the shorter ones padded.
  void run(std::span<const std::vector<int32_t>> texts) {
    size_t longest = 0;
    for (const auto& tokens : texts) longest = std::max(longest, tokens.size());
    extents[batch_symbol] = static_cast<int64_t>(texts.size());
    extents[tokens_symbol] = static_cast<int64_t>(longest);
    session->set_extents(extents).throw_if_failed();
    auto* ids = session->input(input_ids).as<int64_t>();
    auto* mask = session->input(attention_mask).as<int64_t>();
    auto* types = session->input(token_type_ids).as<int64_t>();
    for (const auto& tokens : texts) {
      for (size_t i = 0; i < longest; ++i) {
        const bool is_there = i < tokens.size();
        *ids++ = is_there ? tokens[i] : 0;
        *mask++ = is_there ? 1 : 0;
        *types++ = 0;
      }
    }
    session->run().throw_if_failed();
  }

  // The vector of a text whose first token's row is at `rows`.
  std::vector<float> pool(const float* rows, size_t num_tokens) const {
    const auto size = static_cast<size_t>(num_dimensions);
    std::vector<double> sums(
        size, pooling.kind == PoolingKind::kMax ? -std::numeric_limits<double>::infinity() : 0.0);
    const size_t counted = pooling.kind == PoolingKind::kFirst ? 1 : num_tokens;
    for (size_t token = 0; token < counted; ++token) {
      for (size_t i = 0; i < size; ++i) {
        const double value = rows[token * size + i];
        sums[i] = pooling.kind == PoolingKind::kMax ? std::max(sums[i], value) : sums[i] + value;
      }
    }
    double divisor = 1;
    if (pooling.kind == PoolingKind::kMean) divisor = static_cast<double>(num_tokens);
    if (pooling.kind == PoolingKind::kMeanSquareRoot) {
      divisor = std::sqrt(static_cast<double>(num_tokens));
    }
    if (pooling.normalize) {
      double squares = 0;
      for (const double sum : sums) squares += sum / divisor * (sum / divisor);
      // Kept from zero as the reference implementation does.
      divisor *= std::max(std::sqrt(squares), 1e-12);
    }
    std::vector<float> vector;
    for (const double sum : sums) vector.push_back(static_cast<float>(sum / divisor));
    return vector;
  }

  CompiledModel model;
  Tokenizer tokenizer;
  Pooling pooling;
  bool truncate;
  std::unique_ptr<Session> session;
  int input_ids, attention_mask, token_type_ids, hidden;
  int32_t batch_symbol, tokens_symbol;
  std::vector<int64_t> extents;
  int64_t max_batch = 0, max_tokens = 0, num_dimensions = 0;
};

EmbeddingModel::EmbeddingModel(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
EmbeddingModel::EmbeddingModel(EmbeddingModel&&) noexcept = default;
EmbeddingModel& EmbeddingModel::operator=(EmbeddingModel&&) noexcept = default;
EmbeddingModel::~EmbeddingModel() = default;

EmbeddingModel EmbeddingModel::load(const std::string& path, const EmbeddingOptions& options) {
  const std::shared_ptr<const ModelFile> file = ModelFile::open(path);
  check_encoder(*file);
  const Pooling pooling = read_pooling(*file);
  LanguageModelOptions load;
  load.threads = options.threads;
  load.quantize_activations = options.quantize_activations;
  GraphOptions graph = make_graph_options(load);
  graph.max_batch = options.max_batch;
  // The graph takes the model's own length where that is less.
  constexpr int64_t kNoLimit = int64_t{1} << 31;
  graph.max_tokens =
      options.max_tokens > 0 ? options.max_tokens : pooling.max_tokens.value_or(kNoLimit);
  CompiledModel model = compile_model(file, graph, make_target_options(load));
  Tokenizer tokenizer = load_tokenizer(*file);
  const auto vocab_size = read_vocab_size(*file);
  if (tokenizer.vocab_size() > vocab_size) {
    throw_error(ErrorCode::kCorruptData, "{}: The tokenizer has {} tokens, but the model knows {}.",
                path, tokenizer.vocab_size(), vocab_size);
  }
  return EmbeddingModel(
      std::make_unique<Parts>(std::move(model), std::move(tokenizer), pooling, options.truncate));
}

std::vector<std::vector<float>> EmbeddingModel::embed(std::span<const std::string> texts) {
  Parts& p = *parts_;
  std::vector<std::vector<int32_t>> tokens;
  for (size_t i = 0; i < texts.size(); ++i) tokens.push_back(p.encode(texts[i], i));
  std::vector<std::vector<float>> vectors;
  for (size_t begin = 0; begin < tokens.size();) {
    const size_t count = std::min(tokens.size() - begin, static_cast<size_t>(p.max_batch));
    const auto batch = std::span(tokens).subspan(begin, count);
    p.run(batch);
    const TensorView hidden = p.session->output(p.hidden);
    for (size_t i = 0; i < count; ++i) {
      vectors.push_back(p.pool(hidden.as<float>() + static_cast<int64_t>(i) * hidden.strides[0],
                               batch[i].size()));
    }
    begin += count;
  }
  return vectors;
}

int64_t EmbeddingModel::num_dimensions() const { return parts_->num_dimensions; }
int64_t EmbeddingModel::max_tokens() const { return parts_->max_tokens; }
const PlanReport& EmbeddingModel::plan_report() const { return parts_->model.report; }

}  // namespace rlx

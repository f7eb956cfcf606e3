#include "model_runner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "api/compiled_model.h"
#include "backends/cpu/session.h"
#include "base/error.h"
#include "base/thread_pool.h"
#include "tensor/convert.h"

namespace rlx::model_testing {
namespace {

template <typename T>
std::vector<T> convert(const SafetensorsFile& file, const SafetensorsTensor& tensor, DType dtype) {
  int64_t count = 1;
  for (int64_t extent : tensor.shape) count *= extent;
  std::vector<T> values(static_cast<size_t>(count));
  convert_elements(tensor.dtype, file.data(tensor).data(), dtype,
                   reinterpret_cast<std::byte*>(values.data()), count);
  return values;
}

const SafetensorsTensor& find(const SafetensorsFile& file, const std::string& name) {
  const SafetensorsTensor* tensor = file.find_tensor(name);
  if (tensor == nullptr) throw_error(ErrorCode::kNotFound, "There is no tensor '{}'.", name);
  return *tensor;
}

void set_extents(Session& session, const std::map<std::string, IntTensor>& inputs) {
  const SymbolTable& symbols = session.program().symbols;
  std::vector<int64_t> extents(symbols.symbols().size(), 0);
  for (const NamedValue& input : session.program().inputs) {
    const Shape& shape = session.program().values[input.value].type.shape;
    if (!inputs.contains(input.name)) continue;  // zeros, as the arena begins
    const std::vector<int64_t>& given = inputs.at(input.name).shape;
    ASSERT_EQ(given.size(), shape.size());
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      if (!shape[axis].is_constant()) {
        extents[symbols.index_of(shape[axis].terms()[0].symbols[0])] = given[axis];
      }
    }
  }
  session.set_extents(extents).throw_if_failed();
}

}  // namespace

Expected::Expected(const std::string& path) : file_(path) {}

FloatTensor Expected::floats(const std::string& name) const {
  const SafetensorsTensor& tensor = find(file_, name);
  return {tensor.shape, convert<float>(file_, tensor, DType::kF32)};
}

IntTensor Expected::ints(const std::string& name) const {
  const SafetensorsTensor& tensor = find(file_, name);
  return {tensor.shape, convert<int64_t>(file_, tensor, DType::kI64)};
}

std::vector<int32_t> Expected::tokens(const std::string& name) const {
  return convert<int32_t>(file_, find(file_, name), DType::kI32);
}

std::map<std::string, FloatTensor> run_model(const std::string& path,
                                             const std::map<std::string, IntTensor>& inputs,
                                             const RunOptions& options) {
  GraphOptions graph = options.graph;
  graph.max_batch = inputs.at("input_ids").shape[0];
  graph.max_tokens = inputs.at("input_ids").shape[1];
  const CompiledModel model = compile_model(
      ModelFile::open(path), graph,
      {.max_threads = options.threads, .quantize_activations = options.quantize_activations});
  const auto session = cpu::make_session(
      model.program, model.file, std::make_shared<ThreadPool>(options.threads), model.target);
  set_extents(*session, inputs);
  for (const auto& [name, tensor] : inputs) {
    const TensorView view = session->input(find_input(*model.program, name));
    std::copy(tensor.values.begin(), tensor.values.end(), view.as<int64_t>());
  }
  session->run().throw_if_failed();
  std::map<std::string, FloatTensor> outputs;
  for (size_t i = 0; i < model.program->outputs.size(); ++i) {
    const TensorView view = session->output(static_cast<int>(i));
    FloatTensor tensor;
    tensor.shape.assign(view.extents.begin(), view.extents.begin() + view.rank);
    const float* data = view.as<float>();
    tensor.values.assign(data, data + view.num_elements());
    outputs.emplace(model.program->outputs[i].name, std::move(tensor));
  }
  return outputs;
}

double relative_error(std::span<const float> actual, std::span<const float> expected) {
  EXPECT_EQ(actual.size(), expected.size());
  double difference = 0, total = 0;
  for (size_t i = 0; i < std::min(actual.size(), expected.size()); ++i) {
    const double d = static_cast<double>(actual[i]) - expected[i];
    difference += d * d;
    total += static_cast<double>(expected[i]) * expected[i];
  }
  return std::sqrt(difference / total);
}

int32_t find_argmax(std::span<const float> row) {
  return static_cast<int32_t>(std::max_element(row.begin(), row.end()) - row.begin());
}

int64_t count_argmax_differences(const FloatTensor& actual, const FloatTensor& expected) {
  EXPECT_EQ(actual.shape, expected.shape);
  int64_t differences = 0;
  for (int64_t row = 0; row < expected.num_rows(); ++row) {
    differences += find_argmax(actual.row(row)) != find_argmax(expected.row(row));
  }
  return differences;
}

namespace {

std::vector<double> log_softmax(std::span<const float> row) {
  const double most = *std::max_element(row.begin(), row.end());
  double sum = 0;
  for (float value : row) sum += std::exp(value - most);
  std::vector<double> result;
  for (float value : row) result.push_back(value - most - std::log(sum));
  return result;
}

}  // namespace

double mean_divergence(const FloatTensor& actual, const FloatTensor& expected) {
  double total = 0;
  for (int64_t row = 0; row < expected.num_rows(); ++row) {
    const std::vector<double> p = log_softmax(expected.row(row)), q = log_softmax(actual.row(row));
    for (size_t i = 0; i < p.size(); ++i) total += std::exp(p[i]) * (p[i] - q[i]);
  }
  return total / static_cast<double>(expected.num_rows());
}

TemporaryFolder::TemporaryFolder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "rlx-models-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) throw_error(ErrorCode::kIo, "Cannot make a folder.");
  path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string TemporaryFolder::path(const std::string& name) const {
  return name.empty() ? path_ : path_ + "/" + name;
}

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw_error(ErrorCode::kNotFound, "{}: Cannot open.", path);
  std::ostringstream content;
  content << file.rdbuf();
  return content.str();
}

void write_file(const std::string& path, std::string_view content) {
  std::ofstream file(path, std::ios::binary);
  file.write(content.data(), static_cast<std::streamsize>(content.size()));
  if (!file) throw_error(ErrorCode::kIo, "{}: Cannot write.", path);
}

}  // namespace rlx::model_testing

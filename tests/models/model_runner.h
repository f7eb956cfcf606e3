// Runs a model file over token ids and hands out every output as floats, for tests that compare
// with reference values.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "models/families.h"

namespace rlx::model_testing {

struct FloatTensor {
  std::vector<int64_t> shape;
  std::vector<float> values;

  int64_t num_rows() const { return static_cast<int64_t>(values.size()) / shape.back(); }
  std::span<const float> row(int64_t index) const {
    return std::span(values).subspan(static_cast<size_t>(index * shape.back()),
                                     static_cast<size_t>(shape.back()));
  }
};

struct IntTensor {
  std::vector<int64_t> shape;
  std::vector<int64_t> values;
};

// A safetensors file with reference values.
class Expected {
 public:
  explicit Expected(const std::string& path);
  FloatTensor floats(const std::string& name) const;
  IntTensor ints(const std::string& name) const;
  std::vector<int32_t> tokens(const std::string& name) const;

 private:
  SafetensorsFile file_;
};

struct RunOptions {
  GraphOptions graph;
  int threads = 1;
  bool quantize_activations = true;
};

// Compiles the model and runs it once: symbols take their values from the inputs' shapes, `past` is
// 0. An input that is not given is zeros. The graph options' max_tokens and max_batch are set from
// them.
std::map<std::string, FloatTensor> run_model(const std::string& path,
                                             const std::map<std::string, IntTensor>& inputs,
                                             const RunOptions& options);

// |actual - expected| / |expected| over all elements, in the L2 norm.
double relative_error(std::span<const float> actual, std::span<const float> expected);

// Rows whose largest elements stand at different places.
int64_t count_argmax_differences(const FloatTensor& actual, const FloatTensor& expected);

// Mean over the rows of the Kullback-Leibler divergence of softmax(actual) from softmax(expected).
double mean_divergence(const FloatTensor& actual, const FloatTensor& expected);

int32_t find_argmax(std::span<const float> row);

// A folder that is removed at the end of the test.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  std::string path(const std::string& name = "") const;

 private:
  std::string path_;
};

std::string read_file(const std::string& path);
void write_file(const std::string& path, std::string_view content);

}  // namespace rlx::model_testing

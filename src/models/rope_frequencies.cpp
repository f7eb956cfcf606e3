#include "models/rope_frequencies.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/error.h"

namespace rlx {
namespace {

// config.json keeps the parameters under rope_parameters (new) or rope_scaling (older files).
std::optional<double> find_parameter(const ModelFile& file, std::string_view gguf,
                                     const std::string& name) {
  const std::string current = "rope_parameters." + name;
  if (const auto value = file.find_float({gguf, current})) return value;
  if (file.format() == ModelFormat::kGguf) return std::nullopt;
  return file.find_float({"", "rope_scaling." + name});
}

double read_parameter(const ModelFile& file, std::string_view gguf, const std::string& name) {
  const auto value = find_parameter(file, gguf, name);
  if (!value) {
    throw_error(ErrorCode::kCorruptData, "{}: The rope parameter '{}' is missing.",
                file.config_path(), name);
  }
  return *value;
}

std::string find_kind(const ModelFile& file) {
  for (std::string_view hf : {"rope_parameters.rope_type", "rope_scaling.rope_type",
                              "rope_parameters.type", "rope_scaling.type"}) {
    if (const auto kind = file.find_string({".rope.scaling.type", hf})) return *kind;
  }
  return "default";
}

double read_base(const ModelFile& file, double default_base) {
  if (const auto base = file.find_float({".rope.freq_base", "rope_parameters.rope_theta"})) {
    return *base;
  }
  return file.find_float({"", "rope_theta"}).value_or(default_base);
}

double read_positive(const ModelFile& file, std::string_view gguf, const std::string& name) {
  const double value = read_parameter(file, gguf, name);
  if (!(value > 0) || !std::isfinite(value)) {
    throw_error(ErrorCode::kCorruptData,
                "{}: The rope parameter '{}' is {}, but it must be positive.", file.config_path(),
                name, value);
  }
  return value;
}

void scale_llama3(const ModelFile& file, std::vector<double>& frequencies) {
  const double factor = read_positive(file, "", "factor");
  const double low = read_positive(file, "", "low_freq_factor");
  const double high = read_positive(file, "", "high_freq_factor");
  const double context = read_positive(file, "", "original_max_position_embeddings");
  for (double& frequency : frequencies) {
    const double wavelength = 2 * std::numbers::pi / frequency;
    if (wavelength > context / low) {
      frequency /= factor;
    } else if (wavelength > context / high) {
      // Between the two wavelengths the scaled and the plain frequency are blended.
      const double smooth = (context / wavelength - low) / (high - low);
      frequency = (1 - smooth) * frequency / factor + smooth * frequency;
    }
  }
}

double scale_yarn(const ModelFile& file, double base, int64_t rotary,
                  std::vector<double>& frequencies) {
  const double factor = read_positive(file, ".rope.scaling.factor", "factor");
  const double beta_fast =
      find_parameter(file, ".rope.scaling.yarn_beta_fast", "beta_fast").value_or(32);
  const double beta_slow =
      find_parameter(file, ".rope.scaling.yarn_beta_slow", "beta_slow").value_or(1);
  const double context = read_positive(file, ".rope.scaling.original_context_length",
                                       "original_max_position_embeddings");
  bool truncate = file.format() == ModelFormat::kGguf;
  if (!truncate) {
    truncate = file.find_bool({"", "rope_parameters.truncate"})
                   .value_or(file.find_bool({"", "rope_scaling.truncate"}).value_or(true));
  }
  // The index of the pair that turns `rotations` times within the trained context.
  const auto find_index = [&](double rotations) {
    return static_cast<double>(rotary) * std::log(context / (rotations * 2 * std::numbers::pi)) /
           (2 * std::log(base));
  };
  double low = find_index(beta_fast);
  double high = find_index(beta_slow);
  if (truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, static_cast<double>(rotary - 1));
  if (low == high) high += 0.001;
  for (size_t i = 0; i < frequencies.size(); ++i) {
    const double ramp = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
    frequencies[i] = frequencies[i] / factor * ramp + frequencies[i] * (1 - ramp);
  }
  return find_parameter(file, ".rope.scaling.attn_factor", "attention_factor")
      .value_or(factor > 1 ? 0.1 * std::log(factor) + 1 : 1);
}

}  // namespace

RopeFrequencies read_rope_frequencies(const ModelFile& file, int64_t rotary, double default_base) {
  const double base = read_base(file, default_base);
  if (!(base > 0) || !std::isfinite(base)) {
    throw_error(ErrorCode::kCorruptData, "{}: The rope base is {}, but it must be positive.",
                file.config_path(), base);
  }
  std::vector<double> frequencies(static_cast<size_t>(rotary / 2));
  for (size_t i = 0; i < frequencies.size(); ++i) {
    frequencies[i] = std::pow(base, -2.0 * static_cast<double>(i) / static_cast<double>(rotary));
  }
  RopeFrequencies result;
  const std::string kind = find_kind(file);
  if (kind == "linear") {
    const double factor = read_positive(file, ".rope.scaling.factor", "factor");
    for (double& frequency : frequencies) frequency /= factor;
  } else if (kind == "llama3") {
    scale_llama3(file, frequencies);
  } else if (kind == "yarn") {
    result.scale = scale_yarn(file, base, rotary, frequencies);
  } else if (kind != "default" && kind != "none") {
    throw_error(ErrorCode::kUnsupported,
                "{}: Rope scaling '{}' is not supported; default, linear, llama3 and yarn are.",
                file.config_path(), kind);
  }
  for (double frequency : frequencies) result.inverse.push_back(static_cast<float>(frequency));
  return result;
}

}  // namespace rlx

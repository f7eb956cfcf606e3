#include "models/rope_frequencies.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/error.h"

namespace rlx {
namespace {

class RopeReader {
 public:
  RopeReader(const ModelFile& file, int64_t rotary, int64_t context, const RopeSource& source)
      : file_(file),
        rotary_(static_cast<double>(rotary)),
        context_(static_cast<double>(context)),
        source_(source),
        frequencies_(static_cast<size_t>(rotary / 2)) {}

  RopeFrequencies read();

 private:
  bool is_gguf() const { return file_.format() == ModelFormat::kGguf; }
  // config.json keeps the parameters in the section, or (older files) under rope_scaling.
  std::string section_key(std::string_view name) const {
    return source_.section + "." + std::string(name);
  }
  static std::string old_key(std::string_view name) { return "rope_scaling." + std::string(name); }

  std::optional<double> find_parameter(std::string_view gguf, std::string_view name) const;
  double check_positive(double value, std::string_view name) const;
  double read_positive(std::string_view gguf, std::string_view name) const;
  double read_base() const;
  double read_trained_context() const;
  double read_factor(double trained) const;
  std::string find_kind() const;
  std::vector<double> read_factors(std::string_view name) const;
  void scale_linear();
  void scale_llama3();
  double scale_yarn();
  double scale_longrope();

  const ModelFile& file_;
  const double rotary_, context_;
  const RopeSource& source_;
  double base_ = 0;
  std::vector<double> frequencies_;
};

std::optional<double> RopeReader::find_parameter(std::string_view gguf,
                                                 std::string_view name) const {
  if (const auto value = file_.find_float({gguf, section_key(name)})) return value;
  return source_.scaled ? file_.find_float({"", old_key(name)}) : std::nullopt;
}

double RopeReader::check_positive(double value, std::string_view name) const {
  if (!(value > 0) || !std::isfinite(value)) {
    throw_error(ErrorCode::kCorruptData,
                "{}: The rope parameter '{}' is {}, but it must be positive.", file_.config_path(),
                name, value);
  }
  return value;
}

double RopeReader::read_positive(std::string_view gguf, std::string_view name) const {
  const auto value = find_parameter(gguf, name);
  if (!value) {
    throw_error(ErrorCode::kCorruptData, "{}: The rope parameter '{}' is missing.",
                file_.config_path(), name);
  }
  return check_positive(*value, name);
}

double RopeReader::read_base() const {
  auto base = file_.find_float({"", section_key("rope_theta")});
  if (!base) base = file_.find_float(source_.base);
  return check_positive(base.value_or(source_.default_base), "rope_theta");
}

double RopeReader::read_trained_context() const {
  constexpr std::string_view kName = "original_max_position_embeddings";
  if (is_gguf()) {
    const auto trained = file_.find_int({".rope.scaling.original_context_length", ""});
    return static_cast<double>(trained ? *trained : file_.read_int({".context_length", ""}));
  }
  auto length = file_.find_float({"", kName});
  if (!length) length = find_parameter("", kName);
  if (!length) length = file_.find_float({"", "max_position_embeddings"});
  return check_positive(length.value_or(0), kName);
}

// How much longer than the trained context the model reads; without the value, what it is made for.
double RopeReader::read_factor(double trained) const {
  if (is_gguf()) return read_positive(".rope.scaling.factor", "factor");
  if (const auto given = find_parameter("", "factor")) return check_positive(*given, "factor");
  constexpr std::string_view kLongest = "max_position_embeddings";
  return check_positive(file_.read_float({"", kLongest}), kLongest) / trained;
}

std::string RopeReader::find_kind() const {
  if (is_gguf()) {
    if (!source_.scaled) return "default";
    return file_.find_string({".rope.scaling.type", ""}).value_or("default");
  }
  for (const std::string& key : {section_key("rope_type"), section_key("type")}) {
    if (const auto kind = file_.find_string({"", key})) return *kind;
  }
  for (const std::string& key : {old_key("rope_type"), old_key("type")}) {
    if (!source_.scaled) break;
    if (const auto kind = file_.find_string({"", key})) return *kind;
  }
  return "default";
}

std::vector<double> RopeReader::read_factors(std::string_view name) const {
  auto factors = file_.find_floats({"", section_key(name)});
  if (!factors) factors = file_.find_floats({"", old_key(name)});
  if (!factors || factors->size() != frequencies_.size()) {
    throw_error(ErrorCode::kCorruptData,
                "{}: The rope parameter '{}' has {} numbers, but {} are expected.",
                file_.config_path(), name, factors ? factors->size() : 0, frequencies_.size());
  }
  for (double factor : *factors) check_positive(factor, name);
  return *factors;
}

void RopeReader::scale_linear() {
  const double factor = read_positive(".rope.scaling.factor", "factor");
  for (double& frequency : frequencies_) frequency /= factor;
}

void RopeReader::scale_llama3() {
  const double factor = read_positive("", "factor");
  const double low = read_positive("", "low_freq_factor");
  const double high = read_positive("", "high_freq_factor");
  const double trained = read_trained_context();
  for (double& frequency : frequencies_) {
    const double wavelength = 2 * std::numbers::pi / frequency;
    if (wavelength > trained / low) {
      frequency /= factor;
    } else if (wavelength > trained / high) {
      // Between the two wavelengths the scaled and the plain frequency are blended.
      const double smooth = (trained / wavelength - low) / (high - low);
      frequency = (1 - smooth) * frequency / factor + smooth * frequency;
    }
  }
}

double RopeReader::scale_yarn() {
  const double trained = read_trained_context();
  const double factor = read_factor(trained);
  // The index of the pair that turns `rotations` times within the trained context.
  const auto find_index = [&](double rotations) {
    return rotary_ * std::log(trained / (rotations * 2 * std::numbers::pi)) / (2 * std::log(base_));
  };
  double low = find_index(find_parameter(".rope.scaling.yarn_beta_fast", "beta_fast").value_or(32));
  double high = find_index(find_parameter(".rope.scaling.yarn_beta_slow", "beta_slow").value_or(1));
  bool truncate = source_.gguf_truncate;
  if (!is_gguf()) {
    const auto old_value = file_.find_bool({"", old_key("truncate")});
    truncate = file_.find_bool({"", section_key("truncate")}).value_or(old_value.value_or(true));
  }
  if (truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, rotary_ - 1);
  if (low == high) high += 0.001;
  for (size_t i = 0; i < frequencies_.size(); ++i) {
    const double ramp = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
    frequencies_[i] = frequencies_[i] / factor * ramp + frequencies_[i] * (1 - ramp);
  }
  const auto magnitude = [&](double weight) {
    return factor > 1 ? 0.1 * weight * std::log(factor) + 1 : 1;
  };
  if (is_gguf()) return magnitude(1);
  if (const auto given = find_parameter("", "attention_factor")) return *given;
  const auto above = find_parameter("", "mscale");
  const auto below = find_parameter("", "mscale_all_dim");
  return above && below ? magnitude(*above) / magnitude(*below) : magnitude(1);
}

double RopeReader::scale_longrope() {
  if (is_gguf()) return 1;
  const double trained = read_trained_context();
  const std::vector<double> factors =
      read_factors(context_ > trained ? "long_factor" : "short_factor");
  for (size_t i = 0; i < frequencies_.size(); ++i) frequencies_[i] /= factors[i];
  if (const auto given = find_parameter("", "attention_factor")) return *given;
  const double factor = read_factor(trained);
  return factor > 1 ? std::sqrt(1 + std::log(factor) / std::log(trained)) : 1;
}

RopeFrequencies RopeReader::read() {
  base_ = read_base();
  for (size_t i = 0; i < frequencies_.size(); ++i) {
    frequencies_[i] = std::pow(base_, -2.0 * static_cast<double>(i) / rotary_);
  }
  RopeFrequencies result;
  std::string kind = find_kind();
  if (kind == "yarn" && source_.yarn_is_longrope && !is_gguf()) kind = "longrope";
  if (kind == "linear") {
    scale_linear();
  } else if (kind == "llama3") {
    scale_llama3();
  } else if (kind == "yarn") {
    result.scale = scale_yarn();
  } else if (kind == "longrope" || kind == "su") {  // the second is its older name
    result.scale = scale_longrope();
  } else if (kind != "default" && kind != "none") {
    throw_error(ErrorCode::kUnsupported,
                "{}: Rope scaling '{}' is not supported; default, linear, llama3, yarn and "
                "longrope are.",
                file_.config_path(), kind);
  }
  if (is_gguf() && source_.scaled) {
    result.scale *= file_.find_float({".rope.scaling.attn_factor", ""}).value_or(1);
  }
  for (double frequency : frequencies_) result.inverse.push_back(static_cast<float>(frequency));
  return result;
}

}  // namespace

RopeFrequencies read_rope_frequencies(const ModelFile& file, int64_t rotary, int64_t context,
                                      const RopeSource& source) {
  return RopeReader(file, rotary, context, source).read();
}

}  // namespace rlx

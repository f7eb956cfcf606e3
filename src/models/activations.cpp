#include "models/activations.h"

#include "base/error.h"
#include "ops/elementwise.h"

namespace rlx {
namespace {

struct NamedActivation {
  std::string_view name;
  ActivationKind kind;
};

constexpr NamedActivation kActivations[] = {
    {"gelu", ActivationKind::kGelu},
    {"gelu_new", ActivationKind::kGeluTanh},
    {"gelu_pytorch_tanh", ActivationKind::kGeluTanh},
    {"relu", ActivationKind::kRelu},
    {"silu", ActivationKind::kSilu},
    {"swish", ActivationKind::kSilu},
};

}  // namespace

ActivationKind read_activation(const ModelFile& file, ConfigKey key, ActivationKind fallback) {
  const auto name = file.find_string(key);
  if (!name) return fallback;
  std::string known;
  for (const NamedActivation& activation : kActivations) {
    if (activation.name == *name) return activation.kind;
    known += (known.empty() ? "" : ", ") + std::string(activation.name);
  }
  throw_error(ErrorCode::kUnsupported, "{}: The activation '{}' is not supported; these are: {}.",
              file.config_path(), *name, known);
}

ValueId activate(Blocks& blocks, ValueId x, ActivationKind kind) {
  Builder& builder = blocks.builder();
  switch (kind) {
    case ActivationKind::kGelu:
      return builder.add(Gelu{}, {x});
    case ActivationKind::kGeluTanh:
      return builder.add(Gelu{.approximate = GeluKind::kTanh}, {x});
    case ActivationKind::kRelu:
      return builder.add(Relu{}, {x});
    case ActivationKind::kSilu:
      return builder.add(Silu{}, {x});
  }
  RLX_CHECK(false, "unknown activation {}", static_cast<int>(kind));
}

}  // namespace rlx

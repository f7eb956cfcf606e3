// Activations by the names that config.json gives them.
#pragma once

#include "models/blocks.h"

namespace rlx {

// A plain activation ("gelu", "gelu_new", "relu" and so on) at the key, `fallback` when absent.
// Throws kUnsupported listing the known names.
enum class ActivationKind : uint8_t { kGelu, kGeluTanh, kRelu, kSilu };
ActivationKind read_activation(const ModelFile& file, ConfigKey key, ActivationKind fallback);

ValueId activate(Blocks& blocks, ValueId x, ActivationKind kind);

}  // namespace rlx

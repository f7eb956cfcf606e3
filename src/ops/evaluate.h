// The oracle: the value of one op on reference tensors, by its one meaning. Constant folding and
// the reference backend use it, and every kernel is tested against it.
#pragma once

#include <span>
#include <vector>

#include "ir/op.h"
#include "ir/reference_tensor.h"

namespace rlx {

// The outputs of the op. `input_types` are the declared types, whose extents may be symbolic;
// `inputs` have the actual extents, at the symbols' values. Floats are computed and kept in double,
// not rounded to the dtype (only cast and stores into a cache round); integers wrap. Throws what
// `infer` throws, kOutOfRange for an index or an extent outside its bounds, kUnsupported for the
// sources (input, weight, state, constant), which have no value of their own.
std::vector<ReferenceTensor> evaluate(const Op& op, std::span<const ReferenceTensor* const> inputs,
                                      std::span<const TensorType> input_types,
                                      const SymbolTable& symbols,
                                      std::span<const int64_t> symbol_values);

}  // namespace rlx

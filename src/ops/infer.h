// What the `infer` members share: checks of dtypes, ranks and axes with one wording, and shape
// arithmetic that also works on symbolic extents. All failures are kInvalidArgument and name the
// op, what is given and what is expected.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "ir/op.h"

namespace rlx {

// The axis counted from the front. Fails when it is outside [-rank, rank).
int normalise_axis(const InferContext& context, int64_t axis, int rank);

// Each axis counted from the front, in increasing order; all of them when `axes` is empty. Fails
// when one is listed twice.
std::vector<int> normalise_axes(const InferContext& context, std::span<const int64_t> axes,
                                int rank);

// The same two for a decomposition or a reference, where `infer` has checked the axis.
inline int wrap_axis(int64_t axis, int rank) {
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}
std::vector<int> wrap_axes(std::span<const int64_t> axes, int rank);

// The shape to which both stretch, aligned at the last axis. Extents must be equal, or one of them
// the constant 1.
Shape broadcast_shapes(const InferContext& context, const Shape& a, const Shape& b);
// The same for the leading axes of a contraction, and for a shape that must not itself stretch:
// fails unless `from` stretches to `to`.
void check_broadcasts_to(const InferContext& context, std::string_view what, const Shape& from,
                         const Shape& to);

// True when a >= b for every value of the symbols, as far as their bounds show.
bool is_at_least(const InferContext& context, const Dim& a, const Dim& b);

// Checks of input i.
void check_float(const InferContext& context, int i);
void check_number(const InferContext& context, int i);   // a float or an integer
void check_integer(const InferContext& context, int i);  // an integer
void check_plain(const InferContext& context, int i);    // neither packed nor complex
void check_rank(const InferContext& context, int i, int rank);
void check_rank_at_least(const InferContext& context, int i, int rank);
void check_same_dtype(const InferContext& context, int i, int j);
// `axis` of input i has the extent; `what` says whose extent it is ("the weight's columns").
void check_extent(const InferContext& context, int i, int axis, const Dim& extent,
                  std::string_view what);
// Input i is a tensor of one axis with the extent.
void check_vector(const InferContext& context, int i, const Dim& extent, std::string_view what);

}  // namespace rlx

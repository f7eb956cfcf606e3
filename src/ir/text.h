// The text form: every graph prints and parses back to itself. Tests, dumps and bug reports use it.
//
//   graph "decode" (tokens <= 512, past <= 4096) {
//     %ids = input "input_ids" : i64[1, tokens]
//     %w = weight "token_embd.weight" : q8_0[2048, 256]
//     %x = gather(%w, %ids) axis=0 : f32[1, tokens, 256]  @"token_embd"
//     %half = constant [0.5] : f32[]
//     output "hidden" %x
//   }
//
// A lower bound is written in front: `1 <= tokens <= 512`. Attributes at their default are left
// out.
// `@"..."` is where the node comes from. `//` starts a comment. Values without a name are numbered.
#pragma once

#include <string>
#include <string_view>

#include "ir/graph.h"

namespace rlx {

std::string to_string(const Graph& graph);

// An op from its name and its attributes in text form ("axis=1 keep_dims=true"). Throws kNotFound
// for an unknown op, kInvalidArgument for what is not an attribute of it.
Op parse_op(std::string_view name, std::string_view attributes, const OpRegistry& registry);

// Reads the text form. Types are inferred and must agree with the written ones. Throws
// kInvalidArgument with the line number and what was expected.
Graph parse_graph(std::string_view text, const OpRegistry& registry);

}  // namespace rlx

// A model file taken through graph and compiler: what the plan, the inspection and the running
// model all start from. No weight is read.
#pragma once

#include <memory>
#include <string>

#include "backends/cpu/target.h"
#include "compiler/compile.h"
#include "models/families.h"
#include "models/model_file.h"
#include "rlx/language_model.h"
#include "rlx/plan.h"
#include "text/tokenizer.h"

namespace rlx {

struct CompiledModel {
  std::shared_ptr<const ModelFile> file;
  std::shared_ptr<const Program> program;
  Graph optimized;
  cpu::TargetOptions target;
  PlanReport report;
};

GraphOptions make_graph_options(const LanguageModelOptions& options);
cpu::TargetOptions make_target_options(const LanguageModelOptions& options);

// Throws what building and compiling throw; the file is in the context.
CompiledModel compile_model(std::shared_ptr<const ModelFile> file, const GraphOptions& graph,
                            const cpu::TargetOptions& target,
                            const CompileOptions& compile_options = {});

// `file` may be null: a program without a model file.
PlanReport make_plan_report(const Program& program, const ModelFile* file);

// The tokenizer that the file carries: tokenizer.ggml.* or tokenizer.json. Throws kNotFound when it
// carries none.
Tokenizer load_tokenizer(const ModelFile& file);

// Ids that end a text: those that the file declares and, for a GGUF file, which has room for a few
// only, the special tokens that models use as the end of a turn.
std::vector<int32_t> list_end_tokens(const ModelFile& file, const Tokenizer* tokenizer);

}  // namespace rlx

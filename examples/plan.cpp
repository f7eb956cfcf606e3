// Looks at what a model will take, before any of it is loaded: headers are read, weights are not.
// usage: example_plan [MODEL], from the root of the source tree unless a model is given.
#include <cinttypes>
#include <cstdio>
#include <string>

#include "rlx/rlx.h"

int main(int argc, char** argv) {
  const std::string path = argc > 1 ? argv[1] : "models/demo/demo-Q8_0.gguf";
  try {
    // The whole plan as a table for people.
    const rlx::PlanReport report = rlx::LanguageModel::plan(path);
    std::printf("%s\n", to_string(report).c_str());

    // The same figures for programs: the longest of these contexts that fits into a budget.
    const int64_t budget_bytes = 3 * 1000 * 1000;
    for (const int64_t context : {1024, 512, 256, 128}) {
      const rlx::PlanReport plan =
          rlx::LanguageModel::plan(path, {.context = context, .max_tokens = 128});
      const bool fits = plan.arena_bytes <= budget_bytes;
      std::printf("context %4" PRId64 ": arena %10" PRId64 " B, of it state %9" PRId64 " B%s\n",
                  context, plan.arena_bytes, plan.segment("state").size_bytes,
                  fits ? ", fits" : "");
      if (fits) break;
    }
  } catch (const rlx::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}

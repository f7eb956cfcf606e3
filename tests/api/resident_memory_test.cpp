// Running takes no memory that the first run at the largest extents has not taken already.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <random>
#include <vector>

#include "rlx/rlx.h"

namespace {

int64_t resident_bytes() {
  int64_t pages = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

TEST(ResidentMemory, StaysFlatOverAThousandRunsOfRandomLengths) {
  constexpr int64_t kMaxTokens = 48, kContext = 128;
  rlx::LanguageModel model = rlx::LanguageModel::load(
      "tests/data/gguf-small/qwen3.gguf",
      {.context = kContext, .max_tokens = kMaxTokens, .threads = 2, .load_tokenizer = false});
  const auto evaluate = [&](int64_t count) {
    const std::vector<int32_t> tokens(static_cast<size_t>(count), 1);
    model.evaluate(tokens);
  };
  // The largest run, over a full cache.
  evaluate(kMaxTokens);
  evaluate(kMaxTokens);
  evaluate(kContext - 2 * kMaxTokens);
  const int64_t before = resident_bytes();
  std::mt19937 random(1);
  for (int run = 0; run < 1000; ++run) {
    const int64_t room = kContext - model.num_past_tokens();
    if (room == 0 || random() % 8 == 0) {
      model.reset();
      continue;
    }
    evaluate(1 + static_cast<int64_t>(random() % std::min(room, kMaxTokens)));
  }
  RecordProperty("grown_bytes", std::to_string(resident_bytes() - before));
  EXPECT_LT(resident_bytes() - before, 256 << 10);
}

}  // namespace

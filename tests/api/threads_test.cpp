// What threads a model makes, and that they cost nothing while it is idle.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <thread>
#include <vector>

#include "rlx/rlx.h"

namespace {

constexpr char kDemo[] = "models/demo/demo-Q8_0.gguf";

int64_t count_threads() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/task"),
                       std::filesystem::directory_iterator());
}

// Processor time of the whole process, in seconds.
double processor_seconds() {
  struct rusage usage {};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

void sleep_milliseconds(int count) {
  std::this_thread::sleep_for(std::chrono::milliseconds(count));
}

TEST(Threads, OneIsTheCallersOwn) {
  const int64_t before = count_threads();
  rlx::LanguageModel model = rlx::LanguageModel::load(kDemo, {.context = 64, .threads = 1});
  EXPECT_EQ(count_threads(), before);
  rlx::GenerateOptions options;
  options.max_new_tokens = 4;
  options.on_text = [&](std::string_view) { EXPECT_EQ(count_threads(), before); };
  model.generate("In the beginning", options);
  EXPECT_EQ(count_threads(), before);
  EXPECT_EQ(model.threads(), 1);
}

TEST(Threads, AreMadeOnceAndEndWithTheModel) {
  const int64_t before = count_threads();
  {
    rlx::LanguageModel model = rlx::LanguageModel::load(kDemo, {.context = 64, .threads = 3});
    EXPECT_EQ(model.threads(), 3);
    EXPECT_EQ(count_threads(), before + 2);
    model.evaluate(std::vector<int32_t>{1, 2, 3});
    EXPECT_EQ(count_threads(), before + 2);
  }
  EXPECT_EQ(count_threads(), before);
}

TEST(Threads, OfAPlanAreNone) {
  const int64_t before = count_threads();
  rlx::LanguageModel::plan(kDemo, {.threads = 4});
  EXPECT_EQ(count_threads(), before);
}

TEST(Threads, UseNoProcessorTimeWhileTheModelIsIdle) {
  rlx::LanguageModel model = rlx::LanguageModel::load(kDemo, {.context = 64, .threads = 3});
  model.evaluate(std::vector<int32_t>{1, 2, 3});
  sleep_milliseconds(100);  // what spins after a run has gone to sleep by now
  const double before = processor_seconds();
  sleep_milliseconds(400);
  EXPECT_LT(processor_seconds() - before, 0.02);
}

}  // namespace

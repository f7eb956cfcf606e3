// A run takes nothing from the heap: counted over all threads, for a long prompt and for single
// tokens, in every way of computing that changes the kernels.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "api/compiled_model.h"
#include "backends/cpu/session.h"
#include "count_allocations.h"

namespace rlx {
namespace {

constexpr char kDemo[] = "models/demo/demo-Q8_0.gguf";

struct Case {
  const char* name;
  const char* model;
  LanguageModelOptions options;
};

class RunAllocations : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    LanguageModelOptions options = GetParam().options;
    options.context = 64;
    options.max_tokens = 32;
    model_ = std::make_unique<CompiledModel>(compile_model(ModelFile::open(GetParam().model),
                                                           make_graph_options(options),
                                                           make_target_options(options)));
    pool_ = std::make_shared<ThreadPool>(model_->target.max_threads);
    session_ = cpu::make_session(model_->program, model_->file, pool_, model_->target);
    const SymbolTable& symbols = model_->program->symbols;
    extents_.resize(symbols.symbols().size());
    tokens_ = symbols.index_of("tokens");
    past_ = symbols.index_of("past");
    input_ = find_input(*model_->program, "input_ids");
    output_ = find_output(*model_->program, "logits");
  }

  // One run of the session, and what belongs to it.
  bool run(int64_t tokens, int64_t past) {
    extents_[tokens_] = tokens;
    extents_[past_] = past;
    if (!session_->set_extents(extents_).ok) return false;
    int64_t* ids = session_->input(input_).as<int64_t>();
    for (int64_t i = 0; i < tokens; ++i) ids[i] = 5 + i;
    return session_->run().ok && session_->output(output_).data != nullptr;
  }

  std::unique_ptr<CompiledModel> model_;
  std::shared_ptr<ThreadPool> pool_;
  std::unique_ptr<Session> session_;
  std::vector<int64_t> extents_;
  int32_t tokens_ = 0, past_ = 0;
  int input_ = 0, output_ = 0;
};

TEST_P(RunAllocations, AreNoneAfterTheFirst) {
  ASSERT_TRUE(run(1, 0));
  bool ok = true;
  int64_t count = 0;
  {
    const CountAllocations counter;
    ok = run(32, 0) && run(7, 32);  // a prompt in two parts
    for (int64_t past = 39; past < 64; ++past) ok = ok && run(1, past);
    count = counter.count();
  }
  EXPECT_TRUE(ok);
  EXPECT_EQ(count, 0);
}

TEST_P(RunAllocations, AreNoneWhenARunIsCancelled) {
  ASSERT_TRUE(run(1, 0));
  const std::atomic<bool> cancel{true};
  session_->set_cancel_flag(&cancel);
  EXPECT_FALSE(run(32, 0));
  session_->set_cancel_flag(nullptr);
  bool ok = true;
  int64_t count = 0;
  {
    const CountAllocations counter;
    ok = run(32, 0);
    count = counter.count();
  }
  EXPECT_TRUE(ok);
  EXPECT_EQ(count, 0);
}

INSTANTIATE_TEST_SUITE_P(
    , RunAllocations,
    testing::Values(Case{"OneThread", kDemo, {.threads = 1}},
                    Case{"TwoThreads", kDemo, {.threads = 2}},
                    Case{"FourThreads", kDemo, {.threads = 4}},
                    Case{"FloatActivations", kDemo, {.threads = 2, .quantize_activations = false}},
                    Case{"FloatCache", kDemo, {.threads = 2, .cache_dtype = DType::kF32}},
                    Case{"AllLogits", kDemo, {.threads = 2, .all_logits = true}},
                    Case{"FourBits", "models/demo/demo-Q4_0.gguf", {.threads = 2}},
                    Case{"Safetensors", "tests/data/small/qwen3", {.threads = 2}}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(Evaluate, AllocatesNothingAfterTheFirst) {
  LanguageModel model = LanguageModel::load(kDemo, {.context = 64, .max_tokens = 8, .threads = 2});
  const std::vector<int32_t> ids(20, 5);
  model.evaluate(ids);
  int64_t count = 0;
  {
    const CountAllocations counter;
    model.reset();
    model.evaluate(ids);
    for (int i = 0; i < 8; ++i) model.evaluate({ids.data(), 1});
    count = counter.count();
  }
  EXPECT_EQ(count, 0);
}

// The counter itself: without these the tests above could pass for the wrong reason.
TEST(CountAllocations, SeesEveryWayToTheHeap) {
  const auto count = [](auto&& body) {
    const CountAllocations counter;
    body();
    return counter.count();
  };
  // Volatile, so that no pair of allocation and release is taken out.
  void* volatile block = nullptr;
  EXPECT_EQ(count([] {}), 0);
  EXPECT_EQ(count([&] { block = std::malloc(8); }), 1);
  EXPECT_EQ(count([&] { block = std::realloc(block, 4096); }), 1);
  std::free(block);
  EXPECT_EQ(count([&] { block = std::calloc(2, 4); }), 1);
  std::free(block);
  EXPECT_EQ(count([&] { block = std::aligned_alloc(64, 64); }), 1);
  std::free(block);
  EXPECT_EQ(count([&] { block = ::operator new(8); }), 1);
  ::operator delete(block);
  EXPECT_EQ(count([&] { block = ::operator new (8, std::align_val_t{64}); }), 1);
  ::operator delete (block, std::align_val_t{64});
}

TEST(CountAllocations, SeesTheThreadsOfAPool) {
  ThreadPool pool(3);
  int64_t count = 0;
  {
    const CountAllocations counter;
    pool.run([](int thread) {
      if (thread == 0) return;
      void* volatile block = std::malloc(8);
      std::free(block);
    });
    count = counter.count();
  }
  EXPECT_EQ(count, 2);
}

}  // namespace
}  // namespace rlx

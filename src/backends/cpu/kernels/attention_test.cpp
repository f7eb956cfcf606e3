#include "ops/attention.h"

#include <cmath>
#include <limits>

#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/kernels/matmul_test_call.h"
#include "ops/cache.h"

namespace rlx::cpu {
namespace {

struct Sizes {
  int64_t batch, tokens, keys, heads, key_heads, dim, value_dim;
};

// Softmax over all keys at once, in doubles. Empty spans stand for no mask and no sinks; the mask
// is added to the scores and broadcasts by mask_extents = {b, h, t, s}.
std::vector<double> attend(const Attention& op, const Sizes& n, std::span<const double> q,
                           std::span<const double> k, std::span<const double> v,
                           std::span<const double> mask, std::span<const int64_t> mask_extents,
                           std::span<const double> sinks) {
  std::vector<double> out;
  const double scale = op.scale != 0 ? op.scale : 1 / std::sqrt(static_cast<double>(n.dim));
  for (int64_t b = 0; b < n.batch; ++b) {
    for (int64_t t = 0; t < n.tokens; ++t) {
      for (int64_t h = 0; h < n.heads; ++h) {
        const int64_t kh = h / (n.heads / n.key_heads), position = n.keys - n.tokens + t;
        std::vector<double> scores;
        double largest = sinks.empty() ? -HUGE_VAL : sinks[h];
        for (int64_t s = 0; s < n.keys; ++s) {
          double score = 0;
          for (int64_t i = 0; i < n.dim; ++i) {
            score += q[((b * n.tokens + t) * n.heads + h) * n.dim + i] *
                     k[((b * n.keys + s) * n.key_heads + kh) * n.dim + i];
          }
          score *= scale;
          if (op.soft_cap > 0) score = op.soft_cap * std::tanh(score / op.soft_cap);
          if (!mask.empty()) {
            const int64_t index[4] = {b, h, t, s};
            int64_t offset = 0;
            for (int i = 0; i < 4; ++i) {
              offset = offset * mask_extents[i] + (mask_extents[i] == 1 ? 0 : index[i]);
            }
            score += mask[offset];
          }
          if (op.causal && s > position) score = -HUGE_VAL;
          if (op.window > 0 && s <= position - op.window) score = -HUGE_VAL;
          scores.push_back(score);
          largest = std::max(largest, score);
        }
        double sum = sinks.empty() ? 0 : std::exp(sinks[h] - largest);
        for (double& score : scores) sum += score = std::exp(score - largest);
        for (int64_t j = 0; j < n.value_dim; ++j) {
          double value = 0;
          for (int64_t s = 0; s < n.keys; ++s) {
            value += scores[s] * v[((b * n.keys + s) * n.key_heads + kh) * n.value_dim + j];
          }
          out.push_back(value / sum);
        }
      }
    }
  }
  return out;
}

struct Inputs {
  TestTensor q, k, v;
};

Inputs random_inputs(std::mt19937& random, const Sizes& n, DType q_dtype, DType cache_dtype) {
  Inputs inputs{random_tensor(random, q_dtype, {n.batch, n.tokens, n.heads, n.dim}),
                random_tensor(random, cache_dtype, {n.batch, n.keys, n.key_heads, n.dim}),
                random_tensor(random, cache_dtype, {n.batch, n.keys, n.key_heads, n.value_dim})};
  return inputs;
}

TestTensor run(const Attention& op, const Sizes& n, const std::vector<TensorView>& inputs,
               int threads) {
  TestTensor out = make_tensor(inputs[0].dtype, {n.batch, n.tokens, n.heads, n.value_dim});
  run_kernel(attention_kernels(), op, inputs, out, threads, "attention.blocked");
  return out;
}

constexpr Sizes kSizes[] = {{1, 1, 1, 1, 1, 1, 1},      {1, 1, 700, 4, 2, 64, 64},
                            {2, 3, 65, 6, 2, 33, 17},   {1, 40, 40, 3, 1, 16, 24},
                            {2, 130, 190, 2, 2, 20, 8}, {1, 5, 1300, 3, 3, 40, 35},
                            {1, 0, 7, 2, 1, 8, 8},      {1, 7, 1100, 8, 4, 128, 128}};

TEST(Attention, EqualsSoftmaxOverAllKeys) {
  std::mt19937 random(1);
  for (const Sizes& n : kSizes) {
    for (const DType cache : {DType::kF32, DType::kF16, DType::kBF16}) {
      for (const Attention& op :
           {Attention{}, Attention{.causal = false}, Attention{.scale = 0.7, .window = 5},
            Attention{.causal = false, .window = 600}, Attention{.soft_cap = 0.8}}) {
        SCOPED_TRACE(testing::Message() << to_string(cache) << " t=" << n.tokens << " s=" << n.keys
                                        << " causal=" << op.causal << " window=" << op.window);
        const Inputs in = random_inputs(random, n, DType::kF32, cache);
        const auto expected = attend(op, n, to_doubles(in.q.view), to_doubles(in.k.view),
                                     to_doubles(in.v.view), {}, {}, {});
        const TestTensor out = run(op, n, {in.q.view, in.k.view, in.v.view}, 2);
        expect_close(out.view, expected, 1e-5);
      }
    }
  }
}

TEST(Attention, KeepsTheDtypeOfQueries) {
  std::mt19937 random(2);
  const Sizes n{2, 9, 30, 4, 2, 24, 24};
  for (const DType dtype : {DType::kF16, DType::kBF16}) {
    const Inputs in = random_inputs(random, n, dtype, DType::kF16);
    const auto expected = attend({}, n, to_doubles(in.q.view), to_doubles(in.k.view),
                                 to_doubles(in.v.view), {}, {}, {});
    expect_close(run({}, n, {in.q.view, in.k.view, in.v.view}, 2).view, expected,
                 dtype == DType::kF16 ? 1e-3 : 1e-2);
  }
}

TEST(Attention, AddsAMaskThatBroadcasts) {
  std::mt19937 random(3);
  const Sizes n{2, 9, 80, 4, 2, 16, 16};
  const std::vector<std::vector<int64_t>> shapes = {
      {2, 4, 9, 80}, {1, 1, 9, 80}, {2, 1, 1, 80}, {1, 4, 9, 1}};
  for (const auto& extents : shapes) {
    for (const DType dtype : {DType::kF32, DType::kF16, DType::kBool}) {
      int64_t count = 1;
      for (const int64_t extent : extents) count *= extent;
      std::vector<double> added = random_values(random, count);
      TestTensor mask;
      if (dtype == DType::kBool) {
        mask = make_tensor(dtype, extents);
        for (int64_t i = 0; i < count; ++i) {
          const bool counts = extents[3] == 1 || random() % 3 != 0 || i % extents[3] == 0;
          mask.bytes[i] = std::byte{counts};
          added[i] = counts ? 0 : -HUGE_VAL;
        }
      } else {
        mask = make_tensor(dtype, extents, added);
        added = to_doubles(mask.view);
      }
      const Attention op{.causal = false, .mask = true};
      const Inputs in = random_inputs(random, n, DType::kF32, DType::kF16);
      const auto expected = attend(op, n, to_doubles(in.q.view), to_doubles(in.k.view),
                                   to_doubles(in.v.view), added, extents, {});
      expect_close(run(op, n, {in.q.view, in.k.view, in.v.view, mask.view}, 2).view, expected,
                   1e-5);
    }
  }
}

TEST(Attention, CountsSinksInTheDenominator) {
  std::mt19937 random(4);
  for (const Sizes& n : kSizes) {
    const Attention op{.window = 20, .sinks = true};
    const Inputs in = random_inputs(random, n, DType::kF32, DType::kF32);
    const TestTensor sinks = random_tensor(random, DType::kF32, {n.heads});
    const auto expected = attend(op, n, to_doubles(in.q.view), to_doubles(in.k.view),
                                 to_doubles(in.v.view), {}, {}, to_doubles(sinks.view));
    expect_close(run(op, n, {in.q.view, in.k.view, in.v.view, sinks.view}, 2).view, expected, 1e-5);
  }
}

TEST(Attention, GivesZeroOrNaNWhereNoKeyCounts) {
  std::mt19937 random(5);
  const Sizes n{1, 2, 3, 1, 1, 8, 8};
  const Inputs in = random_inputs(random, n, DType::kF32, DType::kF32);
  TestTensor mask = make_tensor(DType::kBool, {2, 3});
  for (int i = 0; i < 3; ++i) mask.bytes[i] = std::byte{0}, mask.bytes[3 + i] = std::byte{1};
  const TestTensor sinks = random_tensor(random, DType::kF32, {1});
  const TestTensor with = run({.mask = true, .sinks = true}, n,
                              {in.q.view, in.k.view, in.v.view, mask.view, sinks.view}, 1);
  const TestTensor without =
      run({.mask = true}, n, {in.q.view, in.k.view, in.v.view, mask.view}, 1);
  for (int j = 0; j < 8; ++j) {
    EXPECT_EQ(with.view.as<float>()[j], 0.0f);
    EXPECT_TRUE(std::isnan(without.view.as<float>()[j]));
    EXPECT_FALSE(std::isnan(without.view.as<float>()[8 + j]));
  }
}

TEST(Attention, ReadsAViewOfACacheWithItsStrides) {
  std::mt19937 random(6);
  // The cache is [batch, heads, capacity, dim]; attention sees it as [batch, keys, heads, dim].
  const Sizes n{2, 3, 70, 4, 2, 32, 32};
  const int64_t capacity = 90;
  const TestTensor q = random_tensor(random, DType::kF32, {n.batch, n.tokens, n.heads, n.dim});
  TestTensor caches[2];
  TensorView views[2];
  for (int i = 0; i < 2; ++i) {
    caches[i] = random_tensor(random, DType::kF16, {n.batch, n.key_heads, capacity, n.dim});
    views[i] = caches[i].view;
    std::swap(views[i].extents[1], views[i].extents[2]);
    std::swap(views[i].strides[1], views[i].strides[2]);
    views[i].extents[1] = n.keys;
  }
  const auto expected =
      attend({}, n, to_doubles(q.view), to_doubles(views[0]), to_doubles(views[1]), {}, {}, {});
  expect_close(run({}, n, {q.view, views[0], views[1]}, 3).view, expected, 1e-5);
}

TEST(Attention, GivesTheSameBitsForAnyNumberOfThreads) {
  std::mt19937 random(7);
  for (const Sizes& n : kSizes) {
    const Inputs in = random_inputs(random, n, DType::kF32, DType::kF16);
    for (const Attention& op : {Attention{}, Attention{.window = 530}}) {
      const TestTensor one = run(op, n, {in.q.view, in.k.view, in.v.view}, 1);
      for (const int threads : {2, 3}) {
        EXPECT_EQ(run(op, n, {in.q.view, in.k.view, in.v.view}, threads).bytes, one.bytes);
      }
    }
  }
}

TEST(Attention, GivesATokenTheSameBitsAloneAndInAPrompt) {
  std::mt19937 random(8);
  const Sizes n{1, 150, 1203, 6, 2, 64, 48};
  const Inputs in = random_inputs(random, n, DType::kF32, DType::kF16);
  for (const Attention& op : {Attention{}, Attention{.window = 530}}) {
    const TestTensor all = run(op, n, {in.q.view, in.k.view, in.v.view}, 2);
    const int64_t row_bytes = n.heads * n.value_dim * 4;
    for (const int64_t token : {int64_t{0}, int64_t{77}, int64_t{149}}) {
      // The token as the last one of a shorter sequence.
      Sizes alone = n;
      alone.tokens = 1;
      alone.keys = n.keys - n.tokens + token + 1;
      TensorView q = in.q.view, k = in.k.view, v = in.v.view;
      q.data += token * n.heads * n.dim * 4;
      q.extents[1] = 1;
      k.extents[1] = v.extents[1] = alone.keys;
      for (const int threads : {1, 2}) {
        const TestTensor one = run(op, alone, {q, k, v}, threads);
        EXPECT_EQ(std::memcmp(one.bytes.data(), all.bytes.data() + token * row_bytes,
                              static_cast<size_t>(row_bytes)),
                  0)
            << "token " << token;
      }
    }
  }
}

// Keys and values of `positions` in a cache of `rows` rows, each at its place; the other rows are
// NaN, so that reading one shows.
TestTensor scatter_rows(const TestTensor& keys, int64_t rows, int64_t first, int64_t last,
                        int64_t texts, int64_t text) {
  const std::vector<int64_t> extents = {texts, rows, keys.view.extents[2], keys.view.extents[3]};
  TestTensor cache = make_tensor(keys.view.dtype, extents);
  std::fill(cache.bytes.begin(), cache.bytes.end(), std::byte{0xff});
  const auto row_bytes = static_cast<int64_t>(
      storage_bytes(keys.view.dtype, keys.view.extents[2] * keys.view.extents[3]));
  for (int64_t position = first; position < last; ++position) {
    std::memcpy(cache.bytes.data() + (text * rows + position % rows) * row_bytes,
                keys.bytes.data() + position * row_bytes, static_cast<size_t>(row_bytes));
  }
  cache.view.data = cache.bytes.data();
  return cache;
}

TestTensor make_indices(const std::vector<int64_t>& values) {
  TestTensor tensor = make_tensor(DType::kI64, {static_cast<int64_t>(values.size())});
  std::copy(values.begin(), values.end(), tensor.view.as<int64_t>());
  return tensor;
}

TestTensor run_cached(const CachedAttention& op, const std::vector<TensorView>& inputs,
                      int64_t value_dim, int threads) {
  TestTensor out =
      make_tensor(inputs[0].dtype, {1, inputs[0].extents[1], inputs[0].extents[2], value_dim});
  run_kernel(attention_kernels(), op, inputs, out, threads, "attention.cached");
  return out;
}

TEST(CachedAttention, GivesTheBitsOfKeysInOrderFromACacheThatWraps) {
  std::mt19937 random(9);
  for (const int64_t tokens : {int64_t{1}, int64_t{3}, int64_t{40}}) {
    for (const int64_t window : {int64_t{5}, int64_t{100}, int64_t{700}}) {
      const Sizes n{1, tokens, 1501, 6, 2, 32, 64};
      const int64_t rows = window + tokens - 1;
      std::vector<int64_t> places;
      for (int64_t i = 0; i < tokens; ++i) places.push_back(n.keys - tokens + i);
      const TestTensor positions = make_indices(places);
      for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
        const Inputs in = random_inputs(random, n, DType::kF32, dtype);
        const TestTensor k = scatter_rows(in.k, rows, n.keys - rows, n.keys, 1, 0);
        const TestTensor v = scatter_rows(in.v, rows, n.keys - rows, n.keys, 1, 0);
        for (const int threads : {1, 2, 3}) {
          const TestTensor expected =
              run({.window = window, .soft_cap = 2}, n, {in.q.view, in.k.view, in.v.view}, 1);
          const TestTensor actual =
              run_cached({.window = window, .soft_cap = 2},
                         {in.q.view, k.view, v.view, positions.view}, n.value_dim, threads);
          EXPECT_EQ(actual.bytes, expected.bytes)
              << tokens << " tokens, window " << window << ", " << threads << " threads";
        }
      }
    }
  }
}

TEST(CachedAttention, GivesEachTextTheBitsThatItGetsAlone) {
  std::mt19937 random(10);
  constexpr int64_t kRows = 700;
  // Text 2 takes a part of its prompt, 0 and 1 one token each; text 3 is not there.
  const std::vector<int64_t> texts = {2, 2, 2, 0, 1}, places = {596, 597, 598, 12, 699};
  const Sizes n{1, 5, 700, 4, 2, 32, 32};
  TestTensor k = make_tensor(DType::kF16, {4, kRows, 2, 32});
  TestTensor v = make_tensor(DType::kF16, {4, kRows, 2, 32});
  const Inputs in = random_inputs(random, n, DType::kF32, DType::kF16);
  std::vector<TestTensor> own_k, own_v;
  const int64_t text_bytes = kRows * 2 * 32 * 2;
  for (int64_t text = 0; text < 4; ++text) {
    own_k.push_back(random_tensor(random, DType::kF16, {1, kRows, 2, 32}));
    own_v.push_back(random_tensor(random, DType::kF16, {1, kRows, 2, 32}));
    std::copy(own_k.back().bytes.begin(), own_k.back().bytes.end(),
              k.bytes.begin() + text * text_bytes);
    std::copy(own_v.back().bytes.begin(), own_v.back().bytes.end(),
              v.bytes.begin() + text * text_bytes);
  }
  const TestTensor positions = make_indices(places), text_ids = make_indices(texts);
  const int64_t row_bytes = n.heads * n.value_dim * 4;
  for (const int threads : {1, 3}) {
    const TestTensor all = run_cached(
        {.texts = true}, {in.q.view, k.view, v.view, positions.view, text_ids.view}, 32, threads);
    for (size_t i = 0; i < places.size(); ++i) {
      TensorView q = in.q.view;
      q.data += static_cast<int64_t>(i) * n.heads * n.dim * 4;
      q.extents[1] = 1;
      TensorView own_keys = own_k[texts[i]].view, own_values = own_v[texts[i]].view;
      own_keys.extents[1] = own_values.extents[1] = places[i] + 1;
      const Sizes alone{1, 1, places[i] + 1, 4, 2, 32, 32};
      const TestTensor expected = run({}, alone, {q, own_keys, own_values}, 2);
      EXPECT_EQ(std::memcmp(all.bytes.data() + static_cast<int64_t>(i) * row_bytes,
                            expected.bytes.data(), static_cast<size_t>(row_bytes)),
                0)
          << "token " << i << ", " << threads << " threads";
    }
  }
}

TEST(CachedAttention, ReportsPlacesThatTheCacheDoesNotHave) {
  std::mt19937 random(11);
  const TestTensor q = random_tensor(random, DType::kF32, {1, 2, 2, 8});
  const TestTensor k = random_tensor(random, DType::kF32, {2, 6, 2, 8});
  const auto error_of = [&](const CachedAttention& op, std::vector<int64_t> positions,
                            std::vector<int64_t> texts) {
    const TestTensor places = make_indices(positions), ids = make_indices(texts);
    TestTensor out = make_tensor(DType::kF32, {1, 2, 2, 8});
    return run_kernel(attention_kernels(), op, {q.view, k.view, k.view, places.view, ids.view}, out,
                      2);
  };
  EXPECT_EQ(error_of({.texts = true}, {4, 5}, {0, 1}), KernelError::kNone);
  EXPECT_EQ(error_of({.texts = true}, {5, 6}, {0, 1}), KernelError::kCacheFull);
  EXPECT_EQ(error_of({.texts = true}, {-1, 0}, {0, 1}), KernelError::kCacheFull);
  EXPECT_EQ(error_of({.texts = true}, {0, 0}, {0, 2}), KernelError::kIndexOutOfRange);
  EXPECT_EQ(error_of({.window = 5, .texts = true}, {500, 600}, {0, 1}), KernelError::kNone);
  EXPECT_EQ(error_of({.window = 6, .texts = true}, {500, 600}, {0, 1}), KernelError::kCacheFull);
}

// A q8_0 cache against the values that it stands for.
TEST(CachedAttention, ReadsACacheOfQ8) {
  std::mt19937 random(12);
  for (const int64_t tokens : {int64_t{1}, int64_t{9}}) {
    const Sizes n{1, tokens, 150, 4, 2, 64, 32};
    const Inputs in = random_inputs(random, n, DType::kF32, DType::kF32);
    const auto pack = [](const TestTensor& from) {
      const auto& e = from.view.extents;
      TestTensor packed = make_tensor(DType::kQ8_0, {e[0], e[1], e[2], e[3]});
      encode_row(DType::kQ8_0, from.view.as<float>(), from.view.num_elements(),
                 packed.bytes.data());
      return packed;
    };
    const TestTensor k = pack(in.k), v = pack(in.v);
    const auto expected =
        attend({}, n, to_doubles(in.q.view), to_doubles(k.view), to_doubles(v.view), {}, {}, {});
    const TestTensor one = run({}, n, {in.q.view, k.view, v.view}, 1);
    expect_close(one.view, expected, 1e-5);
    EXPECT_EQ(run({}, n, {in.q.view, k.view, v.view}, 3).bytes, one.bytes);
  }
}

}  // namespace
}  // namespace rlx::cpu

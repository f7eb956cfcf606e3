#include "ops/attention.h"

#include <cmath>
#include <limits>

#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/kernels/matmul_test_call.h"

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

}  // namespace
}  // namespace rlx::cpu

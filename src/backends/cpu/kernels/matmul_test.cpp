#include "ops/matmul.h"

#include <hwy/highway.h>

#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/kernels/matmul_test_call.h"
#include "backends/cpu/kernels/packed_dot.h"
#include "backends/cpu/kernels/packed_test_blocks.h"
#include "backends/cpu/kernels/simd.h"

namespace rlx::cpu {
namespace {

// x[rows, depth] . w[columns, depth]^T in doubles.
std::vector<double> multiply(std::span<const double> x, std::span<const double> w, int64_t rows,
                             int64_t columns, int64_t depth) {
  std::vector<double> out(static_cast<size_t>(rows * columns));
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) {
      double sum = 0;
      for (int64_t i = 0; i < depth; ++i) sum += x[r * depth + i] * w[c * depth + i];
      out[r * columns + c] = sum;
    }
  }
  return out;
}

TensorView transposed(TensorView view) {
  std::swap(view.extents[view.rank - 1], view.extents[view.rank - 2]);
  std::swap(view.strides[view.rank - 1], view.strides[view.rank - 2]);
  return view;
}

struct Case {
  int64_t rows, columns, depth;
};
constexpr Case kCases[] = {{0, 5, 7},    {1, 1, 1},     {1, 7, 31},    {2, 13, 64},   {7, 33, 100},
                           {64, 1, 257}, {64, 70, 48},  {130, 37, 65}, {5, 40, 1500}, {1, 66, 2100},
                           {9, 3, 0},    {50, 9, 1024}, {530, 70, 40}};

TEST(FloatMatmul, EqualsDoubleLoopsForEveryWeightDtypeAndRowCount) {
  std::mt19937 random(1);
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16, DType::kF64}) {
    for (const Case& c : kCases) {
      SCOPED_TRACE(testing::Message()
                   << to_string(dtype) << " " << c.rows << " x " << c.columns << " x " << c.depth);
      const TestTensor x = random_tensor(random, DType::kF32, {c.rows, c.depth});
      const TestTensor w = random_tensor(random, dtype, {c.columns, c.depth});
      const auto expected =
          multiply(to_doubles(x.view), to_doubles(w.view), c.rows, c.columns, c.depth);
      TestTensor out = make_tensor(DType::kF32, {c.rows, c.columns});
      run_kernel(matmul_kernels(), Matmul{.transpose_b = true}, {x.view, w.view}, out, 2,
                 "matmul.float");
      expect_close(out.view, expected, 2e-6);
    }
  }
}

TEST(FloatMatmul, TakesEveryLayoutOfBothSides) {
  std::mt19937 random(2);
  for (const Case& c : kCases) {
    for (const DType dtype : {DType::kF32, DType::kF16}) {
      const TestTensor x = random_tensor(random, dtype, {c.rows, c.depth});
      const TestTensor w = random_tensor(random, dtype, {c.columns, c.depth});
      const TestTensor x_turned = random_tensor(random, dtype, {c.depth, c.rows});
      const TestTensor w_turned = random_tensor(random, dtype, {c.depth, c.columns});
      for (int layout = 0; layout < 16; ++layout) {
        SCOPED_TRACE(testing::Message()
                     << layout << ": " << c.rows << " x " << c.columns << " x " << c.depth);
        // A turned tensor, and then a transposed view of either.
        const bool turns_x = layout & 1, turns_w = layout & 2;
        const bool transpose_a = layout & 4, transpose_b = layout & 8;
        const TensorView a = turns_x ? transposed(x_turned.view) : x.view;
        const TensorView b = turns_w ? transposed(w_turned.view) : w.view;
        const auto expected = multiply(to_doubles(a), to_doubles(b), c.rows, c.columns, c.depth);
        TestTensor out = make_tensor(dtype, {c.rows, c.columns});
        run_kernel(matmul_kernels(), Matmul{.transpose_a = transpose_a, .transpose_b = transpose_b},
                   {transpose_a ? transposed(a) : a, transpose_b ? b : transposed(b)}, out, 3,
                   "matmul.float");
        expect_close(out.view, expected, dtype == DType::kF32 ? 2e-6 : 1e-3);
      }
    }
  }
}

TEST(FloatMatmul, BroadcastsBatches) {
  std::mt19937 random(3);
  const int64_t m = 5, n = 6, k = 33;
  const TestTensor a = random_tensor(random, DType::kF32, {2, 1, m, k});
  for (const bool shares_w : {false, true}) {
    const TestTensor b =
        random_tensor(random, DType::kF32, {shares_w ? int64_t{1} : int64_t{3}, k, n});
    TestTensor out = make_tensor(DType::kF32, {2, 3, m, n});
    // With one matrix on the right, the left side has to bring the three.
    TensorView left = a.view;
    if (shares_w) left.extents[1] = 3, left.strides[1] = 0;
    run_kernel(matmul_kernels(), Matmul{}, {left, b.view}, out, 2, "matmul.float");
    const auto av = to_doubles(a.view), bv = to_doubles(b.view);
    std::vector<double> expected;
    for (int64_t i = 0; i < 2; ++i) {
      for (int64_t j = 0; j < 3; ++j) {
        for (int64_t r = 0; r < m; ++r) {
          for (int64_t c = 0; c < n; ++c) {
            double sum = 0;
            for (int64_t l = 0; l < k; ++l) {
              sum += av[(i * m + r) * k + l] * bv[((shares_w ? 0 : j) * k + l) * n + c];
            }
            expected.push_back(sum);
          }
        }
      }
    }
    expect_close(out.view, expected, 2e-6);
  }
}

std::vector<std::byte> run_rows(DType dtype, const TestTensor& x, const TestTensor& w, int threads,
                                int64_t rows, bool quantize) {
  TensorView left = x.view;
  left.extents[0] = rows;
  TestTensor out = make_tensor(dtype, {rows, w.view.extents[0]});
  run_kernel(matmul_kernels(), Matmul{.transpose_b = true}, {left, w.view}, out, threads, "",
             quantize);
  return out.bytes;
}

// The bytes of a row are the same with any number of threads and of rows beside it.
void expect_same_bits(const TestTensor& x, const TestTensor& w, bool quantize) {
  const auto expected = run_rows(DType::kF32, x, w, 1, x.view.extents[0], quantize);
  for (const int threads : {1, 2, 3}) {
    for (const int64_t rows :
         {int64_t{1}, int64_t{2}, int64_t{5}, int64_t{8}, int64_t{70}, x.view.extents[0]}) {
      const auto bytes = run_rows(DType::kF32, x, w, threads, rows, quantize);
      EXPECT_EQ(std::memcmp(bytes.data(), expected.data(), bytes.size()), 0)
          << threads << " threads, " << rows << " rows";
    }
  }
}

TEST(FloatMatmul, GivesTheSameBitsForAnyNumberOfThreadsAndRows) {
  std::mt19937 random(4);
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    SCOPED_TRACE(to_string(dtype));
    const TestTensor x = random_tensor(random, DType::kF32, {130, 1101});
    const TestTensor w = random_tensor(random, dtype, {45, 1101});
    expect_same_bits(x, w, true);
  }
}

TEST(FloatMatmul, IsRightAndKeepsBitsOnEveryVectorTarget) {
  std::mt19937 random(15);
  const TestTensor x = random_tensor(random, DType::kF32, {70, 1101});
  const int64_t targets = hwy::SupportedTargets() & HWY_TARGETS;
  for (int64_t rest = targets; rest != 0; rest &= rest - 1) {
    const int64_t target = rest & -rest;
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    for (const DType dtype : {DType::kF32, DType::kF16}) {
      SCOPED_TRACE(testing::Message() << to_string(dtype) << " on " << hwy::TargetName(target));
      const TestTensor w = random_tensor(random, dtype, {45, 1101});
      const auto expected = multiply(to_doubles(x.view), to_doubles(w.view), 70, 45, 1101);
      expect_same_bits(x, w, true);
      TestTensor out = make_tensor(DType::kF32, {70, 45});
      run_kernel(matmul_kernels(), Matmul{.transpose_b = true}, {x.view, w.view}, out, 2);
      expect_close(out.view, expected, 2e-6);
    }
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

TEST(PackedMatmul, DecodesTilesExactlyWhenActivationsStayFloat) {
  std::mt19937 random(5);
  for (int i = static_cast<int>(DType::kQ4_0); i < kNumDTypes; ++i) {
    const auto dtype = static_cast<DType>(i);
    SCOPED_TRACE(to_string(dtype));
    for (const int64_t rows : {1, 2, 7, 40}) {
      const int64_t columns = 37, depth = 5 * 256;
      const TestTensor x = random_tensor(random, DType::kF32, {rows, depth});
      const TestTensor w = random_packed(random, dtype, {columns, depth});
      const auto expected = multiply(to_doubles(x.view), to_doubles(w.view), rows, columns, depth);
      TestTensor out = make_tensor(DType::kF32, {rows, columns});
      run_kernel(matmul_kernels(), Matmul{.transpose_b = true}, {x.view, w.view}, out, 2,
                 "matmul.float", false);
      expect_close(out.view, expected, 2e-6);
    }
  }
}

constexpr DType kQuantizedFormats[] = {DType::kQ8_0, DType::kQ4_0, DType::kQ4_1,   DType::kQ5_0,
                                       DType::kQ5_1, DType::kQ2_K, DType::kQ3_K,   DType::kQ4_K,
                                       DType::kQ5_K, DType::kQ6_K, DType::kIQ4_NL, DType::kIQ4_XS,
                                       DType::kMXFP4};

TEST(PackedMatmul, StaysCloseToTheExactProductWithQuantisedActivations) {
  std::mt19937 random(10);
  for (const DType dtype : kQuantizedFormats) {
    for (const int64_t rows : {0, 1, 2, 3, 4, 7, 64, 300}) {
      for (const int64_t blocks : {1, 3, 11}) {
        SCOPED_TRACE(testing::Message() << to_string(dtype) << " " << rows << " " << blocks);
        const int64_t columns = 37, depth = blocks * elements_per_block(dtype);
        const TestTensor x = random_tensor(random, DType::kF32, {rows, depth});
        const TestTensor w = random_packed(random, dtype, {columns, depth});
        const auto expected =
            multiply(to_doubles(x.view), to_doubles(w.view), rows, columns, depth);
        TestTensor out = make_tensor(DType::kF32, {rows, columns});
        run_kernel(matmul_kernels(), Matmul{.transpose_b = true}, {x.view, w.view}, out, 2,
                   "matmul.packed");
        // Each activation is off by up to 1/254 of the largest of its block, so a sum of `depth`
        // is off by about sqrt(depth) of that.
        expect_close(out.view, expected, 2.5e-2);
      }
    }
  }
}

TEST(PackedMatmul, IsExactForActivationsThatInt8Holds) {
  std::mt19937 random(11);
  for (const DType dtype : kQuantizedFormats) {
    for (const int64_t rows : {1, 5}) {
      SCOPED_TRACE(testing::Message() << to_string(dtype) << " " << rows);
      const int64_t columns = 21, depth = 5 * 256;
      std::vector<double> values(static_cast<size_t>(rows * depth));
      for (size_t i = 0; i < values.size(); ++i) {
        values[i] = i % 32 == 0 ? 127 : static_cast<int>(random() % 255) - 127;
        values[i] /= 64;
      }
      const TestTensor x = make_tensor(DType::kF32, {rows, depth}, values);
      const TestTensor w = random_packed(random, dtype, {columns, depth});
      const auto expected = multiply(values, to_doubles(w.view), rows, columns, depth);
      TestTensor out = make_tensor(DType::kF32, {rows, columns});
      run_kernel(matmul_kernels(), Matmul{.transpose_b = true}, {x.view, w.view}, out, 2,
                 "matmul.packed");
      expect_close(out.view, expected, 3e-6);
    }
  }
}

TEST(PackedMatmul, GivesTheSameBitsForAnyNumberOfThreadsAndRows) {
  std::mt19937 random(12);
  for (const DType dtype : kQuantizedFormats) {
    SCOPED_TRACE(to_string(dtype));
    const int64_t depth = elements_per_block(dtype) == 32 ? 32 * 45 : 256 * 5;
    const TestTensor x = random_tensor(random, DType::kF32, {130, depth});
    const TestTensor w = random_packed(random, dtype, {45, depth});
    expect_same_bits(x, w, true);
    expect_same_bits(x, w, false);
  }
}

TEST(PackedMatmul, PassesOnNaNAndInfinity) {
  std::mt19937 random(13);
  for (const double bad : {std::numeric_limits<double>::quiet_NaN(), HUGE_VAL}) {
    for (const int64_t rows : {1, 6}) {
      TestTensor x = random_tensor(random, DType::kF32, {rows, 256});
      x.view.as<float>()[(rows - 1) * 256 + 77] = static_cast<float>(bad);
      const TestTensor w = random_packed(random, DType::kQ4_0, {5, 256});
      TestTensor out = make_tensor(DType::kF32, {rows, 5});
      run_kernel(matmul_kernels(), Matmul{.transpose_b = true}, {x.view, w.view}, out, 1);
      for (int64_t i = 0; i < rows * 5; ++i) {
        EXPECT_EQ(std::isnan(out.view.as<float>()[i]), i / 5 == rows - 1);
      }
    }
  }
}

// The AVX2 and the portable kernels differ by rounding only.
TEST(PackedKernels, AgreeBetweenInstructionSets) {
  std::mt19937 random(14);
  for (const DType dtype : kQuantizedFormats) {
    SCOPED_TRACE(to_string(dtype));
    const int64_t columns = 19, rows = 6;
    const int64_t depth = elements_per_block(dtype) == 32 ? 32 * 21 : 256 * 3;
    const TestTensor x = random_tensor(random, DType::kF32, {rows, depth});
    const TestTensor w = random_packed(random, dtype, {columns, depth});
    const int64_t stride = storage_bytes(dtype, depth);
    const auto expected = multiply(to_doubles(x.view), to_doubles(w.view), rows, columns, depth);
    for (const PackedKernels* kernels :
         {find_portable_packed_kernels(dtype), find_packed_kernels(dtype)}) {
      ASSERT_NE(kernels, nullptr);
      const QuantizedLayout layout(depth, kernels->wants_wide_codes);
      AlignedBytes storage(rows * layout.row_bytes());
      AlignedBytes strip(layout.padded_blocks / kQuantGroup * kernels->strip_group_bytes);
      std::vector<QuantizedRow> quantized;
      for (int64_t r = 0; r < rows; ++r) {
        quantized.push_back(layout.row(storage.data() + r * layout.row_bytes()));
        kernels->quantize(x.view.as<float>() + r * depth, depth, quantized.back());
      }
      TestTensor direct = make_tensor(DType::kF32, {rows, columns});
      TestTensor by_strips = make_tensor(DType::kF32, {rows, columns});
      for (int64_t r = 0; r < rows; ++r) {
        kernels->dot(w.view.data, stride, columns, depth, quantized[r],
                     direct.view.as<float>() + r * columns);
      }
      for (int64_t c = 0; c < columns; c += kStripColumns) {
        const int64_t part = std::min(kStripColumns, columns - c);
        std::vector<float> sums(static_cast<size_t>(rows * kStripColumns));
        kernels->decode_strip(w.view.data + c * stride, stride, part, depth, strip.data());
        kernels->multiply_strip(strip.data(), depth, quantized.data(), rows, sums.data(),
                                kStripColumns);
        for (int64_t r = 0; r < rows; ++r) {
          std::copy_n(&sums[r * kStripColumns], part, by_strips.view.as<float>() + r * columns + c);
        }
      }
      EXPECT_EQ(direct.bytes, by_strips.bytes);
      expect_close(direct.view, expected, 1e-2);
    }
  }
}

double activate(Activation activation, double x) {
  switch (activation) {
    case Activation::kNone:
      return x;
    case Activation::kRelu:
      return std::max(x, 0.0);
    case Activation::kGelu:
      return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0)));
    case Activation::kGeluTanh:
      return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    case Activation::kSilu:
      return x / (1 + std::exp(-x));
    case Activation::kSigmoid:
      return 1 / (1 + std::exp(-x));
    case Activation::kTanh:
      return std::tanh(x);
  }
  return x;
}

TEST(Linear, AppliesBiasActivationAndResidual) {
  std::mt19937 random(6);
  const int64_t columns = 37, depth = 70;
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kF64}) {
    for (int a = 0; a <= static_cast<int>(Activation::kTanh); ++a) {
      for (const int64_t rows : {1, 9}) {
        for (int parts = 0; parts < 4; ++parts) {
          Linear op{.bias = (parts & 1) != 0,
                    .residual = (parts & 2) != 0,
                    .activation = static_cast<Activation>(a)};
          const TestTensor x = random_tensor(random, dtype, {1, rows, depth});
          const TestTensor w = random_tensor(random, dtype, {columns, depth});
          const TestTensor bias = random_tensor(random, dtype, {columns});
          const TestTensor residual = random_tensor(random, dtype, {1, rows, columns});
          std::vector<TensorView> inputs{x.view, w.view};
          if (op.bias) inputs.push_back(bias.view);
          if (op.residual) inputs.push_back(residual.view);
          auto expected = multiply(to_doubles(x.view), to_doubles(w.view), rows, columns, depth);
          const auto b = to_doubles(bias.view), res = to_doubles(residual.view);
          for (int64_t i = 0; i < rows * columns; ++i) {
            const double sum = expected[i] + (op.bias ? b[i % columns] : 0);
            expected[i] = activate(op.activation, sum) + (op.residual ? res[i] : 0);
          }
          TestTensor out = make_tensor(dtype, {1, rows, columns});
          run_kernel(matmul_kernels(), op, inputs, out, 2);
          const double tolerance =
              dtype == DType::kF32 ? 1e-5 : (dtype == DType::kF16 ? 2e-3 : 1e-12);
          expect_close(out.view, expected, tolerance);
        }
      }
    }
  }
}

TestTensor make_ids(std::vector<int64_t> extents, std::span<const int64_t> ids, DType dtype) {
  TestTensor tensor = make_tensor(dtype, std::move(extents));
  for (size_t i = 0; i < ids.size(); ++i) {
    if (dtype == DType::kI64) {
      tensor.view.as<int64_t>()[i] = ids[i];
    } else {
      tensor.view.as<int32_t>()[i] = static_cast<int32_t>(ids[i]);
    }
  }
  return tensor;
}

TEST(GroupedMatmul, MultipliesEachRowByItsExpert) {
  std::mt19937 random(7);
  const int64_t experts = 5, columns = 19, depth = 256, active = 2;
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kF64, DType::kQ8_0, DType::kMXFP4}) {
    for (const int64_t tokens : {0, 1, 3, 60}) {
      for (const bool one_row_each : {false, true}) {
        SCOPED_TRACE(testing::Message() << to_string(dtype) << " " << tokens);
        const DType x_dtype = dtype == DType::kF64 ? DType::kF64 : DType::kF32;
        const TestTensor x = one_row_each ? random_tensor(random, x_dtype, {tokens, active, depth})
                                          : random_tensor(random, x_dtype, {tokens, depth});
        const TestTensor w = is_packed(dtype)
                                 ? random_packed(random, dtype, {experts, columns, depth})
                                 : random_tensor(random, dtype, {experts, columns, depth});
        std::vector<int64_t> ids(static_cast<size_t>(tokens * active));
        for (int64_t& id : ids) id = static_cast<int64_t>(random() % experts);
        const TestTensor id_tensor =
            make_ids({tokens, active}, ids, one_row_each ? DType::kI32 : DType::kI64);
        const auto xv = to_doubles(x.view), wv = to_doubles(w.view);
        std::vector<double> expected;
        for (int64_t p = 0; p < tokens * active; ++p) {
          const int64_t row = one_row_each ? p : p / active;
          const auto part = multiply(
              std::span(xv).subspan(row * depth, depth),
              std::span(wv).subspan(ids[p] * columns * depth, columns * depth), 1, columns, depth);
          expected.insert(expected.end(), part.begin(), part.end());
        }
        TestTensor out = make_tensor(x_dtype, {tokens, active, columns});
        EXPECT_EQ(
            run_kernel(matmul_kernels(), GroupedMatmul{}, {x.view, w.view, id_tensor.view}, out, 2),
            KernelError::kNone);
        expect_close(out.view, expected, is_packed(dtype) ? 1e-2 : 2e-6);
      }
    }
  }
}

TEST(GroupedMatmul, ReportsAnExpertThatIsNotThere) {
  std::mt19937 random(8);
  for (const DType dtype : {DType::kF32, DType::kF64, DType::kQ8_0}) {
    for (const int64_t bad : {int64_t{-1}, int64_t{4}, int64_t{1} << 40}) {
      const DType x_dtype = dtype == DType::kF64 ? DType::kF64 : DType::kF32;
      const TestTensor x = random_tensor(random, x_dtype, {2, 32});
      const TestTensor w = is_packed(dtype) ? random_packed(random, dtype, {4, 3, 32})
                                            : random_tensor(random, dtype, {4, 3, 32});
      const int64_t values[] = {0, bad, 3, 1};
      const TestTensor ids = make_ids({2, 2}, values, DType::kI64);
      TestTensor out = make_tensor(x_dtype, {2, 2, 3});
      EXPECT_EQ(run_kernel(matmul_kernels(), GroupedMatmul{}, {x.view, w.view, ids.view}, out, 2),
                KernelError::kIndexOutOfRange);
    }
  }
}

TEST(PlainMatmul, WrapsIntegers) {
  const DType dtypes[] = {DType::kI8, DType::kU8, DType::kI32, DType::kI64};
  for (const DType dtype : dtypes) {
    TestTensor a = make_tensor(dtype, {3, 4}), b = make_tensor(dtype, {4, 2});
    std::mt19937 random(9);
    for (std::byte& byte : a.bytes) byte = static_cast<std::byte>(random());
    for (std::byte& byte : b.bytes) byte = static_cast<std::byte>(random());
    TestTensor out = make_tensor(dtype, {3, 2});
    run_kernel(matmul_kernels(), Matmul{}, {a.view, b.view}, out, 2, "matmul.plain");
    const int64_t size = bytes_per_block(dtype);
    const auto load = [&](const TestTensor& tensor, int64_t i) {
      uint64_t value = 0;
      std::memcpy(&value, tensor.bytes.data() + i * size, static_cast<size_t>(size));
      return value;
    };
    for (int64_t r = 0; r < 3; ++r) {
      for (int64_t c = 0; c < 2; ++c) {
        uint64_t sum = 0;
        for (int64_t i = 0; i < 4; ++i) sum += load(a, r * 4 + i) * load(b, i * 2 + c);
        const uint64_t bits = size == 8 ? ~uint64_t{0} : (uint64_t{1} << (8 * size)) - 1;
        EXPECT_EQ(load(out, r * 2 + c), sum & bits) << to_string(dtype);
      }
    }
  }
}

}  // namespace
}  // namespace rlx::cpu

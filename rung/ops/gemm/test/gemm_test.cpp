// SPDX-License-Identifier: Apache-2.0
// Properties of gemm beyond `rung check`: algebra, errors, memory, the largest sizes.
#include "rung/ops/gemm/test/gemm_test.hpp"

#include <sys/mman.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>
#include <random>
#include <string>
#include <tuple>
#include <vector>

// g++ 12 mistakes a replaced operator new for the library's.
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"

namespace {
std::atomic<long> allocations{0};
}
// Counts gemm's C++ allocations; workspace_capacity would reveal malloc in the library.
void* operator new(std::size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  ++allocations;
  return std::malloc(size);
}
void* operator new(std::size_t size, std::align_val_t alignment) {
  ++allocations;
  const auto align = static_cast<std::size_t>(alignment);
  if (void* memory = std::aligned_alloc(align, (size + align - 1) / align * align)) return memory;
  throw std::bad_alloc();
}
void* operator new(std::size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  ++allocations;
  const auto align = static_cast<std::size_t>(alignment);
  return std::aligned_alloc(align, (size + align - 1) / align * align);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

namespace rung {
namespace {

using namespace gemm_test;

/// Returns the message of the Error that f throws; "" if it throws none.
template <class F>
std::string message_of(F&& f, ErrorCode expected = ErrorCode::invalid_argument) {
  try {
    f();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), expected) << error.what();
    return error.what();
  }
  return "";
}

TEST_P(GemmOn, IdentityGivesBackEveryBit) {
  for (const std::int64_t n : {1, 3, 16, 33, 70}) {
    auto a = random_values(static_cast<std::size_t>(n * n), 1);
    std::vector<float> identity(a.size(), 0.0F);
    for (std::int64_t i = 0; i < n; ++i) identity[static_cast<std::size_t>(i * n + i)] = 1.0F;
    std::vector<float> c(a.size(), -1.0F);
    gemm(context, matrix(a, n, n), matrix(identity, n, n), matrix(c, n, n));
    EXPECT_EQ(std::memcmp(a.data(), c.data(), a.size() * sizeof(float)), 0) << n;
    gemm(context, matrix(identity, n, n), matrix(a, n, n), matrix(c, n, n));
    EXPECT_EQ(std::memcmp(a.data(), c.data(), a.size() * sizeof(float)), 0) << n;
  }
}

TEST_P(GemmOn, SecondCallOfAShapeAllocatesNothing) {
  if (GetParam() == Backend::simt) GTEST_SKIP() << "the simulator keeps fibers of its own";
  for (const std::int64_t n : {8, 96, 300, 700}) {
    auto a = random_values(static_cast<std::size_t>(n * n), 1);
    auto b = random_values(a.size(), 2);
    std::vector<float> c(a.size());
    const auto call = [&] { gemm(context, matrix(a, n, n), matrix(b, n, n), matrix(c, n, n)); };
    call();
    const std::size_t capacity = context.workspace_capacity();
    const long before = allocations;
    call();
    EXPECT_EQ(allocations - before, 0) << n;
    EXPECT_EQ(context.workspace_capacity(), capacity) << n;
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, GemmOn, testing::Values(Backend::cpu, Backend::simt),
                         name_of_backend);

TEST(GemmCpu, WorkspaceStaysUnder32MiB) {
  for (const int threads : {1, 2, 8, 300}) {
    Context context = Context::cpu(threads);
    for (const auto& [m, n, k] :
         {std::tuple{3000, 2000, 300}, std::tuple{16, 9000, 1000}, std::tuple{9000, 16, 1000},
          std::tuple{40, 40, 50000}, std::tuple{150, 4000, 2048}}) {
      std::vector<float> a(static_cast<std::size_t>(m) * static_cast<std::size_t>(k), 1.0F);
      std::vector<float> b(static_cast<std::size_t>(k) * static_cast<std::size_t>(n), 2.0F);
      std::vector<float> c(static_cast<std::size_t>(m) * static_cast<std::size_t>(n));
      gemm(context, matrix(a, m, k), matrix(b, k, n), matrix(c, m, n));
      EXPECT_LE(context.workspace_capacity(), std::size_t{32} << 20)
          << m << 'x' << n << 'x' << k << " with " << threads << " threads";
    }
  }
}

/// Sums of a C with strided columns are staged, in several successive groups of rows: a thread that
/// begins the next group must not overwrite sums that another still updates. More threads than
/// cores, so that their order varies enough to show it.
TEST(GemmCpu, SameBitsWithAnyNumberOfThreadsWhereSumsAreStaged) {
  const int m = 1300, n = 4096;
  for (const int k : {8, 64}) {
    auto a = std::vector<float>(static_cast<std::size_t>(m * k));
    auto b = std::vector<float>(static_cast<std::size_t>(k * n));
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i * 7 % 17) - 8;
    for (std::size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>(i * 5 % 19) - 9;
    const auto product = [&](int threads) {
      Context context = Context::cpu(threads);
      std::vector<float> c(std::size_t{2} * m * n, 1.0F);
      TensorRef spread(c.data(), DType::f32, Extents{m, n});
      spread.strides = Extents{2 * n, 2};
      gemm(context, matrix(a, m, k), matrix(b, k, n), spread, {}, {"threads"});
      return c;
    };
    const std::vector<float> expected = product(1);
    for (int round = 0; round < 15; ++round) {
      for (const int threads : {2, 5, 8}) ASSERT_TRUE(product(threads) == expected) << threads;
    }
  }
}

/// Threads share rows or strips of columns: the same tiles sum each element.
TEST(GemmCpu, SameBitsWithAnyNumberOfThreadsOfSmall) {
  std::mt19937 engine(7);
  std::normal_distribution<float> normal;
  const auto random = [&](int count) {
    std::vector<float> values(static_cast<std::size_t>(count));
    for (float& value : values) value = normal(engine);
    return values;
  };
  for (const auto& [m, n, k] :
       {std::tuple{333, 100, 300}, std::tuple{1000, 5, 700}, std::tuple{3001, 17, 65},
        std::tuple{29, 3000, 64}, std::tuple{457, 333, 9}, std::tuple{100, 75, 1500}}) {
    std::vector<float> a = random(m * k), b = random(k * n);
    const auto product = [&, m = m, n = n, k = k](int threads) {
      Context context = Context::cpu(threads);
      std::vector<float> c(static_cast<std::size_t>(m * n));
      gemm(context, matrix(a, m, k), matrix(b, k, n), matrix(c, m, n), {}, {"small"});
      return c;
    };
    const std::vector<float> expected = product(1);
    for (const int threads : {2, 3, 7, 8}) {
      EXPECT_TRUE(product(threads) == expected) << m << 'x' << n << 'x' << k << ' ' << threads;
    }
  }
}

/// Rows are rescheduled in each of several pieces of k, and for each matrix of a batch smaller than
/// the team. Whole numbers make the sums exact.
TEST(GemmCpu, EveryRowGetsEveryPieceOfK) {
  const int m = 700, n = 100;
  for (const auto& [batch, k] : {std::pair{1, 5000}, std::pair{2, 700}}) {
    std::vector<float> a(static_cast<std::size_t>(batch * m * k));
    std::vector<float> b(static_cast<std::size_t>(batch * k * n));
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i * 7 % 17) - 8;
    for (std::size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>(i * 5 % 19) - 9;
    const auto product = [&, batch = batch, k = k](int threads) {
      Context context = Context::cpu(threads);
      std::vector<float> c(static_cast<std::size_t>(batch * m * n));
      gemm(context, TensorRef(a.data(), DType::f32, Extents{batch, m, k}),
           TensorRef(b.data(), DType::f32, Extents{batch, k, n}),
           TensorRef(c.data(), DType::f32, Extents{batch, m, n}), {}, {"threads"});
      return c;
    };
    const std::vector<float> expected = product(1);
    for (const int threads : {2, 3, 8}) EXPECT_TRUE(product(threads) == expected) << threads;
  }
}

TEST(GemmCpu, SameBitsWhateverTheAddressAndTheRun) {
  Context context = Context::cpu();
  const std::int64_t n = 150;
  auto a = random_values(static_cast<std::size_t>(n * n), 1);
  auto b = random_values(a.size(), 2);
  std::vector<float> first(a.size());
  std::vector<float> second(a.size());
  gemm(context, matrix(a, n, n), matrix(b, n, n), matrix(first, n, n));
  gemm(context, matrix(a, n, n), matrix(b, n, n), matrix(second, n, n));
  EXPECT_EQ(first, second);
}

TEST(GemmCpu, IndicesBeyond32Bits) {
  // Rows 3 * 2^31 elements apart: untouched pages of a reservation cost nothing.
  const std::int64_t stride = (std::int64_t{1} << 31) + 7;
  const std::size_t bytes = static_cast<std::size_t>(3 * stride) * sizeof(float);
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) GTEST_SKIP() << "no address space for " << bytes << " bytes";
  auto* a = static_cast<float*>(memory);
  for (std::int64_t row = 0; row < 3; ++row) {
    for (std::int64_t k = 0; k < 4; ++k) {
      a[row * stride + k] = static_cast<float>(10 * row + k);
    }
  }
  auto b = random_values(20, 2);
  std::vector<float> c(15);
  std::vector<float> packed;
  for (std::int64_t row = 0; row < 3; ++row) {
    packed.insert(packed.end(), a + row * stride, a + row * stride + 4);
  }
  std::vector<float> expected(15);
  Context context = Context::cpu();
  const ConstTensorRef far(a, DType::f32, Extents{3, 4}, Extents{stride, 1});
  gemm(context, far, matrix(b, 4, 5), matrix(c, 3, 5));
  gemm(context, matrix(packed, 3, 4), matrix(b, 4, 5), matrix(expected, 3, 5));
  EXPECT_EQ(c, expected);
  munmap(memory, bytes);
}

TEST(GemmCpu, MoreThan32BitsOfK) {
  // 8 GiB of zeros without physical pages, except for the few that are written.
  const std::int64_t k = (std::int64_t{1} << 31) + 3;
  const std::size_t bytes = static_cast<std::size_t>(k) * sizeof(float);
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) GTEST_SKIP() << "no address space for " << bytes << " bytes";
  auto* x = static_cast<float*>(memory);
  x[0] = 1;
  x[k / 2] = 2;
  x[k - 1] = 3;
  float c = 0;
  Context context = Context::cpu();
  gemm(context, ConstTensorRef(x, DType::f32, Extents{1, k}),
       ConstTensorRef(x, DType::f32, Extents{k, 1}), TensorRef(&c, DType::f32, Extents{1, 1}));
  EXPECT_EQ(c, 14.0F);
  munmap(memory, bytes);
}

TEST(GemmErrors, NameTheArgumentAndWhatIsAccepted) {
  Context context = Context::cpu();
  auto a = random_values(64, 1);
  auto b = random_values(64, 2);
  std::vector<float> c(64);
  std::string text =
      message_of([&] { gemm(context, matrix(a, 3, 4), matrix(b, 5, 6), matrix(c, 3, 6)); });
  EXPECT_NE(text.find("a is 3x4, b is 5x6: the inner extents k = 4 (a's columns) and 5 (b's rows) "
                      "differ"),
            std::string::npos)
      << text;
  text = message_of([&] {
    gemm(context, matrix(a, 3, 4), matrix(b, 6, 3), matrix(c, 5, 6),
         {.transpose_a = true, .transpose_b = true});
  });
  EXPECT_NE(text.find("a is 3x4, c is 5x6: the extents m = 4 (a's columns) and 5 (c's rows) "
                      "differ"),
            std::string::npos)
      << text;
  text = message_of([&] {
    gemm(context, TensorRef(a, {2, 3, 4}), matrix(b, 5, 4), TensorRef(c, {2, 3, 6}),
         {.transpose_b = true});
  });
  EXPECT_NE(text.find("b is 5x4, c is 2x3x6: the extents n = 5 (b's rows) and 6 (c's columns) "
                      "differ"),
            std::string::npos)
      << text;

  EXPECT_EQ(text.find("did you mean"), std::string::npos) << text;

  // The message suggests the other transpose if that fits, and suggests nothing otherwise.
  const auto hint = [&](const TensorRef& left, const TensorRef& right, const TensorRef& result,
                        const GemmOptions& options) {
    const std::string said = message_of([&] { gemm(context, left, right, result, options); });
    const std::size_t at = said.find("; did you mean ");
    return at == std::string::npos ? "" : said.substr(at + 15);
  };
  EXPECT_EQ(hint(matrix(a, 4, 8), matrix(b, 7, 8), matrix(c, 4, 7), {}), "transpose_b?");
  EXPECT_EQ(hint(matrix(a, 8, 4), matrix(b, 8, 7), matrix(c, 4, 7), {}), "transpose_a?");
  EXPECT_EQ(hint(matrix(a, 8, 4), matrix(b, 7, 8), matrix(c, 4, 7), {}),
            "transpose_a and transpose_b?");
  EXPECT_EQ(hint(matrix(a, 4, 8), matrix(b, 8, 7), matrix(c, 4, 7), {.transpose_b = true}),
            "no transpose_b?");
  EXPECT_EQ(hint(matrix(a, 4, 8), matrix(b, 7, 8), matrix(c, 4, 6), {}), "");

  text = message_of([&] {
    gemm(context, TensorRef(a.data(), DType::f32, Extents{4}), matrix(b, 4, 4), matrix(c, 4, 4));
  });
  EXPECT_NE(text.find("a has 1 axis ("), std::string::npos) << text;

  text = message_of([&] {
    gemm(context, TensorRef(static_cast<void*>(a.data()), DType::i32, Extents{4, 4}),
         matrix(b, 4, 4), matrix(c, 4, 4));
  });
  EXPECT_NE(text.find("a is i32"), std::string::npos) << text;
  EXPECT_NE(text.find("accepted"), std::string::npos) << text;

  text = message_of([&] {
    gemm(context, matrix(a, 4, 4), matrix(b, 4, 4), matrix(c, 4, 4), {.bias = matrix(a, 4, 3)});
  });
  EXPECT_NE(text.find("bias is 4x3"), std::string::npos) << text;

  text = message_of([&] { gemm(context, matrix(a, 4, 4), matrix(b, 4, 4), matrix(a, 4, 4)); });
  EXPECT_NE(text.find("c overlaps a"), std::string::npos) << text;

  text = message_of([&] {
    gemm(context, matrix(a, 4, 4), matrix(b, 4, 4),
         TensorRef(c.data(), DType::f32, Extents{4, 4}, Extents{2, 1}));
  });
  EXPECT_NE(text.find("c (4x4, strides 2x1) overlaps itself"), std::string::npos) << text;

  text = message_of([&] {
    gemm(context, TensorRef(nullptr, DType::f32, Extents{4, 4}), matrix(b, 4, 4), matrix(c, 4, 4));
  });
  EXPECT_NE(text.find("a (4x4) has a null data pointer"), std::string::npos) << text;

  text = message_of([&] {
    gemm(context, TensorRef(a.data(), DType::f32, Extents{2, 4, 4}),
         TensorRef(b.data(), DType::f32, Extents{3, 4, 4}),
         TensorRef(c.data(), DType::f32, Extents{2, 4, 4}));
  });
  EXPECT_NE(text.find("b is 3x4x4, c is 2x4x4: the batches of 3 and 2 differ; accepted for "
                      "b: 2 or 1"),
            std::string::npos)
      << text;

  text = message_of(
      [&] {
        gemm(context, matrix(a, 4, 4), matrix(b, 4, 4), matrix(c, 4, 4), {}, Pick{"no_such"});
      },
      ErrorCode::invalid_argument);
  EXPECT_NE(text.find("no_such"), std::string::npos) << text;
}

TEST(GemmErrors, AliasingIsSeenOnEveryCallNotOnlyTheFirst) {
  Context context = Context::cpu();
  auto a = random_values(32, 1);
  auto b = random_values(16, 2);
  std::vector<float> c(16);
  gemm(context, matrix(a, 4, 4), matrix(b, 4, 4), matrix(c, 4, 4));
  // The layout is cached from the previous call, but c now overlaps a.
  const TensorRef inside(a.data() + 4, DType::f32, Extents{4, 4});
  EXPECT_NE(message_of([&] { gemm(context, matrix(a, 4, 4), matrix(b, 4, 4), inside); }), "");
}

TEST(GemmShapes, BatchSharesOperandsAndEqualsSingles) {
  Context context = Context::cpu();
  auto a = random_values(5 * 12, 1);
  auto b = random_values(20, 2);
  std::vector<float> c(5 * 15);
  std::vector<float> single(15);
  gemm(context, TensorRef(a.data(), DType::f32, Extents{5, 3, 4}), matrix(b, 4, 5),
       TensorRef(c.data(), DType::f32, Extents{5, 3, 5}));
  for (std::size_t i = 0; i < 5; ++i) {
    gemm(context, TensorRef(a.data() + i * 12, DType::f32, Extents{3, 4}), matrix(b, 4, 5),
         matrix(single, 3, 5));
    for (std::size_t j = 0; j < 15; ++j) EXPECT_NEAR(c[i * 15 + j], single[j], 1e-5) << i;
  }
}

}  // namespace
}  // namespace rung

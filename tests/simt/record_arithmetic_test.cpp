// SPDX-License-Identifier: Apache-2.0
// Arithmetic of all launched threads, from the machine code and the counted visits of its blocks.
#include <cmath>
#include <cstdlib>

#include "rung/simt/counted.hpp"
#include "tests/simt/record_fixture.hpp"

namespace rung {
namespace {

using simt::record::Arithmetic;
using Number = simt::counted<float>;

/// Launches a kernel and returns its counts; skips the test if the code cannot be disassembled.
template <class... Parameters, class... Arguments>
Kernel done_by(const LaunchShape& shape, void (*kernel)(Parameters...), Arguments&&... arguments) {
  const Report report = recorded_launch(shape, kernel, std::forward<Arguments>(arguments)...);
  expect_clean(report);
  return report.kernels.at(0);
}

#define SKIP_UNLESS_KNOWN(kernel) \
  if (!(kernel).arithmetic_known) GTEST_SKIP() << "objdump reads no code here"

TEST(RecordArithmetic, GuardedThreadsDoNothing) {
  Buffer<float> x(std::vector<float>(100, 1)), y(std::vector<float>(100, 2));
  const Kernel kernel = done_by(
      {.grid = 2, .block = 64},
      +[](float* out, const float* in, float a, int n) {
        const auto i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
        if (i < n) out[i] = a * in[i] + out[i];
      },
      y.data(), x.data(), 3.0f, 100);
  SKIP_UNLESS_KNOWN(kernel);
  EXPECT_EQ(kernel.arithmetic.multiplications, 100u);
  EXPECT_EQ(kernel.arithmetic.additions, 100u);
  EXPECT_EQ(kernel.arithmetic.operations(), 200u);
  EXPECT_EQ(kernel.arithmetic.f64, 0u);
  EXPECT_TRUE(kernel.arithmetic_exact);
  EXPECT_GT(kernel.arithmetic.integer, 0u);
}

TEST(RecordArithmetic, LoopsCountByTheirRounds) {
  // Thread t iterates t times: 31 * 32 / 2 divisions and as many additions.
  Buffer<float> x(std::vector<float>(32, 1));
  const Kernel kernel = done_by(
      {.grid = 1, .block = 32},
      +[](float* out) {
        const auto t = static_cast<int>(threadIdx.x);
        float sum = out[t];
        for (int i = 0; i < t; ++i) sum = 1.0f / (sum + 1.5f);
        out[t] = sum;
      },
      x.data());
  SKIP_UNLESS_KNOWN(kernel);
  EXPECT_EQ(kernel.arithmetic.divisions, 496u);
  EXPECT_EQ(kernel.arithmetic.additions, 496u);
  EXPECT_EQ(kernel.arithmetic.multiplications, 0u);
}

TEST(RecordArithmetic, DoublesAndFunctionsAreApart) {
  Buffer<double> x(std::vector<double>(64, 4));
  Buffer<float> y(std::vector<float>(64, 1));
  const Kernel kernel = done_by(
      {.grid = 2, .block = 32},
      +[](double* wide, float* narrow) {
        const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
        wide[i] = wide[i] * 3 - 1;
        narrow[i] = std::exp(narrow[i]) * std::fma(narrow[i], 2.5f, 1.0f);
      },
      x.data(), y.data());
  SKIP_UNLESS_KNOWN(kernel);
  EXPECT_EQ(kernel.arithmetic.f64, 2u * 64);
  EXPECT_EQ(kernel.arithmetic.functions, 64u);
  EXPECT_EQ(kernel.arithmetic.multiplications, 3u * 64) << "the multiply-add's is one of them";
  EXPECT_EQ(kernel.arithmetic.additions, 2u * 64);
}

TEST(RecordArithmetic, WithoutObjdumpNothingIsKnown) {
  const std::string path = std::getenv("PATH");
  Buffer<float> x(std::vector<float>(32, 1));
  ::setenv("PATH", "/nonexistent", 1);
  const Kernel kernel = done_by(
      {.grid = 1, .block = 32}, +[](float* out) { out[threadIdx.x] *= 3; }, x.data());
  ::setenv("PATH", path.c_str(), 1);
  EXPECT_FALSE(kernel.arithmetic_known);
  EXPECT_EQ(kernel.arithmetic.operations(), 0u);
  Report report;
  report.kernels = {kernel};
  EXPECT_NE(simt::record::to_json(report).find("\"operations\":null,"), std::string::npos);
}

template <class T>
struct Tiles {
  T a[32][32];
  T b[32][32];
};

template <class T>
__global__ void tiled_product(const T* a, const T* b, T* c, int m, int k, int n) {
  Tiles<T>& tiles = shared<Tiles<T>>();
  const int x = static_cast<int>(threadIdx.x), y = static_cast<int>(threadIdx.y);
  const int row = static_cast<int>(blockIdx.y) * 32 + y;
  const int column = static_cast<int>(blockIdx.x) * 32 + x;
  T sum = 0;
  for (int first = 0; first < k; first += 32) {
    tiles.a[y][x] = row < m && first + x < k ? a[row * k + first + x] : 0;
    tiles.b[y][x] = first + y < k && column < n ? b[(first + y) * n + column] : 0;
    __syncthreads();
    for (int i = 0; i < 32; ++i) sum += tiles.a[y][i] * tiles.b[i][x];
    __syncthreads();
  }
  if (row < m && column < n) c[row * n + column] = sum;
}

TEST(RecordArithmetic, TilesBeyondTheEdgesAreCountedAsCountedNumbersCountThem) {
  Buffer<float> a(std::vector<float>(100 * 141, 1)), b(std::vector<float>(141 * 92, 1)),
      c(100 * 92);
  const LaunchShape shape{.grid = {3, 4}, .block = {32, 32}, .shared_bytes = sizeof(Tiles<float>)};
  const Kernel kernel =
      done_by(shape, tiled_product<float>, a.data(), b.data(), c.data(), 100, 141, 92);
  (void)simt::take_operations();
  const auto numbers = [](Buffer<float>& of) { return reinterpret_cast<Number*>(of.data()); };
  (void)done_by(shape, tiled_product<Number>, numbers(a), numbers(b), numbers(c), 100, 141, 92);
  EXPECT_EQ(simt::take_operations().total(), 3932160u);
  SKIP_UNLESS_KNOWN(kernel);
  // 12 blocks of 1024 threads, 5 tiles of 32: 2 * 160 operations each.
  EXPECT_EQ(kernel.arithmetic.operations(), 3932160u);
  EXPECT_EQ(kernel.arithmetic.additions, kernel.arithmetic.multiplications);
  ASSERT_EQ(kernel.each.size(), 1u);
  EXPECT_EQ(kernel.each[0].arithmetic.operations(), 3932160u);
  std::uint64_t by_line = 0;
  for (const simt::record::Line& line : kernel.lines) by_line += line.arithmetic.operations();
  EXPECT_EQ(by_line, 3932160u);
}

}  // namespace
}  // namespace rung

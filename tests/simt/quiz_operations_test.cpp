// SPDX-License-Identifier: Apache-2.0
// Counts of arithmetic with published answers: kernels of course material with counted numbers.
#include "rung/device/collectives.hpp"
#include "rung/simt/counted.hpp"
#include "tests/simt/record_fixture.hpp"

namespace rung {
namespace {

using Number = simt::counted<float>;

/// Numbers have the memory layout of floats.
static_assert(sizeof(Number) == sizeof(float));
Number* numbers(Buffer<float>& buffer) { return reinterpret_cast<Number*>(buffer.data()); }

template <class... Parameters, class... Arguments>
simt::Operations operations_of(const LaunchShape& shape, void (*kernel)(Parameters...),
                               Arguments&&... arguments) {
  (void)simt::take_operations();
  expect_clean(recorded_launch(shape, kernel, std::forward<Arguments>(arguments)...));
  return simt::take_operations();
}

// --- matrix product: row 3 -----------------------------------------------------------------------

constexpr int tile = 32;

struct Tiles {
  Number a[tile][tile];
  Number b[tile][tile];
};

/// Computes in every thread, also beyond the edges of C, on zeros.
__global__ void tiled_product(const Number* a, const Number* b, Number* c, int m, int k, int n) {
  Tiles& tiles = shared<Tiles>();
  const int x = static_cast<int>(threadIdx.x), y = static_cast<int>(threadIdx.y);
  const int row = static_cast<int>(blockIdx.y) * tile + y;
  const int column = static_cast<int>(blockIdx.x) * tile + x;
  Number sum = 0;
  for (int first = 0; first < k; first += tile) {
    tiles.a[y][x] = row < m && first + x < k ? a[row * k + first + x] : 0;
    tiles.b[y][x] = first + y < k && column < n ? b[(first + y) * n + column] : 0;
    __syncthreads();
    for (int i = 0; i < tile; ++i) sum += tiles.a[y][i] * tiles.b[i][x];
    __syncthreads();
  }
  if (row < m && column < n) c[row * n + column] = sum;
}

/// Computes only the elements of C.
__global__ void naive_product(const Number* a, const Number* b, Number* c, int m, int k, int n) {
  const int row = static_cast<int>(blockIdx.y * blockDim.y + threadIdx.y);
  const int column = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (row >= m || column >= n) return;
  Number sum = 0;
  for (int i = 0; i < k; ++i) sum += a[row * k + i] * b[i * n + column];
  c[row * n + column] = sum;
}

TEST(Quiz, TilesBeyondTheEdgesCostAThirdOfTheOperations) {
  Buffer<float> a(std::vector<float>(100 * 141, 1)), b(std::vector<float>(141 * 92, 1)),
      c(100 * 92);
  const LaunchShape shape{.grid = {3, 4}, .block = {tile, tile}, .shared_bytes = sizeof(Tiles)};
  EXPECT_EQ(
      operations_of(shape, naive_product, numbers(a), numbers(b), numbers(c), 100, 141, 92).total(),
      2594400u);
  EXPECT_EQ(
      operations_of(shape, tiled_product, numbers(a), numbers(b), numbers(c), 100, 141, 92).total(),
      3932160u);
  EXPECT_EQ(c.values()[0], 141.0f);
  EXPECT_EQ(c.values()[100 * 92 - 1], 141.0f);
}

// --- scans and sums of one block: rows 15, 16 and 17 ---------------------------------------------

/// Reads from one buffer, writes to the other; thread i owns element i.
__global__ void kogge_stone(const Number* in, Number* out, int count) {
  Number* from = static_cast<Number*>(simt::shared_memory());
  Number* to = from + count;
  const int i = static_cast<int>(threadIdx.x);
  from[i] = in[i];
  for (int stride = 1; stride < count; stride *= 2) {
    __syncthreads();
    to[i] = i >= stride ? from[i] + from[i - stride] : from[i];
    Number* const last = from;
    from = to;
    to = last;
  }
  out[i] = from[i];
}

/// Processes two elements per thread: up the tree, then down between its nodes.
__global__ void brent_kung(const Number* in, Number* out, int count) {
  Number* x = static_cast<Number*>(simt::shared_memory());
  const int i = static_cast<int>(threadIdx.x);
  x[2 * i] = in[2 * i];
  x[2 * i + 1] = in[2 * i + 1];
  for (int stride = 1; stride < count; stride *= 2) {
    __syncthreads();
    const int at = (i + 1) * 2 * stride - 1;
    if (at < count) x[at] += x[at - stride];
  }
  for (int stride = count / 4; stride > 0; stride /= 2) {
    __syncthreads();
    const int at = (i + 1) * 2 * stride - 1;
    if (at + stride < count) x[at + stride] += x[at];
  }
  __syncthreads();
  out[2 * i] = x[2 * i];
  out[2 * i + 1] = x[2 * i + 1];
}

__global__ void tree_sum(const Number* in, Number* out, int count) {
  Number* x = static_cast<Number*>(simt::shared_memory());
  const int i = static_cast<int>(threadIdx.x);
  x[i] = in[i];
  for (int stride = count / 2; stride > 0; stride /= 2) {
    __syncthreads();
    if (i < stride) x[i] += x[i + stride];
  }
  if (i == 0) out[0] = x[0];
}

unsigned log2_of(int count) {
  return static_cast<unsigned>(__builtin_ctz(static_cast<unsigned>(count)));
}

TEST(Quiz, KoggeStoneAddsNLogNLessNMinus1Times) {
  for (const int count : {16, 128, 1024}) {
    const auto n = static_cast<unsigned>(count);
    Buffer<float> in(std::vector<float>(n, 1)), out(n);
    const LaunchShape shape{.grid = 1, .block = n, .shared_bytes = 2 * n * sizeof(float)};
    EXPECT_EQ(operations_of(shape, kogge_stone, numbers(in), numbers(out), count).additions,
              n * log2_of(count) - (n - 1));
    EXPECT_EQ(out.values()[n - 1], static_cast<float>(n));
  }
}

TEST(Quiz, BrentKungAdds26TimesFor16And4083TimesFor2048) {
  const auto additions = [](int count) {
    const auto n = static_cast<unsigned>(count);
    Buffer<float> in(std::vector<float>(n, 1)), out(n);
    const LaunchShape shape{.grid = 1, .block = n / 2, .shared_bytes = n * sizeof(float)};
    const auto done = operations_of(shape, brent_kung, numbers(in), numbers(out), count);
    for (unsigned i = 0; i < n; ++i) EXPECT_EQ(out.values()[i], static_cast<float>(i + 1));
    return done.additions;
  };
  EXPECT_EQ(additions(16), 26u);
  EXPECT_EQ(additions(2048), 4083u);
}

TEST(Quiz, ATreeAddsNMinus1Times) {
  for (const int count : {16, 1024}) {
    const auto n = static_cast<unsigned>(count);
    Buffer<float> in(std::vector<float>(n, 1)), out(1);
    const LaunchShape shape{.grid = 1, .block = n, .shared_bytes = n * sizeof(float)};
    EXPECT_EQ(operations_of(shape, tree_sum, numbers(in), numbers(out), count).additions, n - 1);
    EXPECT_EQ(out.values()[0], static_cast<float>(n));
  }
}

}  // namespace
}  // namespace rung

// SPDX-License-Identifier: Apache-2.0
// The kernels of examples/metal/ compiled as C++: they compile, and their results are right.
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "examples/metal/gemm_shared_tile.metal"
#include "examples/metal/vector_add.metal"
// Undefines keywords of Metal, which must not affect the headers below.
#undef constant
#undef device
#undef kernel
#undef threadgroup

namespace {

TEST(Metal, VectorAddAddsEveryElementAndNoMore) {
  const uint n = 300;
  std::vector<float> x(n), y(n), z(512, -1);
  for (uint i = 0; i < n; ++i) {
    x[i] = static_cast<float>(i);
    y[i] = static_cast<float>(3 * i);
  }
  for (uint i = 0; i < 512; ++i) vector_add(x.data(), y.data(), z.data(), n, i);
  for (uint i = 0; i < 512; ++i) EXPECT_EQ(z[i], i < n ? static_cast<float>(4 * i) : -1) << i;
}

/// Runs the threadgroups of a product in sequence, each with one host thread per thread.
void run_groups(const std::vector<float>& a, const std::vector<float>& b, std::vector<float>& c,
                const Sizes& size) {
  for (uint y = 0; y < (size.m + tile - 1) / tile; ++y) {
    for (uint x = 0; x < (size.n + tile - 1) / tile; ++x) {
      std::barrier<> group(tile * tile);
      metal::threads_of_group = &group;
      std::vector<std::thread> threads;
      for (uint i = 0; i < tile * tile; ++i) {
        threads.emplace_back([&, i] {
          gemm_shared_tile(a.data(), b.data(), c.data(), size, {i % tile, i / tile}, {x, y});
        });
      }
      for (std::thread& thread : threads) thread.join();
    }
  }
}

TEST(Metal, SharedTileMultipliesMatricesThatTilesDoNotDivide) {
  for (const Sizes size : {Sizes{17, 18, 19}, Sizes{1, 5, 33}, Sizes{16, 16, 16}, Sizes{3, 2, 0}}) {
    std::vector<float> a(size.m * size.k), b(size.k * size.n);
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i % 7);
    for (std::size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>(i % 5);
    std::vector<float> c(size.m * size.n, -1);
    run_groups(a, b, c, size);
    for (uint row = 0; row < size.m; ++row) {
      for (uint column = 0; column < size.n; ++column) {
        float sum = 0;
        for (uint i = 0; i < size.k; ++i) sum += a[row * size.k + i] * b[i * size.n + column];
        EXPECT_EQ(c[row * size.n + column], sum) << row << ", " << column;
      }
    }
  }
}

}  // namespace

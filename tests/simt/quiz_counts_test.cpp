// SPDX-License-Identifier: Apache-2.0
// Counts with published answers: kernels of course material, simulated and counted.
#include "rung/device/collectives.hpp"
#include "tests/simt/record_fixture.hpp"

namespace rung {
namespace {

using simt::record::Counters;

Counters totals(const Report& report) { return report.kernels.at(0).totals; }

// --- matrix products: rows 2 and 4 ---------------------------------------------------------------

__global__ void naive_product(const float* a, const float* b, float* c, int m, int k, int n) {
  const int row = static_cast<int>(blockIdx.y * blockDim.y + threadIdx.y);
  const int column = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (row >= m || column >= n) return;
  float sum = 0;
  for (int i = 0; i < k; ++i) sum += a[row * k + i] * b[i * n + column];
  c[row * n + column] = sum;
}

TEST(Quiz, NaiveProductReads327360Bytes) {
  Buffer<float> a(std::vector<float>(40 * 31, 1)), b(std::vector<float>(31 * 33, 1)), c(40 * 33);
  const Report report = recorded_launch({.grid = {3, 3}, .block = {16, 16}}, naive_product,
                                        a.data(), b.data(), c.data(), 40, 31, 33);
  EXPECT_EQ(totals(report).global_load_bytes, 327360u);
  expect_clean(report);
}

struct Tile16 {
  float a[16][16];
  float b[16][16];
};

__global__ void tiled_product(const float* a, const float* b, float* c, int m, int k, int n) {
  Tile16& tile = shared<Tile16>();
  const int x = static_cast<int>(threadIdx.x), y = static_cast<int>(threadIdx.y);
  const int row = static_cast<int>(blockIdx.y) * 16 + y;
  const int column = static_cast<int>(blockIdx.x) * 16 + x;
  float sum = 0;
  for (int first = 0; first < k; first += 16) {
    tile.a[y][x] = row < m && first + x < k ? a[row * k + first + x] : 0;
    tile.b[y][x] = first + y < k && column < n ? b[(first + y) * n + column] : 0;
    __syncthreads();
    for (int i = 0; i < 16; ++i) sum += tile.a[y][i] * tile.b[i][x];
    __syncthreads();
  }
  if (row < m && column < n) c[row * n + column] = sum;
}

TEST(Quiz, TiledProductReads122180Bytes) {
  Buffer<float> a(std::vector<float>(80 * 41, 1)), b(std::vector<float>(41 * 69, 1)), c(80 * 69);
  const Report report =
      recorded_launch({.grid = {5, 5}, .block = {16, 16}, .shared_bytes = sizeof(Tile16)},
                      tiled_product, a.data(), b.data(), c.data(), 80, 41, 69);
  EXPECT_EQ(totals(report).global_load_bytes, 122180u);
  expect_clean(report);
}

// --- divergence: rows 5, 6 and 7 -----------------------------------------------------------------

__global__ void below_diagonal(const int* image, int* copy, int* below, int rows, int columns) {
  const int row = static_cast<int>(blockIdx.y * blockDim.y + threadIdx.y);
  const int column = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (row >= rows || column >= columns) return;
  const int at = row * columns + column;
  copy[at] = image[at];
  if (row > column) below[at] = 1;
}

TEST(Quiz, AnImageHas968WarpsOfWhich168Diverge) {
  Buffer<int> image(std::vector<int>(176 * 174, 0)), copy(176 * 174), below(176 * 174);
  const Report report = recorded_launch({.grid = {11, 11}, .block = {16, 16}}, below_diagonal,
                                        image.data(), copy.data(), below.data(), 176, 174);
  EXPECT_EQ(report.kernels.at(0).warps, 968u);
  EXPECT_EQ(report.kernels.at(0).divergent_warps, 168u);
  expect_clean(report);
}

/// Nests two conditions: the inner one is a separate branch, even in edge warps where it has no
/// lane.
__global__ void below_diagonal_inside(int* below, int rows, int columns) {
  const int row = static_cast<int>(blockIdx.y * blockDim.y + threadIdx.y);
  const int column = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (row < rows && column < columns) {
    if (row > column) below[row * columns + column] += 1;
  }
}

/// Accesses memory in all lanes.
__global__ void scale_below_diagonal(int* image, int rows, int columns) {
  const int row = static_cast<int>(blockIdx.y * blockDim.y + threadIdx.y);
  const int column = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (row >= rows || column >= columns) return;
  int value = image[row * columns + column];
  if (row > column) value = value * value + 7;
  image[row * columns + column] = value;
}

TEST(Quiz, BranchesAreSeenWhateverIsAccessedBehindThem) {
  Buffer<int> image(std::vector<int>(176 * 174, 0));
  for (const auto kernel : {below_diagonal_inside, scale_below_diagonal}) {
    const Report report =
        recorded_launch({.grid = {11, 11}, .block = {16, 16}}, kernel, image.data(), 176, 174);
    EXPECT_EQ(report.kernels.at(0).divergent_warps, 168u);
    expect_clean(report);
  }
}

TEST(Quiz, StencilGuardDivergesInWarps1To30) {
  Buffer<int> image(32 * 32);
  static constexpr auto kernel = [](int* out, int warp) {
    const int x = static_cast<int>(threadIdx.x), y = static_cast<int>(threadIdx.y);
    if (y == warp && x >= 1 && x <= 30 && y >= 1 && y <= 30) out[y * 32 + x] = 1;
  };
  const Report report = recorded_launch(
      {.grid = 1, .block = {32, 32}},
      +[](int* out) {
        const int x = static_cast<int>(threadIdx.x), y = static_cast<int>(threadIdx.y);
        if (x >= 1 && x <= 30 && y >= 1 && y <= 30) out[y * 32 + x] = 1;
      },
      image.data());
  EXPECT_EQ(report.kernels.at(0).divergent_warps, 30u);
  for (const int warp : {0, 31, 1, 30}) {
    const Report one = recorded_launch({.grid = 1, .block = {32, 32}}, +kernel, image.data(), warp);
    EXPECT_EQ(one.kernels.at(0).divergent_warps, warp == 0 || warp == 31 ? 0u : 1u) << warp;
  }
}

TEST(Quiz, AGuardThatNobodyPassesDivergesNowhere) {
  Buffer<int> out(64);
  const Report report = recorded_launch(
      {.grid = 1, .block = 64},
      +[](int* to, int control) {
        const int x = static_cast<int>(threadIdx.x);
        if (control * x < 0) to[x] = 0;
        to[x] = 1;
      },
      out.data(), 3);
  EXPECT_EQ(report.kernels.at(0).divergent_warps, 0u);
}

// --- reuse in tiles: row 13 ----------------------------------------------------------------------

__global__ void convolution_1d(const float* in, float* out) {
  float* tile = static_cast<float*>(simt::shared_memory());
  const int i = static_cast<int>(threadIdx.x);
  tile[i] = in[i];
  __syncthreads();
  if (i >= 8) return;
  float sum = 0;
  for (int j = 0; j < 5; ++j) sum += tile[i + j];
  out[i] = sum;
}

TEST(Quiz, OneDimensionalTileLoads12InsteadOf40) {
  Buffer<float> in(std::vector<float>(12, 1)), out(8);
  const Report report = recorded_launch({.grid = 1, .block = 12, .shared_bytes = 48},
                                        convolution_1d, in.data(), out.data());
  EXPECT_EQ(totals(report).global_load_bytes, 12u * 4);
  EXPECT_EQ(totals(report).shared_load_bytes, 40u * 4);
  expect_clean(report);
}

// --- convolution tiles: rows 10, 11 and 12 ------------------------------------------------------

constexpr int mask_radius = 4;  // 9x9

/// Loads the block's input tile, `Loads` x `Loads` elements per thread, and computes the inner
/// part.
template <int Threads, int Loads>
__global__ void convolution_2d(const float* in, float* out) {
  constexpr int width = Threads * Loads;
  constexpr int inner = width - 2 * mask_radius;
  float* tile = static_cast<float*>(simt::shared_memory());
  const int x = static_cast<int>(threadIdx.x), y = static_cast<int>(threadIdx.y);
  for (int j = 0; j < Loads; ++j) {
    for (int i = 0; i < Loads; ++i) {
      const int at = (y + j * Threads) * width + x + i * Threads;
      tile[at] = in[at];
    }
  }
  __syncthreads();
  for (int row = y; row < inner; row += Threads) {
    for (int column = x; column < inner; column += Threads) {
      float sum = 0;
      for (int j = 0; j <= 2 * mask_radius; ++j) {
        for (int i = 0; i <= 2 * mask_radius; ++i) sum += tile[(row + j) * width + column + i];
      }
      out[row * inner + column] = sum;
    }
  }
}

TEST(Quiz, TilesOfA9x9MaskAreReused36And56Times) {
  Buffer<float> in(std::vector<float>(48 * 48, 1)), out(40 * 40);
  const auto reuse = [](const Report& report) {
    expect_clean(report);
    return static_cast<double>(totals(report).shared_load_bytes) /
           static_cast<double>(totals(report).global_load_bytes);
  };
  EXPECT_EQ(reuse(recorded_launch({.grid = 1, .block = {24, 24}, .shared_bytes = 24 * 24 * 4},
                                  convolution_2d<24, 1>, in.data(), out.data())),
            36.0);
  EXPECT_EQ(reuse(recorded_launch({.grid = 1, .block = {24, 24}, .shared_bytes = 48 * 48 * 4},
                                  convolution_2d<24, 2>, in.data(), out.data())),
            56.25);
}

/// Applies a 9x5 mask to a 16x16 tile without halo: elements outside are read from global memory.
__global__ void convolution_without_halo(const float* in, float* out) {
  constexpr int pitch = 16 + 8;  // of the input, which has a margin of 4 columns and 2 rows
  float* tile = static_cast<float*>(simt::shared_memory());
  const int x = static_cast<int>(threadIdx.x), y = static_cast<int>(threadIdx.y);
  tile[y * 16 + x] = in[(y + 2) * pitch + x + 4];
  __syncthreads();
  float sum = 0;
  for (int j = -2; j <= 2; ++j) {
    for (int i = -4; i <= 4; ++i) {
      const int row = y + j, column = x + i;
      const bool inside = row >= 0 && row < 16 && column >= 0 && column < 16;
      sum += inside ? tile[row * 16 + column] : in[(row + 2) * pitch + column + 4];
    }
  }
  out[y * 16 + x] = sum;
}

TEST(Quiz, HaloReadsGoToGlobalMemory) {
  Buffer<float> in(std::vector<float>(24 * 20, 1)), out(256);
  const Report report = recorded_launch({.grid = 1, .block = {16, 16}, .shared_bytes = 1024},
                                        convolution_without_halo, in.data(), out.data());
  EXPECT_EQ(totals(report).shared_load_bytes, 9176u * 4);
  EXPECT_EQ(totals(report).global_load_bytes, (2344u + 256) * 4);  // the tile itself too
  expect_clean(report);
}

TEST(Quiz, EveryOtherDoubleIsHalfOfABurst) {  // row 14
  Buffer<double> in(std::vector<double>(64, 1)), out(32);
  const Report report = recorded_launch(
      {.grid = 1, .block = 32},
      +[](const double* from, double* to) { to[threadIdx.x] = from[2 * threadIdx.x]; }, in.data(),
      out.data());
  EXPECT_EQ(totals(report).global_load_sectors * 32, 512u);
  EXPECT_EQ(totals(report).global_load_bytes, 256u);
}

// --- privatized histogram: row 18 ----------------------------------------------------------------

__global__ void histogram(const unsigned char* in, unsigned* bins, int count) {
  auto* mine = static_cast<unsigned*>(simt::shared_memory());
  mine[threadIdx.x] = 0;
  __syncthreads();
  const unsigned step = gridDim.x * blockDim.x;
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < static_cast<unsigned>(count);
       i += step) {
    atomicAdd(&mine[in[i]], 1u);
  }
  __syncthreads();
  atomicAdd(&bins[threadIdx.x], mine[threadIdx.x]);
}

TEST(Quiz, PrivatizedHistogramHasOneGlobalAtomicABinABlock) {
  Buffer<unsigned char> in(std::vector<unsigned char>(4096, 7));
  Buffer<unsigned> bins(std::vector<unsigned>(256, 0));
  const Report report = recorded_launch({.grid = 4, .block = 256, .shared_bytes = 1024}, histogram,
                                        in.data(), bins.data(), 4096);
  EXPECT_EQ(totals(report).atomic_requests * 32, 4u * 256);
  EXPECT_EQ(bins.values()[7], 4096u);
  // All values in one bin: 32 rounds per request.
  EXPECT_EQ(totals(report).shared_atomic_wavefronts, 32 * totals(report).shared_atomic_requests);
  expect_clean(report);
}

// --- transpose: row 22 ---------------------------------------------------------------------------

template <int Pitch, bool Swizzle>
__global__ void transpose(const float* in, float* out) {
  float* tile = static_cast<float*>(simt::shared_memory());
  const unsigned x = threadIdx.x, y = threadIdx.y;
  tile[y * Pitch + (Swizzle ? x ^ y : x)] = in[y * 32 + x];
  __syncthreads();
  out[y * 32 + x] = tile[x * Pitch + (Swizzle ? y ^ x : y)];
}

TEST(Quiz, TransposeConflictsWithoutPadding) {
  Buffer<float> in(std::vector<float>(1024, 1)), out(1024);
  const LaunchShape shape{.grid = 1, .block = {32, 32}, .shared_bytes = 32 * 33 * 4};
  const Counters plain =
      totals(recorded_launch(shape, transpose<32, false>, in.data(), out.data()));
  EXPECT_EQ(plain.shared_load_wavefronts, 32 * plain.shared_load_requests);
  EXPECT_EQ(plain.shared_load_conflicts, 31 * plain.shared_load_requests);
  EXPECT_EQ(plain.shared_store_wavefronts, plain.shared_store_requests);
  for (const auto kernel : {transpose<33, false>, transpose<32, true>}) {
    const Counters c = totals(recorded_launch(shape, kernel, in.data(), out.data()));
    EXPECT_EQ(c.shared_load_wavefronts, c.shared_load_requests);
    EXPECT_EQ(c.shared_load_conflicts, 0u);
    EXPECT_EQ(c.shared_load_requests, 32u);
  }
}

}  // namespace
}  // namespace rung

// SPDX-License-Identifier: Apache-2.0
// Tiles of matrix operands: the copy engine writes elements where SwizzledTile expects them, as a
// whole or in parts, and wgmma multiplies the tile; a ring of stages passes tiles from one thread
// to a warpgroup.
#include "rung/device/wgmma_tile.hpp"

#include <vector>

#include "rung/device/stage_ring.hpp"
#include "tests/simt/hopper_fixture.hpp"

namespace rung::wgmma_tile_test {
namespace {

class WgmmaTileTest : public HopperTest {};

constexpr int rows = 128;
constexpr int ring_stages = 2;

struct Layout {
  struct alignas(1024) Stage {
    unsigned char a[rows * 128];
    unsigned char b[rows * 128];
  };
  Stage stages[ring_stages];
  StageRing<ring_stages> ring;
};

/// Copies a tile out element by element, by SwizzledTile's addresses.
template <class T, bool KMajor>
__global__ void __launch_bounds__(128)
    read_tile(const __grid_constant__ TensorMap map, int first_row, int first_k, T* out) {
  using Tile = WgmmaTile<T, rows, KMajor>;
  Layout& layout = shared<Layout>();
  if (threadIdx.x == 0) layout.ring.init(4);
  __syncthreads();
  RingPlace<ring_stages> at;
  auto& tile = layout.stages[0].a;
  if (threadIdx.x == 0) {
    layout.ring.await_empty(at);
    layout.ring.expect(at, Tile::bytes);
    Tile::load(tile, map, 0, first_row, first_k, layout.ring.full[0]);
  }
  layout.ring.await_full(at);
  const int row = static_cast<int>(threadIdx.x);
  for (int k = 0; k < Tile::depth; ++k) {
    out[row * Tile::depth + k] = *reinterpret_cast<const T*>(tile + Tile::place(row, k));
  }
}

template <class T>
View<const T, 3> matrix_view(const T* data, std::int64_t lines, std::int64_t length) {
  View<const T, 3> view;
  view.data = data;
  view.shape[0] = 1;
  view.shape[1] = lines;
  view.shape[2] = length;
  view.strides[0] = lines * length;
  view.strides[1] = length;
  view.strides[2] = 1;
  return view;
}

/// Loads 200 rows by 96 of k; the tile exceeds both ends.
template <class T, bool KMajor>
void expect_places(Context& c) {
  constexpr int all_rows = 200, all_k = 96, first_row = 96, first_k = 64;
  constexpr int depth = WgmmaTile<T, rows, KMajor>::depth;
  std::vector<T> values;
  for (int i = 0; i < all_rows * all_k; ++i) {
    const int row = KMajor ? i / all_k : i % all_rows;
    const int k = KMajor ? i % all_k : i / all_rows;
    values.push_back(T(static_cast<float>(row + (k % 8) * 0.125f)));
  }
  Buffer<T> in(values), out(static_cast<std::size_t>(rows * depth));
  const auto view = KMajor ? matrix_view<T>(in.data(), all_rows, all_k)
                           : matrix_view<T>(in.data(), all_k, all_rows);
  launch(c, {.block = 128, .shared_bytes = sizeof(Layout)}, read_tile<T, KMajor>,
         WgmmaTile<T, rows, KMajor>::map(view), first_row, first_k, out.data());
  const std::vector<T> got = out.values();
  int wrong = 0;
  for (int row = 0; row < rows; ++row) {
    for (int k = 0; k < depth; ++k) {
      const bool exists = first_row + row < all_rows && first_k + k < all_k;
      const T want =
          exists ? T(static_cast<float>(first_row + row + ((first_k + k) % 8) * 0.125f)) : T(0.0f);
      if (static_cast<float>(got[static_cast<std::size_t>(row * depth + k)]) !=
          static_cast<float>(want)) {
        ++wrong;
      }
    }
  }
  EXPECT_EQ(wrong, 0) << "k contiguous: " << KMajor;
}

TEST_P(WgmmaTileTest, ElementsLieWhereSwizzledTileSays) {
  Context c = context();
  expect_places<f16, true>(c);
  expect_places<f16, false>(c);
  expect_places<float, true>(c);
}

/// Computes 64 x 128 sums over several tiles of k: one warp fetches, a warpgroup multiplies.
template <bool KMajorA, bool KMajorB>
__global__ void __launch_bounds__(256)
    multiply(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b, int tiles,
             float* out) {
  using TileA = WgmmaTile<bf16, rows, KMajorA>;
  using TileB = WgmmaTile<bf16, rows, KMajorB>;
  Layout& layout = shared<Layout>();
  if (threadIdx.x == 0) layout.ring.init(4);
  __syncthreads();
  RingPlace<ring_stages> at;
  if (threadIdx.x >= 128) {
    if (threadIdx.x != 128) return;
    for (int tile = 0; tile < tiles; ++tile, at.advance()) {
      auto& stage = layout.stages[at.stage];
      layout.ring.await_empty(at);
      layout.ring.expect(at, TileA::bytes + TileB::bytes);
      TileA::load(stage.a, a, 0, 0, tile * TileA::depth, layout.ring.full[at.stage]);
      TileB::load(stage.b, b, 0, 0, tile * TileB::depth, layout.ring.full[at.stage]);
    }
    return;
  }
  float sums[rows / 2];
  for (int tile = 0; tile < tiles; ++tile, at.advance()) {
    layout.ring.await_full(at);
    ptx::wgmma_fence(sums);
    wgmma_tile<TileA, TileB>(sums, layout.stages[at.stage].a, 64, layout.stages[at.stage].b,
                             tile > 0);
    ptx::wgmma_commit();
    ptx::wgmma_wait<0>(sums);
    if (threadIdx.x % 32 == 0) layout.ring.release(at.stage);
  }
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  for (int i = 0; i < rows / 2; ++i) {
    const int row = 16 * warp + lane / 4 + 8 * (i / 2 % 2);
    out[row * rows + 8 * (i / 4) + 2 * (lane % 4) + i % 2] = sums[i];
  }
}

constexpr int product_k = 5 * 64 + 8;

float element(int row, int step, int seed) {
  return static_cast<float>((row * 7 + step * 5 + seed) % 9 - 4);
}
std::vector<bf16> stored(bool k_major, int seed) {
  constexpr int k = product_k;
  std::vector<bf16> values;
  for (int i = 0; i < rows * k; ++i) {
    values.push_back(
        bf16(k_major ? element(i / k, i % k, seed) : element(i % rows, i / rows, seed)));
  }
  return values;
}

template <bool KMajorA, bool KMajorB>
void expect_products(Context& c) {
  constexpr int k = product_k;
  Buffer<bf16> a(stored(KMajorA, 1)), b(stored(KMajorB, 2));
  Buffer<float> out(64 * rows);
  const auto view = [&](const bf16* data, bool k_major) {
    return k_major ? matrix_view(data, rows, k) : matrix_view(data, k, rows);
  };
  launch(c, {.block = 256, .shared_bytes = sizeof(Layout)}, multiply<KMajorA, KMajorB>,
         WgmmaTile<bf16, rows, KMajorA>::map(view(a.data(), KMajorA)),
         WgmmaTile<bf16, rows, KMajorB>::map(view(b.data(), KMajorB)), (k + 63) / 64, out.data());
  const std::vector<float> got = out.values();
  int wrong = 0;
  for (int row = 0; row < 64; ++row) {
    for (int column = 0; column < rows; ++column) {
      float want = 0;
      for (int i = 0; i < k; ++i) want += element(64 + row, i, 1) * element(column, i, 2);
      if (got[static_cast<std::size_t>(row * rows + column)] != want) ++wrong;
    }
  }
  EXPECT_EQ(wrong, 0) << "k contiguous in A " << KMajorA << ", in B " << KMajorB;
}

TEST_P(WgmmaTileTest, ProductsOfEveryMajorThroughARing) {
  Context c = context();
  expect_products<true, true>(c);
  expect_products<true, false>(c);
  expect_products<false, true>(c);
  expect_products<false, false>(c);
}

INSTANTIATE_TEST_SUITE_P(Orders, WgmmaTileTest, testing::ValuesIn(thread_orders()), order_name);

}  // namespace
}  // namespace rung::wgmma_tile_test

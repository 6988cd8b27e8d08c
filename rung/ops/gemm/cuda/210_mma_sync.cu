// SPDX-License-Identifier: Apache-2.0
// gemm / mma sync
//
// Idea     tensor cores through mma.sync: a warp multiplies 16 x 16 by 16 x 8 elements at
//          documented positions in its lanes' registers. A lane loads its part of A and B from
//          shared memory, two 16-bit neighbors along k (or one f32) per register.
// Changes  against wmma_tf32: plain 4-byte loads read the fragments, from rows of 80 bytes that put
//          all lanes in different banks; B is stored transposed, so that its elements are adjacent
//          along k too. Sums stay in registers until the end, at known positions.
// Cost     the traffic of 128 x 128 tiles. Per 16 steps of k, a warp's 64 x 32 tile takes 24 loads
//          and 16 mma instructions.
// Limits   copies: the tensor cores wait while the next tile is fetched element by element. There
//          are 1.5 times as many load instructions as mma instructions.
// Source   PTX ISA, "Matrix fragments for mma.m16n8k16".
#include <type_traits>

#include "rung/device/ptx/matrix.hpp"
#include "rung/device/tile/strip.hpp"
#include "rung/ops/gemm/cuda/detail/rung.hpp"
#include "rung/ops/gemm/cuda/detail/tile.hpp"

namespace rung {
namespace {

using namespace gemm_cuda;

struct Tuning {
  int rows, columns;
  int warp_rows, warp_columns;
  int step_bytes;  // steps of k per tile: 32 elements of 16 bits, 16 of 32
  int pitch_bytes;
  [[nodiscard]] constexpr int warps_along() const { return columns / warp_columns; }
  [[nodiscard]] constexpr int warps() const { return rows / warp_rows * warps_along(); }
  [[nodiscard]] constexpr int threads() const { return 32 * warps(); }
};
// Pitch of 20 words: rows 0 to 7 begin in banks 0, 20, 8, 28, 16, 4, 24 and 12, and the four lanes
// of a row read four consecutive banks.
constexpr Tuning tuning{.rows = 128,
                        .columns = 128,
                        .warp_rows = 64,
                        .warp_columns = 32,
                        .step_bytes = 64,
                        .pitch_bytes = 80};

/// Tiles of both operands with k along the rows.
template <class T>
struct MmaTiles {
  static constexpr int steps = tuning.step_bytes / static_cast<int>(sizeof(T));
  static constexpr int pitch = tuning.pitch_bytes / static_cast<int>(sizeof(T));
  alignas(16) T a[tuning.rows][pitch];
  alignas(16) T b[tuning.columns][pitch];
};
template <class T>
union MmaLayout {
  MmaTiles<T> tiles;
  StripStage stages[tuning.warps()];
};

/// Converts an element for shared memory; rounds an f32 to tf32, which the tensor core would
/// truncate.
template <class T>
__device__ T rounded_element(float value) {
  if constexpr (std::is_same_v<T, float>) {
    return __uint_as_float(ptx::to_tf32(value));
  } else {
    return convert<T>(value);
  }
}

template <class P>
__global__ void __launch_bounds__(tuning.threads()) gemm_mma_sync(P p) {
  using T = typename P::In;
  using Tiles = MmaTiles<T>;
  auto& layout = shared<MmaLayout<T>>();
  Tiles& tiles = layout.tiles;
  const int batch = static_cast<int>(blockIdx.z);
  const std::int64_t first_row = std::int64_t{blockIdx.y} * tuning.rows;
  const std::int64_t first_column = std::int64_t{blockIdx.x} * tuning.columns;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int warp_row = warp / tuning.warps_along() * tuning.warp_rows;
  const int warp_column = warp % tuning.warps_along() * tuning.warp_columns;
  const auto a = p.a.at(batch);
  const auto b = p.b.at(batch);

  constexpr int down = tuning.warp_rows / 16;
  constexpr int along = tuning.warp_columns / 8;
  constexpr int words = 8;  // of k per instruction: 16 halves or 8 floats
  float sums[down][along][4] = {};
  for (std::int64_t k = 0; k < p.k(); k += Tiles::steps) {
    load_tile<tuning.rows, Tiles::steps, tuning.threads()>(
        a, first_row, k,
        [&](int row, int step, float v) { tiles.a[row][step] = rounded_element<T>(v); });
    load_tile<Tiles::steps, tuning.columns, tuning.threads()>(
        b, k, first_column,
        [&](int step, int column, float v) { tiles.b[column][step] = rounded_element<T>(v); });
    __syncthreads();
    const int row = warp_row + lane / 4;
    const int column = warp_column + lane / 4;
#pragma unroll
    for (int first = 0; first < tuning.step_bytes / 4; first += words) {
      const int at = first + lane % 4;
      std::uint32_t b_words[along][2];
#pragma unroll
      for (int j = 0; j < along; ++j) {
        b_words[j][0] = word(tiles.b[column + 8 * j], at);
        b_words[j][1] = word(tiles.b[column + 8 * j], at + 4);
      }
#pragma unroll
      for (int i = 0; i < down; ++i) {
        const std::uint32_t a_words[4] = {
            word(tiles.a[row + 16 * i], at), word(tiles.a[row + 16 * i + 8], at),
            word(tiles.a[row + 16 * i], at + 4), word(tiles.a[row + 16 * i + 8], at + 4)};
#pragma unroll
        for (int j = 0; j < along; ++j) ptx::mma<T>(sums[i][j], a_words, b_words[j]);
      }
    }
    __syncthreads();
  }

#pragma unroll
  for (int i = 0; i < down; ++i) {
    finish_strip<tuning.warp_columns>(p, layout.stages[warp], batch, first_row + warp_row + 16 * i,
                                      first_column + warp_column,
                                      [&](int at) { return sums[i][at / 4][at % 4]; });
  }
}

Support supports(const Gemm::Args& args, const Context&) { return require_tensor_cores(args); }

template <class T, class Out>
void launch_mma(const Gemm::Args& args, Context& context) {
  launch_tiles(context,
               {.rows = tuning.rows,
                .columns = tuning.columns,
                .block = tuning.threads(),
                .shared_bytes = sizeof(MmaLayout<T>)},
               gemm_mma_sync<Product<T, Out>>, product<T, Out>(args));
}

void run(const Gemm::Args& args, Context& context) {
  visit<float, f16, bf16>(args.a.dtype, [&]<class T>() {
    args.c.dtype == DType::f32 ? launch_mma<T, float>(args, context)
                               : launch_mma<T, T>(args, context);
  });
}

Work work(const Gemm::Args& args, const Context& context) {
  const auto size = static_cast<std::int64_t>(size_of(args.a.dtype));
  return tile_work(
      args, context,
      {.rows = tuning.rows, .columns = tuning.columns, .depth = tuning.step_bytes / size}, true);
}

const Rung<Gemm> self{{.name = "mma_sync",
                       .step = 210,
                       .after = "wmma_tf32",
                       .backend = device_backend,
                       .supports = supports,
                       .tile = {.rows = tuning.rows, .columns = tuning.columns},
                       .work = work,
                       .run = run}};

}  // namespace
}  // namespace rung

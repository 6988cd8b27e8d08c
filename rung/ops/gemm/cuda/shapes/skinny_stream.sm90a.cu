// SPDX-License-Identifier: Apache-2.0
// gemm / skinny stream
//
// Idea     a product with at most 64 rows or columns, as in decoding, takes the time to read the
//          long operand W once. W's rows are divided evenly among all SMs: a block streams its
//          share, over the whole of k, through a deep ring of TMA loads. wgmma uses W as its rows
//          and the short operand X as its columns, so 64 columns cost hardly more than one.
// Changes  against few_rows: tensor cores compute the sums; k is not split, so no partial sums are
//          exchanged. Tiles have as many rows as equal shares need, since TMA supports any number
//          up to 128.
// Cost     W once; X once per tile, from L2.
// Limits   memory bandwidth; with 32 columns or more, L2. f16 and bf16 in a layout that TMA
//          supports. W needs about 32 rows per SM; if contiguous along its rows, it is split into
//          tiles of 64.
// Source   PTX ISA, "wgmma.mma_async" and "Tensor-map".
#include "rung/device/collectives.hpp"
#include "rung/device/ptx/bulk_copy.hpp"
#include "rung/device/tile/roles.hpp"
#include "rung/ops/gemm/cuda/detail/tensor_job.hpp"

namespace rung {
namespace {

using namespace gemm_cuda;

constexpr int chunk_depth = 64;      // steps of k: lines of 128 bytes
constexpr int chunks_per_stage = 2;  // a stage is loaded, waited for and released as a whole
constexpr int multipliers = 256;     // threads of two warpgroups, 64 rows each
constexpr int block_threads = multipliers + warp_size;  // plus the producer warp
constexpr std::int64_t most_columns = 64;

/// Returns the number of columns to which a product is padded.
constexpr int padded_columns(std::int64_t columns) {
  return columns <= 16 ? 16 : columns <= 32 ? 32 : 64;
}

/// Kernel arguments of C = W X; C has few columns.
template <class T>
struct SkinnyCall {
  TensorMap w, x;
  int w_moves, x_moves;  // 1: a matrix per batch index; 0: one for all
  Finish<T> finish;
  int rows;            // rows of W per tile
  std::int64_t tiles;  // per matrix
  int chunks;          // chunks of k
};

/// Shared memory of a block. Rows: capacity of a stage in rows of W.
template <int Rows, int Columns>
struct SkinnyLayout {
  struct alignas(1024) Stage {
    unsigned char w[chunks_per_stage][Rows * 128];
    unsigned char x[chunks_per_stage][Columns * 128];
  };
  static constexpr int stages = 192 * 1024 / static_cast<int>(sizeof(Stage));
  Stage stage[stages];
  StageRing<stages> ring;
};

/// Computes C = W X. KMajor: W is contiguous along k; else along its rows, and a tile has Rows of
/// them.
template <class T, int Rows, int Columns, bool KMajor>
__global__ void __launch_bounds__(block_threads, 1)
    gemm_skinny_stream(const __grid_constant__ SkinnyCall<T> call) {
  using TileW = WgmmaTile<T, Rows, KMajor>;
  using TileX = WgmmaTile<T, Columns, true>;
  using Layout = SkinnyLayout<Rows, Columns>;
  constexpr int line = 128;  // bytes
  constexpr int sum_count = Columns / 2;
  auto& layout = shared<Layout>();
  auto& ring = layout.ring;
  const auto& p = call.finish.p;
  const std::int64_t end = call.tiles * p.c.shape[0];
  const int thread = static_cast<int>(threadIdx.x);
  if (thread == 0) ring.init(multipliers / warp_size);
  // Rows that no copy fills are multiplied too: they are cleared, so that they hold no NaN.
  const int empty = (Rows - call.rows) * line;
  for (int i = 0; i < Layout::stages * chunks_per_stage; ++i) {
    auto& chunk = layout.stage[i / chunks_per_stage].w[i % chunks_per_stage];
    for (int at = thread * 16; at < empty; at += block_threads * 16) {
      store_wide(reinterpret_cast<float*>(chunk + call.rows * line + at), Pack<float, 4>{});
    }
  }
  ptx::fence_async_proxy();
  __syncthreads();

  RingPlace<Layout::stages> at;
  if (thread >= multipliers) {
    if (thread != multipliers) return;
    for (std::int64_t tile = blockIdx.x; tile < end; tile += gridDim.x) {
      const auto matrix = static_cast<int>(tile / call.tiles);
      const int row = static_cast<int>(tile % call.tiles) * call.rows;
      for (int chunk = 0; chunk < call.chunks; chunk += chunks_per_stage, at.advance()) {
        auto& stage = layout.stage[at.stage];
        auto& full = ring.full[at.stage];
        ring.await_empty(at);
        ring.expect(at, chunks_per_stage * (call.rows * line + TileX::bytes));
#pragma unroll
        for (int i = 0; i < chunks_per_stage; ++i) {  // TMA fills zeros beyond k
          const int k = (chunk + i) * chunk_depth;
          TileW::load(stage.w[i], call.w, matrix * call.w_moves, row, k, full);
          TileX::load(stage.x[i], call.x, matrix * call.x_moves, 0, k, full);
        }
      }
    }
    return;
  }

  const int lane = lane_of_thread();
  const int warp = thread / warp_size;
  const int first_row = warp / 4 * 64;  // of this warpgroup, within the tile
  const bool multiplies = first_row < call.rows;
  float sums[sum_count];
  for (std::int64_t tile = blockIdx.x; tile < end; tile += gridDim.x) {
    for (int chunk = 0; chunk < call.chunks; chunk += chunks_per_stage, at.advance()) {
      ring.await_full(at);
      if (multiplies) {
        const auto& stage = layout.stage[at.stage];
        ptx::wgmma_fence(sums);
#pragma unroll
        for (int i = 0; i < chunks_per_stage; ++i) {
          wgmma_tile<TileW, TileX>(sums, stage.w[i], first_row, stage.x[i], chunk + i > 0);
        }
        ptx::wgmma_commit();
        ptx::wgmma_wait<0>(sums);
      }
      if (lane == 0) ring.release(at.stage);
    }
    if (!multiplies) continue;
    with_output_type<T>(p, call.finish.narrow, [&](const auto& target) {
      const int own_row = warp * 16 + lane / 4;
      const std::int64_t row = tile % call.tiles * call.rows + own_row;
      const auto matrix = static_cast<int>(tile / call.tiles);
      // Not unrolled: each copy of finish() contains every activation.
#pragma unroll 1
      for (int j = 0; j < Columns / 8; ++j) {
        float picked[4] = {};
#pragma unroll
        for (int i = 0; i < sum_count; ++i) picked[i % 4] = i / 4 == j ? sums[i] : picked[i % 4];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const int below = i / 2 * 8;
          const int column = 8 * j + lane % 4 * 2 + i % 2;
          if (own_row + below < call.rows && row + below < p.m() && column < p.n()) {
            finish(target, matrix, row + below, column, picked[i]);
          }
        }
      }
    });
  }
}

/// Partition of W's rows among the SMs.
struct SkinnyPlan {
  int rows;            // per tile
  std::int64_t tiles;  // per matrix
  std::int64_t blocks;
  double seconds;
};

SkinnyPlan plan_of(const Gemm::Args& args, bool k_major, const Context& context) {
  constexpr std::int64_t most_rows = 128;
  constexpr std::int64_t panel = 64;     // tile rows if W is contiguous along its rows
  constexpr double memory_share = 0.92;  // of the nominal bandwidth
  constexpr double l2_rate = 6e12;
  constexpr double start = 2.5e-6;  // time to the first product plus time after the last
  constexpr double step = 0.13e-6;  // minimum per chunk, however few its rows
  const std::int64_t sms = context.info().sms;
  const std::int64_t rows = larger(args.m(), args.n());
  SkinnyPlan plan{};
  const std::int64_t rounds = tiles_of(rows * args.batch(), sms * most_rows);
  const std::int64_t even = tiles_of(rows * args.batch(), sms * rounds);
  plan.rows = static_cast<int>(k_major ? smaller(even, rows) : panel);
  plan.tiles = tiles_of(rows, plan.rows);
  plan.blocks = smaller(plan.tiles * args.batch(), sms);
  const double turns =
      std::ceil(static_cast<double>(plan.tiles * args.batch()) / static_cast<double>(sms));
  const auto k = static_cast<double>(args.k());
  const double x = static_cast<double>(padded_columns(smaller(args.m(), args.n()))) * k * 2;
  const double w = turns * static_cast<double>(sms * plan.rows) * k * 2;  // idle SMs included
  plan.seconds = launch_seconds + start +
                 std::max({w / memory_share / nominal_rates(context).bytes_per_second,
                           (w + turns * static_cast<double>(sms) * x) / l2_rate,
                           turns * std::ceil(k / chunk_depth) * step});
  return plan;
}

/// Calls f with the product, transposed if needed so that C has no more columns than rows, and its
/// operands' maps.
template <class F>
auto with_few_columns(const Gemm::Args& args, F&& f) {
  return visit<f16, bf16>(args.a.dtype, [&]<class T>() {
    Finish<T> finish = finish_of<T>(args);
    if (finish.p.m() <= finish.p.n()) finish.p = transpose(finish.p);
    return f(finish, mapped_operand(finish.p.a, 1, 2), mapped_operand(finish.p.b, 2, 1));
  });
}

template <class T>
void launch_skinny(Context& context, const Finish<T>& finish, const MappedOperand<T>& w,
                   const MappedOperand<T>& x, const SkinnyPlan& plan) {
  const auto launch_as = [&]<int Rows, int Columns, bool KMajor>() {
    const int box[3] = {1, KMajor ? plan.rows : chunk_depth, chunk_depth};
    const SkinnyCall<T> call{.w = make_tensor_map(w.view, box, Swizzle::bytes_128),
                             .x = WgmmaTile<T, Columns, true>::map(x.view),
                             .w_moves = w.moves ? 1 : 0,
                             .x_moves = x.moves ? 1 : 0,
                             .finish = finish,
                             .rows = plan.rows,
                             .tiles = plan.tiles,
                             .chunks = static_cast<int>(tiles_of(finish.p.k(), chunk_depth))};
    launch(context,
           {.grid = plan.blocks,
            .block = block_threads,
            .shared_bytes = sizeof(SkinnyLayout<Rows, Columns>)},
           gemm_skinny_stream<T, Rows, Columns, KMajor>, call);
  };
  const auto by_columns = [&]<int Rows, bool KMajor>() {
    switch (padded_columns(finish.p.n())) {
      case 16:
        return launch_as.template operator()<Rows, 16, KMajor>();
      case 32:
        return launch_as.template operator()<Rows, 32, KMajor>();
      default:
        return launch_as.template operator()<Rows, 64, KMajor>();
    }
  };
  if (!w.k_major) return by_columns.template operator()<64, false>();
  plan.rows > 64 ? by_columns.template operator()<128, true>()
                 : by_columns.template operator()<64, true>();
}

Support supports(const Gemm::Args& args, const Context& context) {
  if (smaller(args.m(), args.n()) > most_columns) {
    return unsupported("C has more than 64 rows and more than 64 columns");
  }
  if (const Support maps = require_16_bit_maps(args, context); !maps) return maps;
  return with_few_columns(args, [](const auto&, const auto&, const auto& x) {
    return x.k_major ? supported
                     : unsupported("the few rows or columns must be contiguous along k");
  });
}

Work work(const Gemm::Args& args, const Context& context) {
  return with_few_columns(args, [&](const auto&, const auto& w, const auto&) -> Work {
    const SkinnyPlan plan = plan_of(args, w.k_major, context);
    const std::int64_t turns = tiles_of(plan.tiles * args.batch(), plan.blocks);
    const std::int64_t columns = padded_columns(smaller(args.m(), args.n()));
    return {.blocks = plan.blocks,
            .rounds = turns * (tiles_of(args.k(), chunk_depth) + plan.rows / 8),
            .steps = turns * (plan.rows + columns) * args.k()};
  });
}

void run(const Gemm::Args& args, Context& context) {
  with_few_columns(args, [&](const auto& finish, const auto& w, const auto& x) {
    launch_skinny(context, finish, w, x, plan_of(args, w.k_major, context));
  });
}

const Rung<Gemm> self{{.name = "skinny_stream",
                       .after = "few_rows",
                       .backend = device_backend,
                       .supports = supports,
                       .tile = {.rows = most_columns, .columns = 128},
                       .work = work,
                       .run = run}};

}  // namespace
}  // namespace rung

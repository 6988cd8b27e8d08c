// SPDX-License-Identifier: Apache-2.0
// gemm / split bf16
//
// Idea     f32 accuracy from tensor cores: an f32 is the sum of three bf16 of 8 bits each, and the
//          six largest of the nine products of parts suffice. A first kernel splits the operands;
//          the second fetches all parts of a tile at once and computes the six products from shared
//          memory.
// Changes  against persistent: six products per fetched pair of tiles; sums of 64 steps of k are
//          added in f32 registers, because tensor cores truncate where additions round.
// Cost     10 bytes per element for splitting; six times the products of bf16.
// Limits   up to 2 GiB of parts. Infinity times a zero part is NaN.
// Source   Henry, Tang, Heinecke, "Leveraging the bfloat16 Artificial Intelligence Datatype For
//          Higher-Precision Computations"; Ootomo, Yokota, "Recovering single precision accuracy
//          from Tensor Cores", for the additions.
#include "rung/device/ptx/hopper.hpp"
#include "rung/device/tile/roles.hpp"
#include "rung/ops/gemm/cuda/detail/pack.hpp"
#include "rung/ops/gemm/cuda/detail/tensor_job.hpp"

namespace rung {
namespace {

using namespace gemm_cuda;

constexpr int parts = 3;
constexpr int tile_rows = 64 * consumer_groups;
constexpr int tile_columns = 128;
constexpr int ring_stages = 2;
constexpr std::int64_t max_bytes = std::int64_t{2} << 30;
constexpr std::int64_t max_blocks = 65535;  // along y and z

/// Stage of all parts of 64 steps of k of both operands: 96 KiB.
struct alignas(1024) PartsStage {
  unsigned char a[parts][tile_rows * 128];
  unsigned char b[parts][tile_columns * 128];
};
struct SplitLayout {
  PartsStage stages[ring_stages];
  StripBoxes strips[consumer_warps];
  StageRing<ring_stages> ring;
};

/// Splits a number into bf16 parts, the largest first. Values that bf16 would round to infinity
/// stay finite.
__device__ void split(float value, bf16 (&to)[parts]) {
  constexpr float largest = 3.3895314e38f;  // of bf16
  float rest = value;
#pragma unroll
  for (auto& part : to) {
    const bool finite = rest - rest == 0;
    const float limited = finite ? smaller(larger(rest, -largest), largest) : rest;
    part = convert<bf16>(limited);
    rest = finite ? rest - convert<float>(part) : 0.0f;
  }
}

/// Kernel arguments of the split: an operand, and the destination of its parts, matrices x parts x
/// lines of `pitch` elements.
struct Splitting {
  View<const float, 3> from;  // matrices x lines x along
  bf16* to;
  std::int64_t pitch;
};

constexpr int chunk = 8;  // elements of a line per thread: 16 bytes of each part
constexpr int chunk_threads = 64;
constexpr int line_threads = 4;

__global__ void __launch_bounds__(chunk_threads* line_threads) gemm_split_operand(Splitting s) {
  const std::int64_t at = (std::int64_t{blockIdx.x} * chunk_threads + threadIdx.x) * chunk;
  if (at >= s.pitch) return;
  const std::int64_t lines = s.from.shape[1];
  for (std::int64_t matrix = blockIdx.z; matrix < s.from.shape[0]; matrix += gridDim.z) {
    for (std::int64_t line = std::int64_t{blockIdx.y} * line_threads + threadIdx.y; line < lines;
         line += std::int64_t{gridDim.y} * line_threads) {
      const Pack<float, chunk> values = unpack(
          load_line<chunk>(&s.from(matrix, line, 0), s.from.strides[2], at, s.from.shape[2]));
      Pack<bf16, chunk> split_values[parts];
#pragma unroll
      for (int i = 0; i < chunk; ++i) {
        bf16 of_one[parts];
        split(values[i], of_one);
#pragma unroll
        for (int part = 0; part < parts; ++part) split_values[part][i] = of_one[part];
      }
#pragma unroll
      for (int part = 0; part < parts; ++part) {
        store_wide(s.to + ((matrix * parts + part) * lines + line) * s.pitch + at,
                   split_values[part]);
      }
    }
  }
}

template <bool KMajorA, bool KMajorB>
__global__ void __launch_bounds__(role_threads, 1)
    gemm_split_bf16(const __grid_constant__ TensorJob<float> job) {
  using TileA = WgmmaTile<bf16, tile_rows, KMajorA>;
  using TileB = WgmmaTile<bf16, tile_columns, KMajorB>;
  auto& layout = shared<SplitLayout>();
  if (threadIdx.x == 0) {
    layout.ring.init(consumer_warps);
    ptx::tensor_prefetch_map(job.a);
    ptx::tensor_prefetch_map(job.b);
  }
  __syncthreads();
  RingPlace<ring_stages> at;
  const int works = job.raster.total();
  const auto first = static_cast<int>(blockIdx.x);
  const auto blocks = static_cast<int>(gridDim.x);

  if (threadIdx.x < producer_threads) {
    ptx::release_registers<producer_registers>();
    if (threadIdx.x != 0) return;
    for (int number = first; number < works; number += blocks) {
      const TileWork work = job.raster.at(number);
      const int tiles = job.tiles_of_slice(work.slice);
      const int matrix_a = work.batch * job.a_moves * parts;
      const int matrix_b = work.batch * job.b_moves * parts;
      int k = work.slice * job.slice_tiles * TileA::depth;
      for (int tile = 0; tile < tiles; ++tile, k += TileA::depth, at.advance()) {
        auto& stage = layout.stages[at.stage];
        auto& full = layout.ring.full[at.stage];
        layout.ring.await_empty(at);
        layout.ring.expect(at, parts * (TileA::bytes + TileB::bytes));
        for (int part = 0; part < parts; ++part) {
          TileA::load(stage.a[part], job.a, matrix_a + part, work.row * tile_rows, k, full);
          TileB::load(stage.b[part], job.b, matrix_b + part, work.column * tile_columns, k, full);
        }
      }
    }
    return;
  }

  ptx::claim_registers<consumer_registers>();
  const int warp = static_cast<int>(threadIdx.x - producer_threads) / 32;
  const int own_row = warp / 4 * 64;
  int turn = 0;
  for (int number = first; number < works; number += blocks) {
    const TileWork work = job.raster.at(number);
    const int tiles = job.tiles_of_slice(work.slice);
    float sums[tile_columns / 2] = {};
    for (int tile = 0; tile < tiles; ++tile, at.advance()) {
      layout.ring.await_full(at);
      const PartsStage& stage = layout.stages[at.stage];
      float products[tile_columns / 2];
      ptx::wgmma_fence(products);
      // Small products first: the accumulator is then small, and truncation loses the least.
      wgmma_tile<TileA, TileB>(products, stage.a[2], own_row, stage.b[0], false);
      wgmma_tile<TileA, TileB>(products, stage.a[1], own_row, stage.b[1], true);
      wgmma_tile<TileA, TileB>(products, stage.a[0], own_row, stage.b[2], true);
      wgmma_tile<TileA, TileB>(products, stage.a[1], own_row, stage.b[0], true);
      wgmma_tile<TileA, TileB>(products, stage.a[0], own_row, stage.b[1], true);
      wgmma_tile<TileA, TileB>(products, stage.a[0], own_row, stage.b[0], true);
      ptx::wgmma_commit();
      // The other warpgroup's products keep the tensor cores busy during this wait.
      ptx::wgmma_wait<0>(products);
      if (threadIdx.x % 32 == 0) layout.ring.release(at.stage);
#pragma unroll
      for (int i = 0; i < tile_columns / 2; ++i) sums[i] += products[i];
    }
    write_strip<tile_columns, float>(job, layout.strips[warp], turn,
                                     work.slice * job.raster.batch + work.batch,
                                     work.row * tile_rows + 16 * warp, work.column * tile_columns,
                                     [&](int i) { return sums[i]; });
  }
  if (threadIdx.x % 32 == 0) StripBoxes::drain();
}

/// Operand to be split: `given` is matrices x outer x k, in that order if the axes are 1 and 2.
/// Lines run along the axis with the smaller stride.
struct SplitOperand {
  View<const float, 3> view;  // matrices x lines x along
  bool k_major;
  bool moves;
  std::int64_t pitch;

  SplitOperand(const View<const float, 3>& given, int outer, int depth)
      : view(given),
        k_major(std::abs(given.strides[depth]) <= std::abs(given.strides[outer])),
        moves(given.shape[0] > 1 && given.strides[0] != 0) {
    const int line = k_major ? outer : depth;
    const int along = k_major ? depth : outer;
    view.shape[1] = given.shape[line];
    view.shape[2] = given.shape[along];
    view.strides[1] = given.strides[line];
    view.strides[2] = given.strides[along];
    if (!moves) view.shape[0] = 1;
    pitch = packed_pitch<bf16>(view.shape[2]);
  }
  [[nodiscard]] std::int64_t elements() const {
    return view.shape[0] * parts * view.shape[1] * pitch;
  }
  [[nodiscard]] double bytes() const {
    return 2.0 * parts * static_cast<double>(view.shape[0]) * static_cast<double>(view.shape[1]) *
           static_cast<double>(pitch);
  }
};
struct SplitOperands {
  Finish<float> finish;
  SplitOperand a, b;

  explicit SplitOperands(const Gemm::Args& args) : SplitOperands(row_contiguous(args)) {}
  [[nodiscard]] double bytes() const { return a.bytes() + b.bytes(); }

 private:
  static Finish<float> row_contiguous(const Gemm::Args& args) {
    Finish<float> finish = finish_of<float>(args);
    finish.p = with_contiguous_c(finish.p);
    return finish;
  }
  explicit SplitOperands(const Finish<float>& given)
      : finish(given), a(given.p.a, 1, 2), b(given.p.b, 2, 1) {}
};

/// Splits an operand and returns its parts as a view of (matrices and parts) x lines x along.
View<const bf16, 3> split_operand(Context& context, const SplitOperand& operand, bf16* to) {
  const View<const float, 3>& from = operand.view;
  launch(context,
         {.grid = {tiles_of(operand.pitch, chunk * chunk_threads),
                   smaller(tiles_of(from.shape[1], line_threads), max_blocks),
                   smaller(from.shape[0], max_blocks)},
          .block = {chunk_threads, line_threads}},
         gemm_split_operand, Splitting{from, to, operand.pitch});
  View<const bf16, 3> made;
  made.data = to;
  made.shape[0] = from.shape[0] * parts;
  made.shape[1] = from.shape[1];
  made.shape[2] = from.shape[2];
  made.strides[0] = from.shape[1] * operand.pitch;
  made.strides[1] = operand.pitch;
  made.strides[2] = 1;
  return made;
}

// Six bf16 products per f32 product, relative to the tf32 peak, which is half of bf16's.
constexpr TensorTile split_tiles[] = {{.rows = tile_rows,
                                       .columns = tile_columns,
                                       .reach = 0.75 * 2 / 6,
                                       .start_seconds = 2e-6,
                                       .step_seconds = 0.5e-6}};

Support supports(const Gemm::Args& args, const Context& context) {
  if (args.a.dtype != DType::f32 || args.precision != Precision::split) {
    return unsupported("this rung multiplies f32 operands with Precision::split");
  }
  if (const Support sizes = require_mapped_sizes(args, context); !sizes) return sizes;
  return SplitOperands(args).bytes() <= static_cast<double>(max_bytes)
             ? supported
             : unsupported("parts of more than 2 GiB");
}

TensorPlan plan_of(const Gemm::Args& args, const Context& context) {
  return plan_tensor(args, context, split_tiles, true);
}

Work work(const Gemm::Args& args, const Context& context) {
  const TensorPlan plan = plan_of(args, context);
  Work work = tensor_work(args, context, split_tiles[plan.tile], plan.slices);
  work.launches = work.launches + 2.0;
  work.bytes = work.bytes + SplitOperands(args).bytes() * (1 + 2.0 / parts);
  return work;
}

void run(const Gemm::Args& args, Context& context) {
  const SplitOperands operands(args);
  const TensorPlan plan = plan_of(args, context);
  const Product<float, float>& p = operands.finish.p;
  const auto part_bytes = static_cast<std::size_t>(operands.bytes());
  auto* const memory = static_cast<unsigned char*>(context.workspace(
      part_bytes + (plan.slices > 1 ? partial_bytes(operands.finish, plan.slices) : 0)));
  auto* const elements = reinterpret_cast<bf16*>(memory);
  const View<const bf16, 3> a = split_operand(context, operands.a, elements);
  const View<const bf16, 3> b =
      split_operand(context, operands.b, elements + operands.a.elements());
  const auto multiply = [&]<bool KMajorA, bool KMajorB>(float* partial, int slices) {
    using TileA = WgmmaTile<bf16, tile_rows, KMajorA>;
    using TileB = WgmmaTile<bf16, tile_columns, KMajorB>;
    const auto k_tiles = static_cast<int>(tiles_of(p.k(), TileA::depth));
    const auto slice_tiles = static_cast<int>(tiles_of(k_tiles, slices));
    TensorJob<float> job{
        .a = TileA::map(a),
        .b = TileB::map(b),
        .c = {},
        .finish = slices > 1 ? into_partial_sums(operands.finish, partial) : operands.finish,
        .raster = {.down = static_cast<int>(tiles_of(p.m(), tile_rows)),
                   .along = static_cast<int>(tiles_of(p.n(), tile_columns)),
                   .batch = static_cast<int>(p.c.shape[0]),
                   .slices = slices,
                   .band = raster_band(context.info().sms, tile_rows, tile_columns)},
        .a_moves = operands.a.moves ? 1 : 0,
        .b_moves = operands.b.moves ? 1 : 0,
        .k_tiles = k_tiles,
        .slice_tiles = slice_tiles,
        .boxes_of_c = false};
    if (slices == 1) job.boxes_of_c = map_c<float>(job.finish.p, job.c);
    launch(context,
           {.grid = smaller<std::int64_t>(job.raster.total(), context.info().sms),
            .block = role_threads,
            .shared_bytes = sizeof(SplitLayout)},
           gemm_split_bf16<KMajorA, KMajorB>, job);
  };
  // All slices but the last have the same number of k tiles, so there may be fewer slices.
  const std::int64_t k_tiles = tiles_of(p.k(), 64);
  const auto slices = static_cast<int>(tiles_of(k_tiles, tiles_of(k_tiles, plan.slices)));
  with_slices(context, operands.finish, slices, memory + part_bytes, [&](float* partial) {
    const bool k_major_b = operands.b.k_major;
    if (operands.a.k_major) {
      return k_major_b ? multiply.template operator()<true, true>(partial, slices)
                       : multiply.template operator()<true, false>(partial, slices);
    }
    k_major_b ? multiply.template operator()<false, true>(partial, slices)
              : multiply.template operator()<false, false>(partial, slices);
  });
}

const Rung<Gemm> self{{.name = "split_bf16",
                       .after = "persistent",
                       .backend = device_backend,
                       .supports = supports,
                       .tile = {.rows = tile_rows, .columns = tile_columns},
                       .work = work,
                       .run = run}};

}  // namespace
}  // namespace rung

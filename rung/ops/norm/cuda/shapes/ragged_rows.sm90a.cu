// SPDX-License-Identifier: Apache-2.0
// norm / ragged rows
//
// Idea     Persistent clusters of 1, 2, 4 or 8 blocks split a row whose ends need not be 16-byte
//          aligned. A ring in shared memory receives each block's part: one bulk copy for the
//          aligned middle, one warp for head and tail (device/row/row_cut.hpp); y is stored the
//          same way.
// Changes  against cluster_rows: a thread owns the same columns of every row instead of packs, so
//          gamma and beta stay in registers regardless of alignment. Against split_rows: x is read
//          once.
// Cost     Compulsory traffic; one 16-byte packet from every warp to every block per row. Shared
//          memory is read twice and written once, 4 bytes per lane.
// Limits   Compute capability 9.0; contiguous rows of 1025 to 147456 elements of f32, f16 or bf16
//          with partial packs, without a residual. If x and y are misaligned by different amounts,
//          y is stored by elements.
#include "rung/core/bounds.hpp"
#include "rung/device/dependent.hpp"
#include "rung/device/ptx/cluster.hpp"
#include "rung/device/ptx/cluster_send.hpp"
#include "rung/device/resident.hpp"
#include "rung/device/row/row_cut.hpp"
#include "rung/ops/norm/shared/cuda/parts.hpp"

namespace rung {
namespace {

using namespace norm_cuda;

constexpr int ragged_elements = 36;  // per thread: gamma and beta take 72 registers
constexpr int ragged_threads = 512;  // 128 registers each
constexpr int ragged_blocks = 8;     // per cluster: the portable maximum
constexpr int most_stages = 6;
constexpr std::int64_t shortest_ragged_row = 1025;
constexpr std::int64_t longest_part = std::int64_t{ragged_threads} * ragged_elements;

/// Exchange buffers; the ring follows, aligned to 128 bytes.
struct alignas(128) RaggedShared {
  WarpPart<float> parts[2][ragged_blocks * ragged_threads / 32];  // of this row and the next
  ptx::MemoryBarrier sent[2];
  ptx::MemoryBarrier full[most_stages];  // two arrivals: bulk copy and edges
};

/// Partition of rows into blocks and stages.
struct RaggedShape {
  int part;  // elements of a row per block
  int stages;
  int stage_bytes;
};

/// Computes ragged rows. `unit`: adjacent elements per shared-memory access; 2 if every row begins
/// and ends at an even element.
template <class T, int unit>
__global__ void __launch_bounds__(ragged_threads, 1)
    norm_ragged_rows(const __grid_constant__ NormArguments<T> call, RaggedShape shape) {
  start_dependent();
  constexpr int accesses = ragged_elements / unit;
  constexpr int of_warp = warp_size * ragged_elements;
  auto& scratch = shared<RaggedShared>();
  auto* const ring = reinterpret_cast<unsigned char*>(&scratch + 1);
  const int thread = static_cast<int>(threadIdx.x);
  const int lane = lane_of_thread();
  const int warp = thread / warp_size;
  const int warps = static_cast<int>(blockDim.x) / warp_size;
  const int blocks = ptx::cluster_size();
  const int rank = ptx::cluster_rank();
  const int rows = static_cast<int>(call.rows);
  const int step = static_cast<int>(gridDim.x) / blocks;
  const int first_row = static_cast<int>(blockIdx.x) / blocks;
  const int begin = rank * shape.part;  // first element of the block's part
  const int length = clamped(static_cast<int>(call.n) - begin, 0, shape.part);
  const int mine = warp * of_warp + lane * unit;  // this thread's first element of the part
  const int left = length - mine;
  const auto has = [&](int k) { return k * warp_size * unit < left; };

  const auto row_of = [&](int row) { return call.x + place<norm_lines::row_x>(call, row) + begin; };
  const auto stage_of = [&](int stage) {
    return reinterpret_cast<T*>(ring + stage * shape.stage_bytes);
  };
  const auto load_middle = [&](int row, int stage) {
    if (row >= rows) return;
    const T* const x = row_of(row);
    RowCut<T>(x, length).load_middle(stage_of(stage), x, scratch.full[stage]);
  };
  const auto load_edge = [&](int row) {
    return row < rows ? RowCut<T>(row_of(row), length).load_edge(row_of(row), lane) : zero<T>();
  };
  // Called by the first warp: the second arrival at a full stage.
  const auto write_edge = [&](int row, int stage, T edge) {
    if (row >= rows) return;
    RowCut<T>(row_of(row), length).write_edge(stage_of(stage), edge, lane);
    __syncwarp();
    if (lane == 0) ptx::mbarrier_arrive(scratch.full[stage]);
  };

  if (thread == 0) {
    for (ptx::MemoryBarrier& sent : scratch.sent) ptx::mbarrier_init(sent, 1);
    for (ptx::MemoryBarrier& full : scratch.full) ptx::mbarrier_init(full, 2);
    ptx::mbarrier_fence_init();
    for (int stage = 0; stage + 1 < shape.stages; ++stage) {
      load_middle(first_row + stage * step, stage);
    }
  }
  __syncwarp();
  if (warp == 0) write_edge(first_row, 0, load_edge(first_row));
  float gamma[ragged_elements];
  float beta[ragged_elements];
#pragma unroll
  for (int k = 0; k < accesses; ++k) {
#pragma unroll
    for (int i = 0; i < unit; ++i) {
      const std::int64_t column = begin + mine + k * warp_size * unit + i;
      gamma[k * unit + i] = has(k) ? weight(call, call.gamma, column, 1.0F) : 0.0F;
      beta[k * unit + i] = has(k) ? weight(call, call.beta, column, 0.0F) : 0.0F;
    }
  }
  ptx::cluster_sync();

  int stage = 0;
  unsigned parity = 0;
  unsigned round = 0;
  for (int row = first_row; row < rows; row += step, ++round) {
    const unsigned turn = round % 2;
    const T* const x = row_of(row);
    const RowCut<T> cut(x, length);
    const int next_stage = stage + 1 == shape.stages ? 0 : stage + 1;
    T edge = zero<T>();  // head and tail elements of the next row
    if (warp == 0) edge = load_edge(row + step);
    T* const staged = cut.at(stage_of(stage)) + mine;
    ptx::mbarrier_wait(scratch.full[stage], parity);

    // Moments about the mean of the warp's first elements, at least a ninth of its part.
    WarpPart<float> part{0, static_cast<float>(clamped(length - warp * of_warp, 0, of_warp)), {}};
    if (call.layer) {
      constexpr int sampled = 4 * warp_size;  // the power of two by which sums are shrunk
      float sum = 0;
#pragma unroll
      for (int k = 0; k < 4 / unit; ++k) {
        if (!has(k)) continue;
        const Pack<T, unit> s = load_wide<unit>(staged + k * warp_size * unit);
#pragma unroll
        for (int i = 0; i < unit; ++i) sum += convert<float>(s[i]) * (1.0F / sampled);
      }
      const int elements = clamped(length - warp * of_warp, 0, sampled);
      const float share = elements > 0 ? float{sampled} / static_cast<float>(elements) : 0.0F;
      part.center = center_near(warp_reduce(sum, Plus{}) * share);
    }
    Moments<float> moments[2] = {};
#pragma unroll 6
    for (int k = 0; k < accesses; ++k) {
      if (!has(k)) continue;
      const Pack<T, unit> s = load_wide<unit>(staged + k * warp_size * unit);
#pragma unroll
      for (int i = 0; i < unit; ++i) {
        moments[(k + i) % 2].add(convert<float>(s[i]) - part.center, call.factors.shrink);
      }
    }
    part.moments = lanes_sum(AddMoments{}(moments[0], moments[1]), warp_size);

    if (blocks == 1) {  // st.async is an illegal instruction without a cluster
      if (lane == 0) scratch.parts[turn][warp] = part;
      __syncthreads();
    } else {
      if (thread == 0) {
        ptx::mbarrier_arrive_expect(scratch.sent[turn], static_cast<unsigned>(blocks * warps) *
                                                            static_cast<unsigned>(sizeof(part)));
      }
      if (lane < blocks) {
        ptx::cluster_send(scratch.parts[turn][rank * warps + warp], part, scratch.sent[turn], lane);
      }
      ptx::mbarrier_wait_cluster(scratch.sent[turn], round / 2 % 2);
    }
    float center = 0;
    const Moments<float> of_row = join(call, scratch.parts[turn], blocks * warps, center);
    const Scale<float> scale = scale_about(call, center, of_row);
    if (rank == 0 && thread == 0) write_statistics(call, row, center, of_row, scale.rstd);

    T* const y = call.y + place<norm_lines::row_y>(call, row) + begin;
    const bool alike = lead_of<vector_width<T>>(y) == cut.lead;
    const auto write = [&](T* to) {
#pragma unroll
      for (int k = 0; k < accesses; ++k) {
        if (!has(k)) continue;
        const Pack<T, unit> s = load_wide<unit>(staged + k * warp_size * unit);
        Pack<T, unit> results;
#pragma unroll
        for (int i = 0; i < unit; ++i) {
          const float z = (convert<float>(s[i]) - scale.center) * scale.rstd + scale.shift;
          results[i] = convert<T>(z * gamma[k * unit + i] + beta[k * unit + i]);
        }
        store_wide(to + k * warp_size * unit, results);
      }
    };
    alike ? write(staged) : write(y + mine);
    ptx::fence_async_proxy();
    __syncthreads();  // results are complete; x and the parts have been read

    if (alike && thread == 0) cut.store_middle(y, stage_of(stage));
    if (alike && warp == 0) cut.store_edge(y, stage_of(stage), lane);
    if (thread == 0) {
      // The previous row's stage is free after its results have been stored.
      ptx::bulk_commit();
      ptx::bulk_wait_read<1>();
      load_middle(row + (shape.stages - 1) * step, stage == 0 ? shape.stages - 1 : stage - 1);
    }
    __syncwarp();
    if (warp == 0) write_edge(row + step, next_stage, edge);
    stage = next_stage;
    if (stage == 0) parity ^= 1;
  }
  if (thread == 0) ptx::bulk_wait<0>();
  ptx::cluster_sync();  // remote packets may still arrive in shared memory
}

/// Launch geometry: cluster, threads per block, and ring.
struct RaggedPlan {
  std::int64_t blocks = 1;
  int threads = 0;
  int per_sm = 1;
  RaggedShape shape{};
  std::size_t shared_bytes = 0;
};
RaggedPlan ragged_plan(const Norm::Args& args, const Context& context) {
  RaggedPlan plan;
  const std::int64_t columns = args.columns();
  const auto element = static_cast<std::int64_t>(size_of(args.x.dtype));
  // 16-bit elements need twice the arithmetic per byte: use two blocks per SM, so that one computes
  // while the other waits for its cluster.
  const std::int64_t preferred = element == 2 ? longest_part / 2 : longest_part;
  while (plan.blocks < ragged_blocks && ceil_div(columns, plan.blocks) > preferred) {
    plan.blocks *= 2;
  }
  // All blocks but a row's last have full packs, so that pairs are not split.
  const std::int64_t part = smaller(round_up(ceil_div(columns, plan.blocks), 8), longest_part);
  plan.shape.part = static_cast<int>(part);
  plan.threads =
      static_cast<int>(round_up(ceil_div(part, std::int64_t{ragged_elements}), warp_size));
  plan.per_sm = clamped(ragged_threads / plan.threads, 1, 8);
  plan.shape.stage_bytes = static_cast<int>(cut_row_bytes(part, element));
  const auto bytes = static_cast<std::int64_t>(context.info().shared_per_block) / plan.per_sm -
                     static_cast<std::int64_t>(sizeof(RaggedShared)) - 1024;
  plan.shape.stages =
      static_cast<int>(clamped<std::int64_t>(bytes / plan.shape.stage_bytes, 2, most_stages));
  plan.shared_bytes = sizeof(RaggedShared) + static_cast<std::size_t>(plan.shape.stages) *
                                                 static_cast<std::size_t>(plan.shape.stage_bytes);
  return plan;
}

Support supports(const Norm::Args& args, const Context& context) {
  if (context.info().compute_capability < 90) {
    return unsupported("bulk copies and clusters need compute capability 9.0");
  }
  if (args.x.dtype == DType::f64) return unsupported("f32, f16 and bf16");
  if (args.residual.data != nullptr) return unsupported("no residual");
  if (const Support rows = require_contiguous_rows(args, context); !rows) return rows;
  if (args.rows() > 0x3fffffff) return unsupported("more than 2^30 rows");
  if (args.columns() < shortest_ragged_row || args.columns() > ragged_blocks * longest_part) {
    return unsupported("rows of 1025 to 147456 elements");
  }
  return all_packs_whole(args) ? unsupported("rows must cut packs of 16 bytes") : supported;
}

/// Returns whether all rows of x and y begin and end at an even element and are 4-byte aligned.
bool pairs_are_whole(const Norm::Args& args) {
  const norm_lines::Lines lines = norm_lines::lines_of(args);
  return rows_are_regular(lines.rows, lines.columns.size(), norm_lines::row_x, args.x.data, 2, 4) &&
         rows_are_regular(lines.rows, lines.columns.size(), norm_lines::row_y, args.y.data, 2, 4);
}

Work work(const Norm::Args& args, const Context& context) {
  const RaggedPlan plan = ragged_plan(args, context);
  const std::int64_t clusters =
      std::int64_t{context.info().sms} * plan.per_sm / plan.blocks;  // resident at once
  const std::int64_t rows = ceil_div(args.rows(), larger<std::int64_t>(clusters, 1));
  return {.blocks = plan.blocks * smaller(clusters, args.rows()),
          .resident = plan.per_sm,
          .rounds = rows,
          .steps = rows * plan.threads,
          .path = type_path(args.x.dtype)};
}

void run(const Norm::Args& args, Context& context) {
  const RaggedPlan plan = ragged_plan(args, context);
  const bool pairs = pairs_are_whole(args);
  const auto launch_rows_of = [&]<class T>(const NormArguments<T>& call) {
    void (*kernel)(NormArguments<T>, RaggedShape) = norm_ragged_rows<T, 1>;
    if constexpr (sizeof(T) == 2) {
      if (pairs) kernel = norm_ragged_rows<T, 2>;
    }
    const std::int64_t clusters = resident_clusters(
        context, kernel, plan.threads, plan.shared_bytes, static_cast<int>(plan.blocks));
    launch(context,
           {.grid = plan.blocks * smaller(clusters, call.rows),
            .block = plan.threads,
            .shared_bytes = plan.shared_bytes,
            .cluster = plan.blocks,
            .dependent = can_depend(context)},
           kernel, call, plan.shape);
  };
  visit<float, f16, bf16>(args.x.dtype, [&]<class T>() { launch_rows_of(call_of<T>(args)); });
}

const Rung<Norm> self{{.name = "ragged_rows",
                       .after = "cluster_rows",
                       .backend = device_backend,
                       .supports = supports,
                       .passes = {.loads = 1, .stores = 1},
                       .work = work,
                       .run = run}};

}  // namespace
}  // namespace rung

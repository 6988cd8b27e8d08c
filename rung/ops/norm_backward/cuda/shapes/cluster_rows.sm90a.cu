// SPDX-License-Identifier: Apache-2.0
// norm_backward / cluster rows
//
// Idea     Persistent clusters of 1, 2, 4 or 8 blocks split long rows. A producer warp moves each
//          block's parts of x, dy and dx through a shared-memory ring; sixteen warps compute. They
//          sum row r + 1 before they finish row r, while its sums travel between the blocks.
// Changes  against ring: a thread owns the same columns of every row at any alignment, so that
//          gamma and the column sums stay in registers; no barrier of the block per row; one set of
//          column sums per cluster. Against split_rows: x and dy are read once.
// Cost     Compulsory traffic, and 2 n sums per cluster; one 16-byte packet from every warp to
//          every block per row. Shared memory is read four times and written once per element.
// Limits   Compute capability 9.0; given statistics; contiguous rows of 2049 to 49152 elements of
//          f32, 65536 of f16 and bf16. If dx is misaligned by another amount than x, it is stored
//          by threads.
// Source   norm's ragged_rows.
#include "rung/core/bounds.hpp"
#include "rung/device/ptx/cluster.hpp"
#include "rung/device/ptx/cluster_send.hpp"
#include "rung/device/resident.hpp"
#include "rung/device/row/packed_words.hpp"
#include "rung/device/row/row_cut.hpp"
#include "rung/ops/norm_backward/cuda/detail/norm_backward.hpp"

namespace rung {
namespace {

using namespace norm_backward_cuda;

constexpr int kept_columns = 16;  // per thread: gamma and two sums take 48 registers
constexpr int math_warps = 16;
constexpr int math_threads = math_warps * warp_size;
constexpr int cluster_threads = math_threads + warp_size;  // with the producer warp; 120 registers
constexpr int max_cluster = 8;                             // blocks: the portable maximum
constexpr int max_ring_stages = 8;
constexpr int min_ring_stages = 4;  // two rows are computed, one is stored, one arrives
constexpr int part_bytes = 24 << 10;
constexpr int means_buffers = 4;  // a warp may send row r + 3 before another has read row r
constexpr std::int64_t shortest_cluster_row = 2049;

/// Elements of a row per block, at most: those that threads keep, and four stages of which fit.
template <class T>
constexpr std::int64_t longest_part =
    smaller(kept_columns * math_threads, part_bytes / static_cast<int>(sizeof(T)));

struct alignas(16) MeansPacket {
  Means<float> means;
  unsigned unused[2];
};

/// Exchange buffers and barriers; the ring follows, aligned to 128 bytes.
struct alignas(128) ClusterRowsShared {
  MeansPacket means[means_buffers][max_cluster * math_warps];
  ptx::MemoryBarrier sent[means_buffers];
  ptx::MemoryBarrier full[max_ring_stages];  // x, dy, and the edges of both
  ptx::MemoryBarrier done[max_ring_stages];  // one arrival per warp
};

/// Partition of rows into blocks and stages.
struct ClusterRowsShape {
  int part;  // elements of a row per block
  int stages;
  int row_bytes;  // of x or dy in a stage
  bool bulk_dx;   // rows of dx are aligned as those of x
};

/// Position in a ring: slot and parity of the mbarrier's phase.
struct RingPosition {
  int slot = 0;
  unsigned parity = 0;
  __device__ __forceinline__ void advance(int slots) {
    if (++slot == slots) {
      slot = 0;
      parity ^= 1;
    }
  }
};

/// Columns of a thread: `unit` adjacent ones per access, accesses math_threads * unit apart.
template <int unit>
struct ThreadColumns {
  static constexpr int accesses = kept_columns / unit;
  static constexpr int together = unit >= 4 ? 1 : 4 / unit;  // accesses loaded before the first use
  int first;                                                 // column of access 0
  int length;                                                // of the block's part

  [[nodiscard]] static __device__ __forceinline__ int offset(int k) {
    return k * math_threads * unit;
  }
  [[nodiscard]] __device__ __forceinline__ bool has(int k) const {
    return first + offset(k) < length;
  }
  template <bool all, class T>
  [[nodiscard]] __device__ __forceinline__ Pack<T, unit> load(const T* row, int k) const {
    Pack<T, unit> found{};
    if (all || has(k)) found = load_wide<unit>(row + first + offset(k));
    return found;
  }
  /// Calls f(k, all) for groups of `together` accesses from k on; `all`: every thread has them.
  template <class F>
  __device__ __forceinline__ void for_groups(F&& f) const {
#pragma unroll
    for (int k = 0; k < accesses; k += together) {
      if (offset(k + together) <= length) {
        f(k, std::true_type{});
      } else if (offset(k) < length) {
        f(k, std::false_type{});
      }
    }
  }
};

/// Widens the elements of one access.
template <class T, int unit>
__device__ __forceinline__ Pack<float, unit> widen_columns(const Pack<T, unit>& elements) {
  if constexpr (sizeof(T) == 2 && unit % 2 == 0) {
    struct Words {
      unsigned at[unit / 2];
    };
    const auto words = __builtin_bit_cast(Words, elements);
    Pack<float, unit> wide;
#pragma unroll
    for (int i = 0; i < unit / 2; ++i) {
      const Pack<float, 2> pair = widen_pair<T>(words.at[i]);
      wide[2 * i] = pair[0];
      wide[2 * i + 1] = pair[1];
    }
    return wide;
  } else {
    return convert<float>(elements);
  }
}

/// Computes long rows. `unit`: adjacent elements per access to shared memory; all rows begin and
/// end at multiples of it.
template <class T, int unit>
__global__ void __launch_bounds__(cluster_threads, 1)
    norm_backward_cluster_rows(const __grid_constant__ NormGradientArguments<T> call,
                               ClusterRowsShape shape) {
  start_dependent();
  using Columns = ThreadColumns<unit>;
  auto& scratch = shared<ClusterRowsShared>();
  auto* const ring = reinterpret_cast<unsigned char*>(&scratch + 1);
  const int thread = static_cast<int>(threadIdx.x);
  const int lane = lane_of_thread();
  const int warp = thread / warp_size;
  const int blocks = ptx::cluster_size();
  const int rank = ptx::cluster_rank();
  const int step = static_cast<int>(gridDim.x) / blocks;
  const int cluster = static_cast<int>(blockIdx.x) / blocks;
  const int turns = ceil_div(static_cast<int>(call.rows) - cluster, step);  // rows of the cluster
  const int begin = rank * shape.part;  // first column of the block
  const int length = clamped(static_cast<int>(call.n) - begin, 0, shape.part);

  const auto& strides = call.lines.rows.strides;  // rows have one axis
  const auto row_of = [&](auto* tensor, NormBackward::RowTensor which, int turn) {
    return tensor + std::int64_t{cluster + turn * step} * strides[which][0] + begin;
  };
  const auto stage_of = [&](int stage, int tensor) {
    return reinterpret_cast<T*>(ring + (2 * stage + tensor) * shape.row_bytes);
  };

  if (thread == 0) {
    for (ptx::MemoryBarrier& sent : scratch.sent) {
      ptx::mbarrier_init(sent, blocks == 1 ? math_warps : 1);
    }
    for (ptx::MemoryBarrier& full : scratch.full) ptx::mbarrier_init(full, 3);
    for (ptx::MemoryBarrier& done : scratch.done) ptx::mbarrier_init(done, math_warps);
    ptx::mbarrier_fence_init();
  }
  __syncthreads();
  ptx::cluster_sync();

  if (warp == math_warps) {
    // The producer: fills all stages, then stores each row and refills the previous row's stage.
    const auto load_middles = [&](int turn, int stage) {
      if (lane != 0) return;
      const T* const x = row_of(call.x, NormBackward::row_x, turn);
      const T* const dy = row_of(call.dy, NormBackward::row_dy, turn);
      RowCut<T>(x, length).load_middle(stage_of(stage, 0), x, scratch.full[stage]);
      RowCut<T>(dy, length).load_middle(stage_of(stage, 1), dy, scratch.full[stage]);
    };
    struct Edges {
      T x;
      T dy;
    };
    const auto load_edges = [&](int turn) {
      const T* const x = row_of(call.x, NormBackward::row_x, turn);
      const T* const dy = row_of(call.dy, NormBackward::row_dy, turn);
      return Edges{RowCut<T>(x, length).load_edge(x, lane),
                   RowCut<T>(dy, length).load_edge(dy, lane)};
    };
    const auto write_edges = [&](int turn, int stage, const Edges& edges) {
      const T* const x = row_of(call.x, NormBackward::row_x, turn);
      const T* const dy = row_of(call.dy, NormBackward::row_dy, turn);
      RowCut<T>(x, length).write_edge(stage_of(stage, 0), edges.x, lane);
      RowCut<T>(dy, length).write_edge(stage_of(stage, 1), edges.dy, lane);
      __syncwarp();
      if (lane == 0) ptx::mbarrier_arrive(scratch.full[stage]);
    };
    const int filled = smaller(shape.stages, turns);
    for (int stage = 0; stage < filled; ++stage) load_middles(stage, stage);
    Edges first[max_ring_stages];
#pragma unroll
    for (int stage = 0; stage < max_ring_stages; ++stage) {
      if (stage < filled) first[stage] = load_edges(stage);
    }
#pragma unroll
    for (int stage = 0; stage < max_ring_stages; ++stage) {
      if (stage < filled) write_edges(stage, stage, first[stage]);
    }

    RingPosition at;
    Edges edges{};  // of row `turn + stages - 2`, whose middle was loaded in the previous iteration
    for (int turn = 0; turn < turns; ++turn) {
      ptx::mbarrier_wait(scratch.done[at.slot], at.parity);
      if (shape.bulk_dx) {
        T* const dx = row_of(call.dx, NormBackward::row_dx, turn);
        const RowCut<T> cut(dx, length);
        if (lane == 0) cut.store_middle(dx, stage_of(at.slot, 0));
        cut.store_edge(dx, stage_of(at.slot, 0), lane);
      }
      if (lane == 0) ptx::bulk_commit();
      const int next = turn - 1 + shape.stages;
      const int stage = at.slot == 0 ? shape.stages - 1 : at.slot - 1;  // of row turn - 1
      if (turn > 0 && next < turns) {
        if (lane == 0) ptx::bulk_wait_read<1>();
        __syncwarp();
        load_middles(next, stage);
      }
      if (turn > 1 && next - 1 < turns) {
        write_edges(next - 1, stage == 0 ? shape.stages - 1 : stage - 1, edges);
      }
      if (turn > 0 && next < turns) edges = load_edges(next);
      at.advance(shape.stages);
    }
    if (lane == 0) ptx::bulk_wait<0>();
    ptx::cluster_sync();
    return;
  }

  const Columns columns{thread * unit, length};
  float gamma[kept_columns];
  float dgamma[kept_columns] = {};
  float dbeta[kept_columns] = {};
#pragma unroll
  for (int e = 0; e < kept_columns; ++e) {
    const int column = columns.first + Columns::offset(e / unit) + e % unit;
    gamma[e] = column < length ? gamma_at(call, begin + column) : 0.0F;
  }
  const auto scale_at = [&](int turn) {
    const std::int64_t row = cluster + smaller(turn, turns - 1) * step;
    return given_scale(call, row * strides[NormBackward::row_mean][0],
                       row * strides[NormBackward::row_rstd][0]);
  };

  Scale<float> next = scale_at(0);
  Scale<float> scale{};
  RingPosition loaded;    // of the row that is summed
  RingPosition finished;  // of the row before it, which is finished
  RingPosition sending;
  RingPosition receiving;
  for (int turn = 0; turn <= turns; ++turn) {
    const Scale<float> previous = scale;
    scale = next;
    if (turn < turns) {
      next = scale_at(turn + 1);
      if (thread == 0 && blocks > 1) {
        ptx::mbarrier_arrive_expect(
            scratch.sent[sending.slot],
            static_cast<unsigned>(blocks * math_warps) * static_cast<unsigned>(sizeof(MeansPacket)));
      }
      constexpr int width = vector_width<T>;
      const T* const x = stage_of(loaded.slot, 0) +
                         lead_of<width>(row_of(call.x, NormBackward::row_x, turn));
      const T* const dy = stage_of(loaded.slot, 1) +
                          lead_of<width>(row_of(call.dy, NormBackward::row_dy, turn));
      ptx::mbarrier_wait(scratch.full[loaded.slot], loaded.parity);
      Means<float> means{};
      columns.for_groups([&]<bool all>(int from, std::bool_constant<all>) {
        Pack<T, unit> of_x[Columns::together];
        Pack<T, unit> of_dy[Columns::together];
#pragma unroll
        for (int k = 0; k < Columns::together; ++k) {
          of_x[k] = columns.template load<all>(x, from + k);
          of_dy[k] = columns.template load<all>(dy, from + k);
        }
#pragma unroll
        for (int k = 0; k < Columns::together; ++k) {
          const Pack<float, unit> wide_x = widen_columns(of_x[k]);
          const Pack<float, unit> wide_dy = widen_columns(of_dy[k]);
#pragma unroll
          for (int i = 0; i < unit; ++i) {
            const int e = (from + k) * unit + i;
            float z = (wide_x[i] - scale.center) * scale.rstd;
            if (!all && !columns.has(from + k)) z = 0;
            const float g = wide_dy[i] * gamma[e];
            means.g += g;
            means.gz += g * z;
            dgamma[e] += wide_dy[i] * z;
            dbeta[e] += wide_dy[i];
          }
        }
      });
      const MeansPacket of_warp{lanes_reduce(means, AddMeans{}, warp_size), {}};
      if (blocks == 1) {  // st.async is an illegal instruction without a cluster
        if (lane == 0) {
          scratch.means[sending.slot][warp] = of_warp;
          ptx::mbarrier_arrive(scratch.sent[sending.slot]);
        }
      } else if (lane < blocks) {
        ptx::cluster_send(scratch.means[sending.slot][rank * math_warps + warp], of_warp,
                          scratch.sent[sending.slot], lane);
      }
      sending.advance(means_buffers);
      loaded.advance(shape.stages);
    }
    if (turn == 0) continue;

    ptx::mbarrier_wait_cluster(scratch.sent[receiving.slot], receiving.parity);
    Means<float> means{};
    for (int i = lane; i < blocks * math_warps; i += warp_size) {
      means = AddMeans{}(means, scratch.means[receiving.slot][i].means);
    }
    means = lanes_reduce(means, AddMeans{}, warp_size);
    const float all_g = call.layer ? means.g * call.factors.part * previous.rstd : 0.0F;
    const float all_gz = means.gz * call.factors.part * previous.rstd;
    constexpr int width = vector_width<T>;
    T* const x = stage_of(finished.slot, 0) +
                 lead_of<width>(row_of(call.x, NormBackward::row_x, turn - 1));
    const T* const dy = stage_of(finished.slot, 1) +
                        lead_of<width>(row_of(call.dy, NormBackward::row_dy, turn - 1));
    T* const dx = shape.bulk_dx ? x : row_of(call.dx, NormBackward::row_dx, turn - 1);
    columns.for_groups([&]<bool all>(int from, std::bool_constant<all>) {
      Pack<T, unit> of_x[Columns::together];
      Pack<T, unit> of_dy[Columns::together];
#pragma unroll
      for (int k = 0; k < Columns::together; ++k) {
        of_x[k] = columns.template load<all>(x, from + k);
        of_dy[k] = columns.template load<all>(dy, from + k);
      }
#pragma unroll
      for (int k = 0; k < Columns::together; ++k) {
        const Pack<float, unit> wide_x = widen_columns(of_x[k]);
        const Pack<float, unit> wide_dy = widen_columns(of_dy[k]);
        Pack<float, unit> of_dx;
#pragma unroll
        for (int i = 0; i < unit; ++i) {
          const float z = (wide_x[i] - previous.center) * previous.rstd;
          const float weight = gamma[(from + k) * unit + i];
          of_dx[i] = wide_dy[i] * previous.rstd * weight - all_g - z * all_gz;
        }
        if (all || columns.has(from + k)) {
          store_wide(dx + columns.first + Columns::offset(from + k), convert<T>(of_dx));
        }
      }
    });
    ptx::fence_async_proxy();
    __syncwarp();
    if (lane == 0) ptx::mbarrier_arrive(scratch.done[finished.slot]);
    receiving.advance(means_buffers);
    finished.advance(shape.stages);
  }

  if (call.sums != nullptr) {
    float* const sums = call.sums + std::int64_t{cluster} * 2 * call.n + begin + columns.first;
#pragma unroll
    for (int k = 0; k < Columns::accesses; ++k) {
      if (!columns.has(k)) continue;
      Pack<float, unit> of_gamma;
      Pack<float, unit> of_beta;
#pragma unroll
      for (int i = 0; i < unit; ++i) {
        of_gamma[i] = dgamma[k * unit + i];
        of_beta[i] = dbeta[k * unit + i];
      }
      store_wide(sums + Columns::offset(k), of_gamma);
      store_wide(sums + call.n + Columns::offset(k), of_beta);
    }
  }
  ptx::cluster_sync();  // the other blocks' packets have arrived
}

/// Launch geometry: blocks per cluster, and ring.
struct ClusterRowsPlan {
  int blocks;
  ClusterRowsShape shape;
  std::size_t shared_bytes;
};

template <class T>
ClusterRowsPlan cluster_rows_plan(const NormBackward::Args& args, const Context& context) {
  const NormBackward::Lines lines = NormBackward::lines_of(args);
  const std::int64_t n = lines.columns.size();
  const std::int64_t rows = lines.rows.size();
  ClusterRowsPlan plan{};
  plan.blocks = 1;
  while (plan.blocks < max_cluster && plan.blocks * longest_part<T> < n) plan.blocks *= 2;
  // The sums of a cluster are as many bytes as one to three of its rows: larger clusters have
  // fewer sums. Blocks keep at least four columns per thread.
  while (wants_sums(args) && plan.blocks < max_cluster &&
         rows * plan.blocks < std::int64_t{16} * context.info().sms &&
         n >= std::int64_t{8} * math_threads * plan.blocks) {
    plan.blocks *= 2;
  }
  plan.shape.part =
      static_cast<int>(round_up(ceil_div(n, std::int64_t{plan.blocks}), std::int64_t{8}));
  plan.shape.row_bytes =
      static_cast<int>(cut_row_bytes(plan.shape.part, static_cast<std::int64_t>(sizeof(T))));
  plan.shape.bulk_dx = offsets_agree(lines.rows, NormBackward::row_dx, args.dx.data, sizeof(T),
                                     args.x.data, sizeof(T), vector_width<T>);
  const std::size_t stage = 2 * static_cast<std::size_t>(plan.shape.row_bytes);
  const std::size_t most = context.info().shared_per_block - sizeof(ClusterRowsShared);
  plan.shape.stages =
      static_cast<int>(clamped<std::size_t>(most / stage, min_ring_stages, max_ring_stages));
  plan.shared_bytes =
      sizeof(ClusterRowsShared) + stage * static_cast<std::size_t>(plan.shape.stages);
  return plan;
}

/// Calls f<T>() for the element type of x.
template <class F>
auto with_cluster_type(const NormBackward::Args& args, F&& f) {
  return visit<float, f16, bf16>(args.x.dtype, std::forward<F>(f));
}

Support supports(const NormBackward::Args& args, const Context& context) {
  if (context.info().compute_capability < 90) {
    return unsupported("bulk copies and clusters need compute capability 9.0");
  }
  if (args.x.dtype == DType::f64) return unsupported("f32, f16 and bf16");
  if (args.rstd.data == nullptr) return unsupported("mean and rstd must be given");
  const NormBackward::Lines lines = NormBackward::lines_of(args);
  if (!lines.contiguous_columns()) return unsupported("rows and weights must be contiguous");
  const std::int64_t rows = lines.rows.size();
  if (lines.rows.rank > 1 || rows < 1 || rows > 0x3fffffff) {
    return unsupported("1 to 2^30 rows at equal distances");
  }
  const std::int64_t n = lines.columns.size();
  const std::int64_t longest =
      with_cluster_type(args, [&]<class T>() { return max_cluster * longest_part<T>; });
  return n >= shortest_cluster_row && n <= longest
             ? supported
             : unsupported("rows of 2049 to 49152 elements; of 16 bits 65536");
}

/// Returns the adjacent elements per access: all rows begin and end at multiples of it.
template <class T>
int cluster_unit(const NormBackward::Args& args) {
  const NormBackward::Lines lines = NormBackward::lines_of(args);
  int unit = 4;
  const auto regular = [&](NormBackward::RowTensor tensor, const ConstTensorRef& of) {
    return rows_are_regular(lines.rows, lines.columns.size(), tensor, of.data, unit,
                            unit * static_cast<int>(sizeof(T)));
  };
  while (unit > 1 && !(regular(NormBackward::row_x, args.x) &&
                       regular(NormBackward::row_dy, args.dy) &&
                       regular(NormBackward::row_dx, args.dx))) {
    unit /= 2;
  }
  return unit;
}

Work work(const NormBackward::Args& args, const Context& context) {
  const std::int64_t rows = NormBackward::lines_of(args).rows.size();
  const ClusterRowsPlan plan = with_cluster_type(
      args, [&]<class T>() { return cluster_rows_plan<T>(args, context); });
  const std::int64_t clusters =
      smaller(rows, larger<std::int64_t>(context.info().sms / plan.blocks, 1));
  const std::int64_t turns = ceil_div(rows, clusters);
  return with_finish(args,
                     {.blocks = plan.blocks * clusters,
                      .resident = 1,
                      .rounds = turns,
                      .steps = turns * plan.shape.part,
                      .path = type_path(args.x.dtype)},
                     clusters);
}

void run(const NormBackward::Args& args, Context& context) {
  with_cluster_type(args, [&]<class T>() {
    NormGradientArguments<T> call = call_of<T>(args);
    const ClusterRowsPlan plan = cluster_rows_plan<T>(args, context);
    const int unit = cluster_unit<T>(args);
    auto* const kernel = unit == 4   ? norm_backward_cluster_rows<T, 4>
                         : unit == 2 ? norm_backward_cluster_rows<T, 2>
                                     : norm_backward_cluster_rows<T, 1>;
    call.chunks = smaller(call.rows, resident_clusters(context, kernel, cluster_threads,
                                                       plan.shared_bytes, plan.blocks));
    if (wants_sums(args)) {
      call.sums = static_cast<float*>(
          context.workspace(static_cast<std::size_t>(2 * call.chunks * call.n) * sizeof(float)));
    }
    launch(context,
           {.grid = plan.blocks * call.chunks,
            .block = cluster_threads,
            .shared_bytes = plan.shared_bytes,
            .cluster = plan.blocks,
            .dependent = can_depend(context)},
           kernel, call, plan.shape);
    if (call.sums != nullptr) launch_finish(context, call, can_depend(context));
  });
}

const Rung<NormBackward> self{{.name = "cluster_rows",
                               .after = "ring",
                               .backend = device_backend,
                               .supports = supports,
                               .passes = {.loads = 1, .stores = 1},
                               .work = work,
                               .run = run}};

}  // namespace
}  // namespace rung

// SPDX-License-Identifier: Apache-2.0
// norm_backward / cluster rows
//
// Idea     Persistent clusters of 1, 2, 4 or 8 blocks split long rows. Warps are specialized: one
//          moves each block's parts of x, dy and dx through a shared-memory ring, one combines sums
//          across warps and blocks, fourteen compute. They sum row r + 1 before they finish row r,
//          while its sums are combined.
// Changes  against ring: gamma stays in registers, beside the column sums; no barrier of the block
//          per row; one set of column sums per cluster; zeros beside a part of a row replace the
//          single elements outside its packs. Against split_rows: x and dy are read once.
// Cost     Compulsory traffic, and 2 n sums per cluster; one 16-byte packet from every block to
//          every other per row. Shared memory is read four times and written once per element.
// Limits   Compute capability 9.0; given statistics; contiguous rows of 2049 to 49145 elements of
//          f32, 65529 of f16 and bf16, at equal distances, at the same offset from a 16-byte pack
//          in x, dy and dx.
// Source   norm's ragged_rows.
#include "rung/core/bounds.hpp"
#include "rung/device/ptx/cluster.hpp"
#include "rung/device/ptx/cluster_send.hpp"
#include "rung/device/resident.hpp"
#include "rung/device/row/cluster_all_reduce.hpp"
#include "rung/device/row/packed_words.hpp"
#include "rung/device/row/row_cut.hpp"
#include "rung/ops/norm_backward/cuda/detail/norm_backward.hpp"

namespace rung {
namespace {

using namespace norm_backward_cuda;

constexpr int access = 4;         // elements: 16 bytes of f32, 8 of 16-bit types
constexpr int kept_accesses = 5;  // per thread: gamma and two sums take 60 registers
constexpr int math_warps = 14;    // and two warps more: 128 registers per thread
constexpr int math_threads = math_warps * warp_size;
constexpr int producer_warp = math_warps;
constexpr int combiner_warp = math_warps + 1;
constexpr int cluster_threads = math_threads + 2 * warp_size;
constexpr int max_cluster = 8;  // blocks: the portable maximum
constexpr int max_ring_stages = 8;
constexpr int min_ring_stages = 4;     // two rows are computed, one is stored, one arrives
constexpr int part_bytes = 24 << 10;   // stages of x and dy are twice as large
constexpr int longest_16_bits = 8192;  // elements of a part that threads keep, rounded down
constexpr int part_step = 8;           // elements: parts begin at the same offset from a pack
constexpr std::int64_t shortest_cluster_row = 2049;
static_assert(longest_16_bits <= access * kept_accesses * math_threads);

/// Elements of a row per block, at most: those that threads keep, and four stages of which fit.
template <class T>
constexpr std::int64_t longest_part = sizeof(T) == 2 ? longest_16_bits : part_bytes / 4;
/// Elements per row, at most: a pack of the first part may contain one element only.
template <class T>
constexpr std::int64_t longest_cluster_row = max_cluster* longest_part<T> - (part_step - 1);

struct alignas(8) RowScale {
  float center;
  float rstd;
};

/// Sums of a block's part of a row, as sent to the cluster.
struct alignas(16) MeansPacket {
  Means<float> means;
  unsigned unused[2];
};

/// Exchange buffers and barriers; the ring follows, aligned to 128 bytes. Buffers alternate between
/// rows: a warp sums row r + 2 only after it has finished row r.
struct alignas(128) ClusterRowsShared {
  MeansPacket of_block[2][max_cluster];
  Means<float> of_warp[2][warp_size];
  Means<float> of_row[2];
  ptx::MemoryBarrier warps[2];   // of_warp: one arrival per warp
  ptx::MemoryBarrier blocks[2];  // of_block
  ptx::MemoryBarrier row[2];     // of_row
  RowScale scale[max_ring_stages];
  ptx::MemoryBarrier full[max_ring_stages];  // x, dy, and the edges of both with the scale
  ptx::MemoryBarrier done[max_ring_stages];  // one arrival per warp
};

/// Partition of rows into blocks and stages.
struct ClusterRowsShape {
  int part;  // elements of a row per block, from a 16-byte pack on
  int stages;
  int row_bytes;  // of x or dy in a stage
};

/// Position in a ring: slot, and parity of its mbarrier's phase.
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

/// Head and tail of a block's part of a row, one element per lane, and the elements beside them in
/// their packs. In a stage these have dy = 0 and an x of the row, so that their terms are 0: with
/// another x, z might overflow. The cut is the same in all rows of a block.
template <class T>
struct PartEdges {
  RowCut<T> cut;
  int lane;
  struct Values {
    T x;
    T dy;
    T beside;
  };
  [[nodiscard]] __device__ __forceinline__ Values load(const T* x, const T* dy) const {
    return {cut.load_edge(x, lane), cut.load_edge(dy, lane), x[0]};
  }
  __device__ __forceinline__ void write(T* x, T* dy, const Values& values) const {
    constexpr int width = vector_width<T>;
    const int end = cut.lead + cut.head + cut.middle + cut.tail;
    const int beside = lane < width ? lane : end + lane - width;
    if (lane < width ? lane < cut.lead : beside < round_up(end, width)) {
      x[beside] = values.beside;
      dy[beside] = zero<T>();
    }
    cut.write_edge(x, values.x, lane);
    cut.write_edge(dy, values.dy, lane);
  }
};

template <class T>
__device__ __forceinline__ Pack<float, access> widen_access(const Pack<T, access>& elements) {
  if constexpr (sizeof(T) == 2) {
    const auto words = __builtin_bit_cast(uint2, elements);
    const Pack<float, 2> lower = widen_pair<T>(words.x);
    const Pack<float, 2> upper = widen_pair<T>(words.y);
    return {lower[0], lower[1], upper[0], upper[1]};
  } else {
    return elements;
  }
}
/// A thread's accesses to a part: `access` adjacent elements each, math_threads * access apart.
struct ThreadAccesses {
  int first;
  int end;  // of the part

  [[nodiscard]] static __device__ __forceinline__ int offset(int k) {
    return k * math_threads * access;
  }
  [[nodiscard]] __device__ __forceinline__ bool has(int k) const { return first + offset(k) < end; }
  /// Calls f(k, x, dy) with the widened elements of each access to a part in a stage. The loads of
  /// a pair of accesses are issued before the first use.
  template <class T, class F>
  __device__ __forceinline__ void for_each(const T* x, const T* dy, F&& f) const {
#pragma unroll
    for (int k = 0; k < kept_accesses; k += 2) {
      if (k + 1 < kept_accesses && has(k + 1)) {
        load_and_call<2>(k, x, dy, f);
      } else if (has(k)) {
        load_and_call<1>(k, x, dy, f);
      }
    }
  }

 private:
  template <int count, class T, class F>
  __device__ __forceinline__ void load_and_call(int from, const T* x, const T* dy, F& f) const {
    Pack<T, access> of_x[count];
    Pack<T, access> of_dy[count];
#pragma unroll
    for (int k = 0; k < count; ++k) {
      of_x[k] = load_wide<access>(x + first + offset(from + k));
      of_dy[k] = load_wide<access>(dy + first + offset(from + k));
    }
#pragma unroll
    for (int k = 0; k < count; ++k) f(from + k, widen_access(of_x[k]), widen_access(of_dy[k]));
  }
};

/// Rounds to T, two 16-bit elements per instruction.
template <class T>
__device__ __forceinline__ Pack<T, access> narrow_access(const Pack<float, access>& values) {
  if constexpr (sizeof(T) == 2) {
    const PackedWords words =
        narrow<T>(Pack<float, 2 * access>{values[0], values[1], values[2], values[3]});
    using Narrow = Pack<T, access>;
    return __builtin_bit_cast(Narrow, uint2{words[0], words[1]});
  } else {
    return values;
  }
}

/// Returns the sums over a warp in every lane. After the first step, each half-warp reduces one.
__device__ __forceinline__ Means<float> sum_of_warp(const Means<float>& means) {
  const bool upper = lane_of_thread() >= 16;
  float sum = upper ? means.gz : means.g;
  sum += shuffle_xor(upper ? means.g : means.gz, 16);
#pragma unroll
  for (int distance = 8; distance > 0; distance /= 2) sum += shuffle_xor(sum, distance);
  return {shuffle(sum, 0), shuffle(sum, 16)};
}

/// Computes long rows. All rows of a cluster have the same offset from a 16-byte pack.
template <class T>
__global__ void __launch_bounds__(cluster_threads, 1)
    norm_backward_cluster_rows(const __grid_constant__ NormGradientArguments<T> call,
                               ClusterRowsShape shape) {
  start_dependent();
  constexpr int width = vector_width<T>;
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
  const auto& strides = call.lines.rows.strides;                            // rows have one axis
  const auto row_of = [&](auto* tensor, NormBackward::RowTensor which, int turn) {
    return tensor + std::int64_t{cluster + turn * step} * strides[which][0];
  };
  const ClusterPart part(call.n, lead_of<width>(row_of(call.x, NormBackward::row_x, 0)),
                         shape.part / width, width);
  const auto stage_of = [&](int stage, int tensor) {
    return reinterpret_cast<T*>(ring + (2 * stage + tensor) * shape.row_bytes);
  };

  const auto x_of = [&](int turn) {
    return row_of(call.x, NormBackward::row_x, turn) + part.first;
  };
  const auto dy_of = [&](int turn) {
    return row_of(call.dy, NormBackward::row_dy, turn) + part.first;
  };
  const RowCut<T> cut(x_of(0), part.length);
  const auto load_middle = [&](int turn, int stage) {
    cut.load_middle(stage_of(stage, 0), x_of(turn), scratch.full[stage]);
    cut.load_middle(stage_of(stage, 1), dy_of(turn), scratch.full[stage]);
  };
  const int filled = smaller(shape.stages, turns);

  if (thread == producer_warp * warp_size) {
    for (ptx::MemoryBarrier& warps : scratch.warps) ptx::mbarrier_init(warps, math_warps);
    for (ptx::MemoryBarrier& others : scratch.blocks) ptx::mbarrier_init(others, 1);
    for (ptx::MemoryBarrier& row : scratch.row) ptx::mbarrier_init(row, 1);
    for (ptx::MemoryBarrier& full : scratch.full) ptx::mbarrier_init(full, 3);
    for (ptx::MemoryBarrier& done : scratch.done) ptx::mbarrier_init(done, math_warps);
    ptx::mbarrier_fence_init();
    for (int stage = 0; stage < filled; ++stage) load_middle(stage, stage);
  }
  ptx::cluster_sync();

  if (warp == producer_warp) {
    // Stores each row and refills the previous row's stage.
    const auto scale_of = [&](int turn) {
      const std::int64_t row = cluster + turn * step;
      return given_scale(call, row * strides[NormBackward::row_mean][0],
                         row * strides[NormBackward::row_rstd][0]);
    };
    const PartEdges<T> edges{cut, lane};
    struct Small {  // what is loaded through registers
      typename PartEdges<T>::Values edges;
      Scale<float> scale;
    };
    const auto load_small = [&](int turn) {
      return Small{edges.load(x_of(turn), dy_of(turn)), scale_of(turn)};
    };
    const auto write_small = [&](int stage, const Small& small) {
      edges.write(stage_of(stage, 0), stage_of(stage, 1), small.edges);
      if (lane == 0) scratch.scale[stage] = {small.scale.center, small.scale.rstd};
      __syncwarp();
      if (lane == 0) ptx::mbarrier_arrive(scratch.full[stage]);
    };
    Small first[max_ring_stages];
#pragma unroll
    for (int stage = 0; stage < max_ring_stages; ++stage) {
      if (stage < filled) first[stage] = load_small(stage);
    }
#pragma unroll
    for (int stage = 0; stage < max_ring_stages; ++stage) {
      if (stage < filled) write_small(stage, first[stage]);
    }

    const auto before = [&](int stage) { return stage == 0 ? shape.stages - 1 : stage - 1; };
    RingPosition at;
    Small waiting{};  // of the row that was loaded last
    for (int turn = 0; turn < turns; ++turn) {
      const int next = turn - 1 + shape.stages;
      const int stage = before(at.slot);  // of row turn - 1
      if (turn > 1 && next - 1 < turns) write_small(before(stage), waiting);
      ptx::mbarrier_wait(scratch.done[at.slot], at.parity);
      T* const dx = row_of(call.dx, NormBackward::row_dx, turn) + part.first;
      if (lane == 0) {
        cut.store_middle(dx, stage_of(at.slot, 0));
        ptx::bulk_commit();
      }
      cut.store_edge(dx, stage_of(at.slot, 0), lane);
      if (turn > 0 && next < turns) {
        if (lane == 0) {
          ptx::bulk_wait_read<1>();
          load_middle(next, stage);
        }
        waiting = load_small(next);
      }
      at.advance(shape.stages);
    }
    if (lane == 0) ptx::bulk_wait<0>();
  } else if (warp == combiner_warp) {
    // Combines the sums of warps, sends the block's to the cluster, and combines those.
    RingPosition at;
    for (int turn = 0; turn < turns; ++turn) {
      ptx::mbarrier_wait(scratch.warps[at.slot], at.parity);
      Means<float> means{};
      if (lane < math_warps) means = scratch.of_warp[at.slot][lane];
      means = lanes_reduce(means, AddMeans{}, warp_size);
      if (blocks > 1) {  // st.async is an illegal instruction without a cluster
        if (lane == 0) {
          ptx::mbarrier_arrive_expect(
              scratch.blocks[at.slot],
              static_cast<unsigned>(blocks) * static_cast<unsigned>(sizeof(MeansPacket)));
        }
        __syncwarp();
        if (lane < blocks) {
          ptx::cluster_send(scratch.of_block[at.slot][rank], MeansPacket{means, {}},
                            scratch.blocks[at.slot], lane);
        }
        ptx::mbarrier_wait_cluster(scratch.blocks[at.slot], at.parity);
        means = {};
        if (lane < blocks) means = scratch.of_block[at.slot][lane].means;
        means = lanes_reduce(means, AddMeans{}, warp_size);
      }
      if (lane == 0) {
        const float mean_g = call.layer ? means.g * call.factors.part : 0.0F;
        scratch.of_row[at.slot] = {mean_g, means.gz * call.factors.part};
        ptx::mbarrier_arrive(scratch.row[at.slot]);
      }
      at.advance(2);
    }
  }

  // Gamma is zero where the row has no element, so that elements beside the part add nothing.
  const int first = warp < math_warps ? thread * access : shape.part;
  const ThreadAccesses accesses{first, part.lead + part.length};
  float gamma[kept_accesses][access];
  Pack<float, access> dgamma[kept_accesses] = {};
  Pack<float, access> dbeta[kept_accesses] = {};
#pragma unroll
  for (int k = 0; k < kept_accesses; ++k) {
#pragma unroll
    for (int i = 0; i < access; ++i) {
      const int column = accesses.first + ThreadAccesses::offset(k) + i - part.lead;
      const bool exists = column >= 0 && column < part.length;
      gamma[k][i] = exists ? gamma_at(call, part.first + column) : 0.0F;
    }
  }
  RowScale scale{};
  RingPosition loaded;  // stage of the row that is summed
  RingPosition summed;  // buffers of its sums
  for (int turn = 0; warp < math_warps && turn <= turns; ++turn) {
    const RowScale previous = scale;  // of the row that is finished
    const int finished = loaded.slot == 0 ? shape.stages - 1 : loaded.slot - 1;
    if (turn < turns) {
      ptx::mbarrier_wait(scratch.full[loaded.slot], loaded.parity);
      scale = scratch.scale[loaded.slot];
      Means<float> means{};
      accesses.for_each(stage_of(loaded.slot, 0), stage_of(loaded.slot, 1),
                        [&](int k, const Pack<float, access>& x, const Pack<float, access>& dy) {
#pragma unroll
                          for (int i = 0; i < access; ++i) {
                            const float z = (x[i] - scale.center) * scale.rstd;
                            const float g = dy[i] * gamma[k][i];
                            means.g += g;
                            means.gz += g * z;
                            dgamma[k][i] += dy[i] * z;
                            dbeta[k][i] += dy[i];
                          }
                        });
      means = sum_of_warp(means);
      if (lane == 0) {
        scratch.of_warp[summed.slot][warp] = means;
        ptx::mbarrier_arrive(scratch.warps[summed.slot]);
      }
      loaded.advance(shape.stages);
    }
    summed.advance(2);
    if (turn == 0) continue;

    // The buffers of row turn - 1 are those of row turn + 1, one phase before.
    ptx::mbarrier_wait(scratch.row[summed.slot], summed.parity ^ 1);
    const float all_g = scratch.of_row[summed.slot].g * previous.rstd;
    const float all_gz = scratch.of_row[summed.slot].gz * previous.rstd;
    T* const stage = stage_of(finished, 0);  // x, and then dx
    accesses.for_each(stage, stage_of(finished, 1),
                      [&](int k, const Pack<float, access>& x, const Pack<float, access>& dy) {
                        Pack<float, access> dx;
#pragma unroll
                        for (int i = 0; i < access; ++i) {
                          const float z = (x[i] - previous.center) * previous.rstd;
                          dx[i] = dy[i] * previous.rstd * gamma[k][i] - all_g - z * all_gz;
                        }
                        store_wide(stage + accesses.first + ThreadAccesses::offset(k),
                                   narrow_access<T>(dx));
                      });
    ptx::fence_async_proxy();
    __syncwarp();
    if (lane == 0) ptx::mbarrier_arrive(scratch.done[finished]);
  }

  __syncthreads();  // all rows have left the ring: it now holds the sums
  if (call.sums != nullptr) {
    auto* const sums = reinterpret_cast<float*>(ring);
#pragma unroll
    for (int k = 0; k < kept_accesses; ++k) {
      if (!accesses.has(k)) continue;
      float* const to = sums + accesses.first + ThreadAccesses::offset(k);
      store_wide(to, dgamma[k]);
      store_wide(to + shape.part, dbeta[k]);
    }
    __syncthreads();
    float* const of_cluster = call.sums + std::int64_t{cluster} * 2 * call.n + part.first;
    for (int i = thread; i < part.length; i += cluster_threads) {
      of_cluster[i] = sums[part.lead + i];
      of_cluster[call.n + i] = sums[shape.part + part.lead + i];
    }
  }
  ptx::cluster_sync();  // no block ends before all packets have arrived
}

/// Launch geometry: blocks per cluster, and ring.
struct ClusterRowsPlan {
  int blocks;
  int period;  // rows between rows at the same offset from a pack; a power of two
  ClusterRowsShape shape;
  std::size_t shared_bytes;
};

template <class T>
ClusterRowsPlan cluster_rows_plan(const NormBackward::Args& args, const Context& context) {
  const NormBackward::Lines lines = NormBackward::lines_of(args);
  const std::int64_t n = lines.columns.size() + part_step - 1;
  const std::int64_t rows = lines.rows.size();
  ClusterRowsPlan plan{};
  plan.blocks = 1;
  while (plan.blocks * longest_part<T> < n) plan.blocks *= 2;
  // The sums of a cluster are as many bytes as one to three of its rows: larger clusters have
  // fewer sums. Blocks keep at least two accesses per thread.
  while (wants_sums(args) && plan.blocks < max_cluster &&
         rows * plan.blocks < std::int64_t{16} * context.info().sms &&
         n >= std::int64_t{4 * access} * math_threads * plan.blocks) {
    plan.blocks *= 2;
  }
  plan.period = 1;
  while (plan.period * lines.rows.strides[NormBackward::row_x][0] % vector_width<T> != 0) {
    plan.period *= 2;
  }
  const std::int64_t part =
      round_up(ceil_div(n, std::int64_t{plan.blocks}), std::int64_t{part_step});
  plan.shape.part = static_cast<int>(part);
  plan.shape.row_bytes =
      static_cast<int>(round_up(part * static_cast<std::int64_t>(sizeof(T)), std::int64_t{128}));
  const std::size_t stage = 2 * static_cast<std::size_t>(plan.shape.row_bytes);
  const std::size_t most = context.info().shared_per_block - sizeof(ClusterRowsShared);
  plan.shape.stages =
      static_cast<int>(clamped<std::size_t>(most / stage, min_ring_stages, max_ring_stages));
  plan.shared_bytes =
      sizeof(ClusterRowsShared) + stage * static_cast<std::size_t>(plan.shape.stages);
  return plan;
}

/// Returns the number of clusters: a multiple of the period, or one per row.
std::int64_t clusters_of(const ClusterRowsPlan& plan, std::int64_t rows, std::int64_t resident) {
  const std::int64_t period = plan.period;
  return smaller(rows, larger(resident / period, std::int64_t{1}) * period);
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
      with_cluster_type(args, [&]<class T>() { return longest_cluster_row<T>; });
  if (n < shortest_cluster_row || n > longest) {
    return unsupported("rows of 2049 to 49145 elements; of 16 bits 65529");
  }
  return rows_agree(args) ? supported
                          : unsupported(
                                "rows of x, dy and dx must have the same offset from 16 "
                                "bytes");
}

Work work(const NormBackward::Args& args, const Context& context) {
  const std::int64_t rows = NormBackward::lines_of(args).rows.size();
  const ClusterRowsPlan plan =
      with_cluster_type(args, [&]<class T>() { return cluster_rows_plan<T>(args, context); });
  const std::int64_t clusters = clusters_of(plan, rows, context.info().sms / plan.blocks);
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
    call.chunks = clusters_of(plan, call.rows,
                              resident_clusters(context, norm_backward_cluster_rows<T>,
                                                cluster_threads, plan.shared_bytes, plan.blocks));
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
           norm_backward_cluster_rows<T>, call, plan.shape);
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

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
//          memory is read twice and written once, 4 bytes per lane, or 2 if rows of 16-bit elements
//          begin at odd ones.
// Limits   Compute capability 9.0; contiguous rows of 1025 to 147456 elements of f32, f16 or bf16
//          with partial packs, without a residual. If x and y are misaligned by different amounts,
//          y is stored by elements.
#include "rung/core/bounds.hpp"
#include "rung/device/dependent.hpp"
#include "rung/device/ptx/cluster.hpp"
#include "rung/device/ptx/cluster_send.hpp"
#include "rung/device/resident.hpp"
#include "rung/device/row/packed_words.hpp"
#include "rung/device/row/row_cut.hpp"
#include "rung/ops/norm/shared/cuda/parts.hpp"

namespace rung {
namespace {

using namespace norm_cuda;

/// Elements per thread: gamma and beta take 72 registers. `packed`: they are 16-bit elements, two
/// per register.
template <bool packed>
constexpr int ragged_elements = packed ? 72 : 36;
constexpr int ragged_threads = 512;  // 128 registers each
constexpr int ragged_blocks = 8;     // per cluster: the portable maximum
constexpr int most_stages = 6;
constexpr std::int64_t shortest_ragged_row = 1025;
constexpr std::int64_t longest_ragged_row =
    std::int64_t{ragged_blocks} * ragged_threads * ragged_elements<false>;
constexpr int together = 6;  // accesses of a thread whose loads are issued before the first use

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

/// Partial-row view of a thread: it owns elements `mine + k * warp_size * unit + i` of the block's
/// part, 0 <= i < unit.
template <int unit>
struct RaggedColumns {
  int mine;
  int left;  // elements of the part from `mine` on

  [[nodiscard]] static __device__ __forceinline__ int offset(int k) { return k * warp_size * unit; }
  [[nodiscard]] __device__ __forceinline__ bool has(int k) const { return offset(k) < left; }
  /// Loads access k of the row whose element `mine` is at `row`; zeros if the row has no such
  /// elements. Without a branch around the arithmetic that follows, several loads are in flight.
  template <bool all, class T>
  [[nodiscard]] __device__ __forceinline__ Pack<T, unit> load(const T* row, int k) const {
    Pack<T, unit> s{};
    if (all || has(k)) s = load_wide<unit>(row + offset(k));
    return s;
  }
};

/// A thread's elements of gamma or beta, in the order of its accesses.
template <class T, int unit, bool packed>
struct RaggedWeights {
  static constexpr int elements = ragged_elements<packed>;
  std::conditional_t<packed, unsigned, float> at[packed ? elements / 2 : elements];

  /// Loads the weights of the thread's columns, the first of which is `first`. Columns past the row
  /// get those of its last elements. No load waits for another.
  __device__ __forceinline__ void load(const NormArguments<T>& call, const void* weights, int first,
                                       float otherwise) {
    const int last = static_cast<int>(call.n) - unit;
    const auto column = [&](int e) {
      return smaller(first + RaggedColumns<unit>::offset(e / unit), last) + e % unit;
    };
    if constexpr (packed) {
      const auto word_of = [](T lower, T upper) {
        return unsigned{lower.bits} | unsigned{upper.bits} << 16;
      };
      const T* const from = static_cast<const T*>(weights);
      const bool in_words = unit == 2 && is_wide_aligned<T, 2>(from);
#pragma unroll
      for (unsigned& word : at) word = word_of(convert<T>(otherwise), convert<T>(otherwise));
      if (weights == nullptr) return;
      if (in_words) {
#pragma unroll
        for (int k = 0; k < elements / 2; ++k) {
          at[k] = __builtin_bit_cast(unsigned, load_wide<2>(from + column(2 * k)));
        }
        return;
      }
#pragma unroll
      for (int k = 0; k < elements / 2; ++k) {
        at[k] = word_of(from[column(2 * k)], from[column(2 * k + 1)]);
      }
    } else {
#pragma unroll
      for (float& weight : at) weight = otherwise;
      if (weights == nullptr) return;
      const auto* const from = static_cast<const float*>(weights);
#pragma unroll
      for (int e = 0; e < elements; ++e) at[e] = from[column(e)];
    }
  }
  /// Returns element e. `zero` is always 0, but unknown to the compiler, so that it does not hoist
  /// the widening out of the loop over rows.
  [[nodiscard]] __device__ __forceinline__ float get(int e, [[maybe_unused]] unsigned zero) const {
    if constexpr (packed) {
      return widen_half<T>(at[e / 2], e % 2 == 1, zero);
    } else {
      return at[e];
    }
  }
};

/// Widens the elements of one access.
template <class T, int unit>
__device__ __forceinline__ Pack<float, unit> widen_access(const Pack<T, unit>& s) {
  if constexpr (sizeof(T) == 2 && unit == 2) {
    return widen_pair<T>(__builtin_bit_cast(unsigned, s));
  } else {
    return convert<float>(s);
  }
}

/// Computes ragged rows. `unit`: adjacent elements per shared-memory access; 2 if every row begins
/// and ends at an even element. `packed`: gamma and beta are absent or of x's 16-bit type.
template <class T, int unit, bool packed>
__global__ void __launch_bounds__(ragged_threads, 1)
    norm_ragged_rows(const __grid_constant__ NormArguments<T> call, RaggedShape shape) {
  start_dependent();
  constexpr int elements = ragged_elements<packed>;
  constexpr int accesses = elements / unit;
  constexpr int of_warp = warp_size * elements;
  static_assert(accesses % together == 0);
  using Access = Pack<T, unit>;
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
  const int first_of_warp = warp * of_warp;
  const int mine = first_of_warp + lane * unit;  // this thread's first element of the part
  const RaggedColumns<unit> columns{mine, length - mine};
  const bool whole_warp = length - first_of_warp >= of_warp;
  // Calls f with true if all elements of the warp exist: it then needs no bounds checks.
  const auto with_bounds = [&](auto&& f) {
    whole_warp ? f(std::true_type{}) : f(std::false_type{});
  };

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
  RaggedWeights<T, unit, packed> gamma;
  RaggedWeights<T, unit, packed> beta;
  gamma.load(call, call.gamma, begin + mine, 1.0F);
  beta.load(call, call.beta, begin + mine, 0.0F);
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
    T* const in_stage = cut.at(stage_of(stage));
    T* const staged = in_stage + mine;
    ptx::mbarrier_wait(scratch.full[stage], parity);

    // Moments about the mean of the warp's first elements, at least a ninth of its part.
    WarpPart<float> part{0, static_cast<float>(clamped(length - first_of_warp, 0, of_warp)), {}};
    if (call.layer) {
      constexpr int per_thread = elements / 9;
      constexpr int sampled = per_thread * warp_size;  // the power of two by which sums are shrunk
      float sum = 0;
#pragma unroll
      for (int k = 0; k < per_thread / unit; ++k) {
        const auto s = widen_access(columns.template load<false>(staged, k));
#pragma unroll
        for (int i = 0; i < unit; ++i) sum += s[i] * (1.0F / sampled);
      }
      const int counted = clamped(length - first_of_warp, 0, sampled);
      const float share = counted > 0 ? float{sampled} / static_cast<float>(counted) : 0.0F;
      part.center = center_near(warp_reduce(sum, Plus{}) * share);
    }
    Moments<float> moments[2] = {};
    with_bounds([&]<bool all>(std::bool_constant<all>) {
#pragma unroll
      for (int from = 0; from < accesses; from += together) {
        Access s[together];
#pragma unroll
        for (int k = 0; k < together; ++k) {
          s[k] = columns.template load<all>(staged, from + k);
        }
#pragma unroll
        for (int k = 0; k < together; ++k) {
          const auto wide = widen_access(s[k]);
#pragma unroll
          for (int i = 0; i < unit; ++i) {
            const float distance = wide[i] - part.center;
            moments[(k + i) % 2].add(all || columns.has(from + k) ? distance : 0.0F,
                                     call.factors.shrink);
          }
        }
      }
    });
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

    const unsigned zero = call.zero & static_cast<unsigned>(row);
    with_bounds([&]<bool all>(std::bool_constant<all>) {
#pragma unroll
      for (int from = 0; from < accesses; from += together) {
        Access s[together];
#pragma unroll
        for (int k = 0; k < together; ++k) {
          s[k] = columns.template load<all>(staged, from + k);
        }
#pragma unroll
        for (int k = 0; k < together; ++k) {
          auto z = widen_access(s[k]);
#pragma unroll
          for (int i = 0; i < unit; ++i) {
            const int e = (from + k) * unit + i;
            z[i] = (z[i] - scale.center) * scale.rstd + scale.shift;
            z[i] = z[i] * gamma.get(e, zero) + beta.get(e, zero);
          }
          const Access results = convert<T>(z);
          if (all || columns.has(from + k)) store_wide(staged + columns.offset(from + k), results);
        }
      }
    });
    ptx::fence_async_proxy();
    __syncthreads();  // results are complete; x and the parts have been read

    T* const y = call.y + place<norm_lines::row_y>(call, row) + begin;
    if (lead_of<vector_width<T>>(y) == cut.lead) {
      if (thread == 0) cut.store_middle(y, stage_of(stage));
      if (warp == 0) cut.store_edge(y, stage_of(stage), lane);
    } else {
      // The next row's barrier precedes the reuse of this stage.
      for (int i = thread; i < length; i += static_cast<int>(blockDim.x)) y[i] = in_stage[i];
    }
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
/// Returns whether gamma and beta are kept packed, see norm_ragged_rows().
bool weights_are_packed(const Norm::Args& args) {
  const auto narrow = [&](const ConstTensorRef& weights) {
    return weights.data == nullptr || weights.dtype == args.x.dtype;
  };
  return size_of(args.x.dtype) == 2 && narrow(args.gamma) && narrow(args.beta);
}
int elements_per_thread(const Norm::Args& args) {
  return weights_are_packed(args) ? ragged_elements<true> : ragged_elements<false>;
}

RaggedPlan ragged_plan(const Norm::Args& args, const Context& context) {
  RaggedPlan plan;
  const std::int64_t columns = args.columns();
  const auto element = static_cast<std::int64_t>(size_of(args.x.dtype));
  const std::int64_t longest_part = std::int64_t{ragged_threads} * elements_per_thread(args);
  // 16-bit elements need twice the arithmetic per byte: use two blocks per SM, so that one computes
  // while the other waits for its cluster.
  const std::int64_t preferred = element == 2 ? longest_part / 2 : longest_part;
  while (plan.blocks < ragged_blocks && ceil_div(columns, plan.blocks) > preferred) {
    plan.blocks *= 2;
  }
  // All blocks but a row's last have full packs, so that pairs are not split.
  const std::int64_t part = smaller(round_up(ceil_div(columns, plan.blocks), 8), longest_part);
  plan.shape.part = static_cast<int>(part);
  plan.threads = static_cast<int>(
      round_up(ceil_div(part, std::int64_t{elements_per_thread(args)}), warp_size));
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
  if (args.columns() < shortest_ragged_row || args.columns() > longest_ragged_row) {
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
          .steps = rows * plan.threads * elements_per_thread(args) / ragged_elements<false>,
          .path = type_path(args.x.dtype)};
}

void run(const Norm::Args& args, Context& context) {
  const RaggedPlan plan = ragged_plan(args, context);
  const bool pairs = pairs_are_whole(args);
  const bool packed = weights_are_packed(args);
  const auto launch_rows_of = [&]<class T>(const NormArguments<T>& call) {
    void (*kernel)(NormArguments<T>, RaggedShape) = norm_ragged_rows<T, 1, false>;
    if constexpr (sizeof(T) == 2) {
      kernel = packed  ? pairs ? norm_ragged_rows<T, 2, true> : norm_ragged_rows<T, 1, true>
                : pairs ? norm_ragged_rows<T, 2, false>
                       : norm_ragged_rows<T, 1, false>;
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

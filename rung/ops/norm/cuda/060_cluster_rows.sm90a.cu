// SPDX-License-Identifier: Apache-2.0
// norm / cluster rows
//
// Idea     A row too long for an SM is spread over the 2 to 16 blocks of a persistent cluster, 64
//          KiB per block, or 32 KiB of 16-bit elements. gamma and beta stay in registers for all
//          rows; rows arrive in a shared-memory ring by asynchronous copies. Each warp sends its
//          16-byte partial result to every block, where an mbarrier counts it; meanwhile the block
//          reads the previous row from the ring again and finishes it.
// Changes  against registers_single_read: rows of up to 1 MiB (262144 f32 elements).
// Cost     Compulsory traffic; one message from every warp to every block of the cluster per row.
// Limits   Compute capability 9.0; contiguous rows. Weights of another type than x's, and
//          residuals, are read again for each row. Rows that begin or end within a pack: 2048
//          elements at least, gamma and beta of x's type, no residual, one offset per cluster.
// Source   W. Guo, T. Dao et al., QuACK, 2025.
#include "rung/core/bounds.hpp"
#include "rung/device/dependent.hpp"
#include "rung/device/load_anywhere.hpp"
#include "rung/device/ptx/async_copy.hpp"
#include "rung/device/ptx/cluster.hpp"
#include "rung/device/ptx/cluster_send.hpp"
#include "rung/device/ptx/mbarrier.hpp"
#include "rung/device/resident.hpp"
#include "rung/ops/norm/cuda/detail/usual.hpp"
#include "rung/ops/norm/shared/cuda/parts.hpp"

namespace rung {
namespace {

using namespace norm_cuda;

constexpr int max_blocks = 16;        // per cluster
constexpr int portable_blocks = 8;    // used for rows that fit
constexpr int cluster_threads = 512;  // at most; 128 registers each
constexpr int cluster_packs = 8;      // per thread: gamma and beta take half of its registers
/// Buffers for the parts of a row: a warp sends its part after it has finished the row two before,
/// so the parts of four rows may be in flight.
constexpr int turns = 4;

/// Exchange buffers; the ring follows, aligned to 128 bytes.
template <class W>
struct alignas(128) ClusterShared {
  WarpPart<W> parts[turns][max_blocks * cluster_threads / 32];
  ptx::MemoryBarrier sent[turns];
};

/// Layout of rows in the ring, and their partition into blocks.
struct RingShape {
  int stages;  // 2, 3 or 4
  int part;    // packs of a row per block
};

/// Specialization of a kernel: any arguments; rows of one axis without a residual, with gamma and
/// beta of x's type; such rows that begin or end within a pack; or ones that use all threads of a
/// cluster.
enum class ClusterKind { any, usual, shifted, whole };

/// This thread's packs of the rows. The thread copies into the ring only those packs that it reads
/// itself, so they need no barrier.
template <class T, ClusterKind kind>
struct ClusterRows {
  using W = Accumulator<T>;
  static constexpr int width = vector_width<T>;
  static constexpr bool plain = kind != ClusterKind::any;

  const NormArguments<T>& call;
  const RingShape& shape;
  Pack<T, width>* slots;  // this thread's first
  int head;               // elements before the packs
  int first;              // index of its first pack in a row
  int left;               // packs of the block from the first of this warp on
  PackedWords gamma[cluster_packs];
  PackedWords beta[cluster_packs];

  [[nodiscard]] __device__ __forceinline__ bool has(int p) const {
    return kind == ClusterKind::whole || p * 32 < left - lane_of_thread();
  }
  [[nodiscard]] __device__ __forceinline__ std::int64_t element(int p) const {
    return std::int64_t{first} * width + p * 32 * width + head;
  }
  [[nodiscard]] __device__ __forceinline__ Pack<T, width>& slot(int stage, int p) const {
    return slots[stage * shape.part + p * 32];
  }
  /// Loads all packs of a row from the ring; packs past the row become zeros.
  __device__ __forceinline__ void read(PackedWords (&s)[cluster_packs], int stage) const {
#pragma unroll
    for (int p = 0; p < cluster_packs; ++p) {
      if constexpr (kind != ClusterKind::whole) s[p] = PackedWords{};
      if (has(p)) s[p] = load_words(slot(stage, p).at);
    }
  }
  __device__ __forceinline__ void keep_weights() {
#pragma unroll
    for (int p = 0; p < cluster_packs; ++p) {
      if ((!plain && call.wide_weights) || !has(p)) continue;
      if constexpr (kind == ClusterKind::shifted) {
        const auto load = [&](const void* weights) {
          return words_of(load_anywhere<width>(static_cast<const T*>(weights), element(p), call.n));
        };
        gamma[p] = load(call.gamma);
        beta[p] = load(call.beta);
        continue;
      }
      if (plain || call.gamma != nullptr) {
        gamma[p] = load_words(static_cast<const T*>(call.gamma) + element(p));
      }
      if (plain || call.beta != nullptr) {
        beta[p] = load_words(static_cast<const T*>(call.beta) + element(p));
      }
    }
  }
  /// Returns a pack of gamma or beta, widened. `zero` is always 0, but unknown to the compiler, so
  /// that it does not hoist the widening out of the loop over rows.
  [[nodiscard]] __device__ __forceinline__ Pack<W, width> weights(const void* given,
                                                                  const PackedWords& kept, int p,
                                                                  unsigned zero,
                                                                  W otherwise) const {
    if (!plain && (given == nullptr || call.wide_weights)) {
      return wide_weights(call, given, element(p), otherwise);
    }
    return widen_again<W, T>(kept, zero);
  }
  /// Starts the copies of a row; always commits a group, even past the last row.
  __device__ __forceinline__ void fetch(int row, int stage) const {
    if (row < call.rows) {
      const T* const x = call.x + place<norm_lines::row_x, plain>(call, row);
#pragma unroll
      for (int p = 0; p < cluster_packs; ++p) {
        if (has(p)) ptx::async_copy<16>(&slot(stage, p), x + element(p));
      }
    }
    ptx::async_commit();
  }
  /// Replaces x by s = x + residual in the ring, and stores the sum if requested.
  __device__ __forceinline__ void add_residual(int row, int stage) const {
    const T* const residual = call.residual + place<norm_lines::row_residual>(call, row);
    T* const sum = call.sum != nullptr ? call.sum + place<norm_lines::row_sum>(call, row) : nullptr;
#pragma unroll
    for (int p = 0; p < cluster_packs; ++p) {
      if (!has(p)) continue;
      Pack<T, width> s = load_wide<width>(slot(stage, p).at);
      const Pack<T, width> r = load_wide<width>(residual + element(p));
#pragma unroll
      for (int i = 0; i < width; ++i) s[i] = add(s[i], r[i]);
      if (sum != nullptr) store_wide(sum + element(p), s);
      store_wide(slot(stage, p).at, s);
    }
  }
  __device__ __forceinline__ void write(int row, int stage, const Scale<W>& scale) const {
    const unsigned zero = call.zero & static_cast<unsigned>(row);
    T* const y = call.y + place<norm_lines::row_y, plain>(call, row);
    PackedWords s[cluster_packs];
    read(s, stage);
#pragma unroll
    for (int p = 0; p < cluster_packs; ++p) {
      if (!has(p)) continue;
      const Pack<W, width> g = weights(call.gamma, gamma[p], p, zero, W{1});
      const Pack<W, width> b = weights(call.beta, beta[p], p, zero, W{0});
      Pack<W, width> z = widen<W, T>(s[p]);
#pragma unroll
      for (int i = 0; i < width; ++i) {
        z[i] = ((z[i] - scale.center) * scale.rstd + scale.shift) * g[i] + b[i];
      }
      store_words(y + element(p), narrow<T>(z));
    }
  }
};

/// The element before or after a shifted row's packs that this thread of a cluster's first block
/// owns.
template <class T>
struct ClusterSingle {
  using W = Accumulator<T>;
  int count = 0;    // of the row; one per thread
  int column = -1;  // none
  T next = zero<T>();
  W gamma = 0;
  W beta = 0;

  ClusterSingle() = default;
  __device__ __forceinline__ ClusterSingle(const NormArguments<T>& call, int head, int row_packs) {
    const int in_packs = row_packs * vector_width<T>;
    const int thread = static_cast<int>(threadIdx.x);
    if (ptx::cluster_rank() > 0) return;
    count = static_cast<int>(call.n) - in_packs;
    if (thread >= count) return;
    column = thread < head ? thread : thread + in_packs;
    gamma = convert<W>(static_cast<const T*>(call.gamma)[column]);
    beta = convert<W>(static_cast<const T*>(call.beta)[column]);
  }
  [[nodiscard]] __device__ __forceinline__ bool exists() const { return column >= 0; }
  /// Returns the element loaded before, and starts loading that of `row`.
  __device__ __forceinline__ T exchange(const NormArguments<T>& call, int row) {
    const T loaded = next;
    if (exists() && row < call.rows) {
      next = call.x[place<norm_lines::row_x, true>(call, row) + column];
    }
    return loaded;
  }
  __device__ __forceinline__ void write(const NormArguments<T>& call, int row,
                                        const Scale<W>& scale, T element) const {
    if (!exists()) return;
    const W z = (convert<W>(element) - scale.center) * scale.rstd + scale.shift;
    call.y[place<norm_lines::row_y, true>(call, row) + column] = convert<T>(z * gamma + beta);
  }
};

template <class T, ClusterKind kind>
__global__ void __launch_bounds__(cluster_threads, 1)
    norm_cluster_rows(NormArguments<T> call, RingShape shape) {
  start_dependent();
  using W = Accumulator<T>;
  auto& scratch = shared<ClusterShared<W>>();
  const int thread = static_cast<int>(threadIdx.x);
  const int threads = static_cast<int>(blockDim.x);
  const int lane = lane_of_thread();
  const int blocks = ptx::cluster_size();
  const int rank = ptx::cluster_rank();
  const int warps = threads / 32;
  const int warp = thread / 32;
  constexpr int width = vector_width<T>;
  const int first = static_cast<int>(blockIdx.x) / blocks;  // row
  int head = 0;
  if constexpr (kind == ClusterKind::shifted) {
    // All rows of a cluster have the same offset from a pack.
    const T* const x = call.x + place<norm_lines::row_x, true>(call, first < call.rows ? first : 0);
    head = (width - lead_of<width>(x)) % width;
  }
  const int row_packs = static_cast<int>((call.n - head) / width);
  // Each warp owns adjacent packs of the block.
  const int begin = warp * 32 * cluster_packs;
  const int length = smaller(shape.part, row_packs - rank * shape.part);
  auto* const ring = reinterpret_cast<Pack<T, width>*>(&scratch + 1);
  ClusterRows<T, kind> mine{
      call, shape, ring + begin + lane, head, rank * shape.part + begin + lane, length - begin,
      {},   {}};
  const int rows = static_cast<int>(call.rows);
  const int step = static_cast<int>(gridDim.x) / blocks;
  // Initialize the barriers before the copies, which compute-sanitizer would otherwise take for
  // writes to the barriers.
  if (thread == 0) {
    for (ptx::MemoryBarrier& sent : scratch.sent) ptx::mbarrier_init(sent, 1);
    ptx::mbarrier_fence_init();
  }
  for (int stage = 0; stage < shape.stages; ++stage) mine.fetch(first + stage * step, stage);
  mine.keep_weights();
  ClusterSingle<T> single;
  if constexpr (kind == ClusterKind::shifted) {
    single = ClusterSingle<T>(call, head, row_packs);
    single.exchange(call, first);
  }
  T single_now = zero<T>();
  T single_before = zero<T>();
  ptx::cluster_sync();

  const auto finish = [&](int row, int k, int stage) {
    const int turn = k % turns;
    ptx::mbarrier_wait_cluster(scratch.sent[turn], static_cast<unsigned>(k / turns) & 1);
    W center = 0;
    const Moments<W> moments = join(call, scratch.parts[turn], blocks * warps, center);
    const Scale<W> scale = scale_about(call, center, moments);
    if (rank == 0 && thread == 0) {
      write_statistics<kind != ClusterKind::any>(call, row, center, moments, scale.rstd);
    }
    if constexpr (kind == ClusterKind::shifted) single.write(call, row, scale, single_before);
    mine.write(row, stage, scale);
    mine.fetch(row + shape.stages * step, stage);
  };
  int stage = 0;
  int before = 0;  // stage of the previous row
  for (int k = 0, row = first;; ++k, row += step) {
    if (row < rows) {
      // Copies of all but two stages may still be in flight.
      if (shape.stages == 2) {
        ptx::async_wait<0>();
      } else if (shape.stages == 3) {
        ptx::async_wait<1>();
      } else {
        ptx::async_wait<2>();
      }
      if (kind == ClusterKind::any && call.residual != nullptr) mine.add_residual(row, stage);
      PackedWords s[cluster_packs];
      mine.read(s, stage);
      if constexpr (kind == ClusterKind::shifted) {
        single_before = single_now;
        single_now = single.exchange(call, row + step);
      }
      WarpPart<W> part = part_of_lanes<cluster_packs, width, W>(
          call, 32, mine.left, [&](int p) { return mine.has(p); },
          [&](int p) { return widen<W, T>(s[p]); },
          [&](W center, Moments<W>& moments) {
            if (kind == ClusterKind::shifted && single.exists()) {
              moments.add(convert<W>(single_now) - center, call.factors.shrink);
            }
          });
      if (kind == ClusterKind::shifted && warp == 0) part.count += static_cast<W>(single.count);
      const int turn = k % turns;
      if (lane < blocks) {
        ptx::cluster_send(scratch.parts[turn][rank * warps + warp], part, scratch.sent[turn], lane);
      }
      if (thread == 0) {
        ptx::mbarrier_arrive_expect(scratch.sent[turn], static_cast<unsigned>(blocks * warps) *
                                                            static_cast<unsigned>(sizeof(part)));
      }
    }
    if (kind == ClusterKind::shifted && row >= rows) single_before = single_now;
    if (k > 0 && row - step < rows) finish(row - step, k - 1, before);
    if (row >= rows) break;
    before = stage;
    stage = stage + 1 == shape.stages ? 0 : stage + 1;
  }
  ptx::async_wait<0>();
  ptx::cluster_sync();  // remote messages may still arrive in shared memory
}

std::int64_t packs_of(const Norm::Args& args) {
  return args.columns() / static_cast<std::int64_t>(16 / size_of(args.x.dtype));
}

constexpr std::int64_t shortest_shifted_row = 2048;

/// Requires what kernels for rows that begin or end within a pack support.
Support require_shifted_rows(const Norm::Args& args) {
  const bool plain = visit<float, double, f16, bf16>(
      args.x.dtype, [&]<class T>() { return usual(call_of<T>(args)) == Usual::gamma_and_beta; });
  if (!plain || args.columns() < shortest_shifted_row) {
    return unsupported(
        "rows of partial packs: 2048 elements or more, gamma and beta of x's type, no residual");
  }
  const std::size_t element = size_of(args.x.dtype);
  return offsets_agree(norm_lines::lines_of(args).rows, norm_lines::row_y, args.y.data, element,
                       args.x.data, element, static_cast<std::int64_t>(16 / element))
             ? supported
             : unsupported("rows of x and y must have the same offset from 16 bytes");
}

/// Returns the number of rows between rows at the same offset from a pack.
template <class T>
std::int64_t period_of(const NormArguments<T>& call) {
  const std::int64_t stride =
      call.lines.rows.rank == 0 ? 0 : call.lines.rows.strides[norm_lines::row_x][0];
  std::int64_t period = 1;
  while (period * stride % vector_width<T> != 0) period *= 2;
  return period;
}

Support supports(const Norm::Args& args, const Context& context) {
  if (context.info().compute_capability < 90) {
    return unsupported("clusters need compute capability 9.0");
  }
  if (const Support rows = require_contiguous_rows(args, context); !rows) return rows;
  if (!all_packs_whole(args)) {
    if (const Support shifted = require_shifted_rows(args); !shifted) return shifted;
  }
  if (args.rows() > 0x3fffffff) return unsupported("more than 2^30 rows");
  if (packs_of(args) > std::int64_t{max_blocks} * cluster_threads * cluster_packs) {
    return unsupported("the row is longer than a cluster holds");
  }
  return supported;
}

/// Launch geometry: threads per block, blocks per cluster and stages. 16-bit rows use half of the
/// threads if they fit, in more blocks with deeper rings.
struct RingCluster {
  std::int64_t blocks = 2;
  int threads = cluster_threads;  // at most
  RingShape shape{};
};
RingCluster cluster_of(const Norm::Args& args) {
  RingCluster cluster;
  const std::int64_t packs = packs_of(args);
  const auto most = [&] { return std::int64_t{cluster.threads} * cluster_packs; };
  if (size_of(args.x.dtype) == 2 && packs <= portable_blocks * most() / 2) cluster.threads /= 2;
  while (cluster.blocks * most() < packs) cluster.blocks *= 2;
  cluster.shape.stages = cluster.threads < cluster_threads || cluster.blocks == max_blocks ? 4
                         : cluster.blocks == portable_blocks                               ? 2
                                                                                           : 3;
  cluster.shape.part = static_cast<int>(larger(ceil_div(packs, cluster.blocks), std::int64_t{1}));
  cluster.threads = static_cast<int>(
      round_up(ceil_div(std::int64_t{cluster.shape.part}, std::int64_t{cluster_packs}), 32));
  return cluster;
}

Work work(const Norm::Args& args, const Context& context) {
  const RingCluster cluster = cluster_of(args);
  const Work rows = block_work(cluster.blocks * args.rows(), cluster.threads, cluster_packs,
                               args.residual.data == nullptr ? "" : "residual", 128);
  return in_turns(context, rows);
}

void run(const Norm::Args& args, Context& context) {
  RingCluster cluster = cluster_of(args);
  const std::int64_t whole_packs = cluster.blocks * cluster.threads * cluster_packs;
  const bool shifted = !all_packs_whole(args);
  const bool whole = !shifted && packs_of(args) == whole_packs;
  with_call(args, [&]<class T>(const NormArguments<T>& call) {
    const auto shared_bytes = [&] {
      return sizeof(ClusterShared<Accumulator<T>>) +
             static_cast<std::size_t>(cluster.shape.stages) *
                 static_cast<std::size_t>(cluster.shape.part) * 16;
    };
    while (cluster.shape.stages > 2 && shared_bytes() > context.info().shared_per_block) {
      --cluster.shape.stages;
    }
    void (*const kernel)(NormArguments<T>, RingShape) =
        usual(call) != Usual::gamma_and_beta ? norm_cluster_rows<T, ClusterKind::any>
        : shifted                            ? norm_cluster_rows<T, ClusterKind::shifted>
        : whole                              ? norm_cluster_rows<T, ClusterKind::whole>
                                             : norm_cluster_rows<T, ClusterKind::usual>;
    const std::int64_t clusters = resident_clusters(
        context, kernel, cluster.threads, shared_bytes(), static_cast<int>(cluster.blocks));
    // Clusters of one row each need no common offset.
    const std::int64_t period = shifted && clusters < call.rows ? period_of(call) : 1;
    const std::int64_t grid =
        larger(smaller(clusters, call.rows) / period, std::int64_t{1}) * period;
    launch(context,
           {.grid = cluster.blocks * grid,
            .block = cluster.threads,
            .shared_bytes = shared_bytes(),
            .cluster = cluster.blocks,
            .dependent = can_depend(context)},
           kernel, call, cluster.shape);
  });
}

const Rung<Norm> self{{.name = "cluster_rows",
                       .step = 60,
                       .after = "registers_single_read",
                       .backend = device_backend,
                       .supports = supports,
                       .passes = {.loads = 1, .stores = 1},
                       .work = work,
                       .run = run}};

}  // namespace
}  // namespace rung

// SPDX-License-Identifier: Apache-2.0
// norm / registers, single read
//
// Idea     a row is spread over the registers of its threads - part of a warp for short rows, up
//          to 1024 threads for long ones, 32 elements each - and stays there: the two passes of an
//          exact variance, and y, all come from one read. One block per row, many of them on a
//          SM, so that some always load while others reduce and write.
// Changes  against warp_per_row: x is read once in all; the threads of a row grow with it; its
//          warps meet once (detail/parts.hpp). y is stored such that the caches give it up first.
//          Elements of 16 bits stay in words (rung/device/row/packed_words.hpp).
//          L2 is asked for rows that are soon due.
// Cost     what must be: x once, y once.
// Limits   contiguous rows of up to 32768 elements, 8192 of f64. Rows whose length or address cuts
//          packs: f32 and f64 half that, and at best half as fast.
// Tried    H200, copy 4240 GB/s. bf16 16384x4096, bound by its instructions: elements widened one
//          by one, 31 instructions for each, 3394; in words, the sum over all elements not taken
//          twice, 18 of them, 3887; rows that fill their threads, without a question for each pack,
//          3944; begun while the grid in front ends, 3984. f32 8192x32768, one block a
//          SM, in the same steps: 3642, 3818, 4084, 4099. bf16 16384x4096 in 40
//          registers instead of 64: 3863; 8 packs per thread 3969, 2 of them 3631; two rows per
//          thread, which share gamma and beta, 3898. bf16 4096x16384: 4 packs 3688, 8 of them 3917.
//          Blocks that stay, rows through a ring in shared memory: f32 65536x1024 3801; the deeper
//          the ring, the slower. Plain stores: 3829 for 4012. Another day, a copy of 1 GiB 4181,
//          and by this kernel without its arithmetic 4098: bf16 16384x4096 4081, f32 4117. The
//          first rows asked of L2 while the grid in front ends: 4018, f32 3963. gamma and beta
//          loaded before the warps meet: 4078, and with 8 packs per thread, where they spill, 1697.
//          x past L1, gamma and beta kept there, y by one multiply-add less, no shuffles behind the
//          barrier:
//          4054 to 4089. A third day, 4197: rows asked of L2 by the block half of the resident ones
//          ahead, in one instruction: bf16 4096x16384 3867 to 3982, f32 4035 to 4090; by the block
//          a third of them ahead 3990 and 4060, all of them 3825. Rows of 4096 bf16 or less, which
//          instructions bind, lose 0.5 to 1 %, f32 8192x32768 in its one block per SM 5
//          %: they do not ask. In part in shared memory, five to seven blocks per SM:
//          3570 at most. bf16 16384x4095, which cuts packs: weights one by one 645, in aligned
//          chunks that are shifted 808, elements kept in words (64 registers, not 97) 1165.
// Source   W. Guo, T. Dao et al., QuACK, 2025 (threads by row length).
#include "rung/device/dependent.hpp"
#include "rung/device/ptx/bulk_copy.hpp"
#include "rung/device/resident.hpp"
#include "rung/device/waiting.hpp"
#include "rung/ops/norm/cuda/detail/usual.hpp"
#include "rung/ops/norm/shared/cuda/parts.hpp"

namespace rung {
namespace {

using namespace norm_cuda;

template <class W>
struct RegisterShared {
  WarpPart<W> parts[32];  // of the rows of a block
  RowScratch<W> sums;     // of rows that cut packs
  RowScratch<Moments<W>> moments;
};

/// By one thread of a row: asks L2 for the row that call.ahead tells.
template <bool flat, class T>
__device__ __forceinline__ void ask_ahead(const Call<T>& call, int row) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  if (call.ahead == 0 || row + call.ahead >= call.rows) return;
  const auto next = static_cast<int>(row + call.ahead);
  ptx::bulk_prefetch(call.x + place<norm_lines::row_x, flat>(call, next),
                     static_cast<unsigned>(call.n * sizeof(T)));
#endif
}

/// A row in the registers of its threads. `whole`: every thread has all of its packs.
template <class T, int packs, Usual kind, bool whole>
struct RegisterPacks {
  static constexpr bool flat = kind != Usual::no;
  using W = Accumulator<T>;
  static constexpr int width = vector_width<T>;

  const Call<T>& call;
  int first;  // the thread's first pack, in the row
  int left;   // packs from its warp's first on
  int lanes;  // of the row's threads in the warp: pack p of the thread is p * lanes further on
  PackedWords s[packs];

  [[nodiscard]] __device__ __forceinline__ bool has(int p) const {
    return whole || p * lanes < left - lane();
  }
  [[nodiscard]] __device__ __forceinline__ int lane() const {
    return static_cast<int>(threadIdx.x) % 32;
  }
  [[nodiscard]] __device__ __forceinline__ std::int64_t element(int p) const {
    return std::int64_t{first} * width + p * lanes * width;
  }
  /// All loads are in flight before the first is waited for.
  __device__ __forceinline__ void load(int row) {
    const T* const x = call.x + place<norm_lines::row_x, flat>(call, row);
#pragma unroll
    for (int p = 0; p < packs; ++p) {
      if constexpr (!whole) s[p] = PackedWords{};
      if (has(p)) s[p] = load_words_streaming(x + element(p));
    }
    if constexpr (kind == Usual::no) {
      if (call.residual != nullptr) add_residual(row);
    }
  }
  __device__ __forceinline__ void add_residual(int row) {
    const T* const residual = call.residual + place<norm_lines::row_residual>(call, row);
    T* const sum = call.sum != nullptr ? call.sum + place<norm_lines::row_sum>(call, row) : nullptr;
#pragma unroll
    for (int p = 0; p < packs; ++p) {
      if (!has(p)) continue;
      const Pack<T, width> r = load_wide<width>(residual + element(p));
      Pack<T, width> added = pack_of<T>(s[p]);
#pragma unroll
      for (int i = 0; i < width; ++i) added[i] = add(added[i], r[i]);
      if (sum != nullptr) store_wide(sum + element(p), added);
      s[p] = words_of<T>(added);
    }
  }
  [[nodiscard]] __device__ __forceinline__ WarpPart<W> part() const {
    return part_of_lanes<packs, width, W>(
        call, lanes, left, [&](int p) { return has(p); }, [&](int p) { return widen<W, T>(s[p]); });
  }
  template <bool given>
  [[nodiscard]] __device__ __forceinline__ Pack<W, width> weights(const void* tensor, int p,
                                                                  W otherwise) const {
    if constexpr (given) {
      return widen<W, T>(load_words_constant(static_cast<const T*>(tensor) + element(p)));
    }
    return wide_weights(call, tensor, element(p), otherwise);
  }
  __device__ __forceinline__ void write(int row, const Scale<W>& scale) const {
    T* const y = call.y + place<norm_lines::row_y, flat>(call, row);
    constexpr bool has_beta = kind == Usual::gamma_and_beta;
#pragma unroll
    for (int p = 0; p < packs; ++p) {
      if (!has(p)) continue;
      const Pack<W, width> gamma = weights<flat>(call.gamma, p, W{1});
      const Pack<W, width> beta =
          weights<has_beta>(kind == Usual::gamma ? nullptr : call.beta, p, W{0});
      Pack<W, width> z = widen_again<W, T>(s[p], call.zero);
#pragma unroll
      for (int i = 0; i < width; ++i) {
        z[i] = ((z[i] - scale.center) * scale.rstd + scale.shift) * gamma[i] + beta[i];
      }
      store_words_streaming(y + element(p), narrow<T>(z));
    }
  }
};

/// Rows of whole, aligned packs. Each warp has neighboring packs of the row.
template <class T, int kept, int max_threads, int min_blocks, Usual kind, bool whole = false>
__global__ void __launch_bounds__(max_threads, min_blocks) norm_registers(Call<T> call) {
  start_dependent();
  using W = Accumulator<T>;
  const int thread = static_cast<int>(threadIdx.x);
  const int threads = static_cast<int>(blockDim.x);
  const int row = static_cast<int>(blockIdx.x * blockDim.y + threadIdx.y);
  const bool exists = whole || row < call.rows;
  const int packs = exists ? static_cast<int>(call.n / vector_width<T>) : 0;
  const int begin = thread / 32 * (32 * kept);  // of the warp's packs
  const int lanes = kind == Usual::no && threads < 32 ? threads : 32;
  const int left = whole ? 32 * kept : packs - begin;
  RegisterPacks<T, kept, kind, whole> mine{call, begin + thread % 32, left, lanes, {}};
  mine.load(exists ? row : 0);
  if (whole && thread == 0) ask_ahead<kind != Usual::no>(call, row);
  const WarpPart<W> part = mine.part();
  W center = part.center;
  Moments<W> moments = part.moments;
  if (threads > 32) {
    WarpPart<W>* const parts =
        shared<RegisterShared<W>>().parts + static_cast<int>(threadIdx.y) * (threads / 32);
    if (lane_of_thread() == 0) parts[thread / 32] = part;
    __syncthreads();
    moments = join(call, parts, threads / 32, center);
  }
  const Scale<W> scale = scale_about(call, center, moments);
  if (exists && thread == 0) {
    write_statistics<kind != Usual::no>(call, row, center, moments, scale.rstd);
  }
  mine.write(row, scale);
}

/// Rows of any length at any address.
template <class T, int packs, int max_threads>
__global__ void __launch_bounds__(max_threads, 1024 / max_threads)
    norm_registers_cut(Call<T> call) {
  start_dependent();
  using W = Accumulator<T>;
  constexpr int width = vector_width<T>;
  auto& scratch = shared<RegisterShared<W>>();
  const int thread = static_cast<int>(threadIdx.x);
  const int threads = static_cast<int>(blockDim.x);
  for_each_row(call.rows, [&](std::int64_t row, bool exists) {
    const PackedRow<T> packed(call, exists ? row : 0);
    const std::int64_t length = exists ? packed.packs() : 0;
    PackedWords s[packs] = {};
#pragma unroll
    for (int p = 0; p < packs; ++p) {
      const int pack = thread + p * threads;
      if (pack < length) s[p] = packed.first_words(pack);
    }
    W sum = 0;
#pragma unroll
    for (int p = 0; p < packs; ++p) {
      const Pack<W, width> wide = widen<W, T>(s[p]);
#pragma unroll
      for (int i = 0; i < width; ++i) sum += wide[i] * call.factors.shrink;
    }
    W center = 0;
    if (call.layer) {
      center = center_near(row_reduce(sum, Plus{}, scratch.sums) * call.factors.shrunk_part);
    }
    Moments<W> moments{};
#pragma unroll
    for (int p = 0; p < packs; ++p) {
      const int pack = thread + p * threads;
      if (pack >= length) continue;
      const Pack<W, width> wide = widen<W, T>(s[p]);
      const bool whole = packed.whole(pack);
#pragma unroll
      for (int i = 0; i < width; ++i) {
        if (whole || packed.exists(pack, i)) {
          moments.add(wide[i] - center, call.factors.shrink);
        }
      }
    }
    moments = row_reduce(moments, AddMoments{}, scratch.moments);
    const Scale<W> scale = scale_of(call, packed.at, center, moments, exists && thread == 0);
#pragma unroll
    for (int p = 0; p < packs; ++p) {
      const int pack = thread + p * threads;
      if (pack < length) packed.write(pack, s[p], scale);
    }
  });
}

constexpr int packs_cut = 4;
template <class T>
constexpr int max_threads_cut = sizeof(T) == 4 ? 1024 : 512;

std::int64_t packs_of(const Norm::Args& args) {
  const auto width = static_cast<std::int64_t>(16 / size_of(args.x.dtype));
  return ceil_div(args.columns(), width) + (all_packs_whole(args) ? 0 : 1);  // cut at either end
}

Support supports(const Norm::Args& args, const Context& context) {
  if (const Support rows = require_contiguous_rows(args, context); !rows) return rows;
  constexpr std::int64_t max_rows = 0x7fffff00;
  if (args.rows() > max_rows) return unsupported("more than 2^31 rows");
  const std::int64_t threads = args.x.dtype == DType::f32 ? 1024 : 512;
  if (packs_of(args) > threads * (all_packs_whole(args) ? 8 : packs_cut)) {
    return unsupported("the row is longer than the registers of a block hold");
  }
  return supported;
}

double estimate(const Norm::Args& args, const Context& context) {
  const auto rows = static_cast<double>(args.rows());
  if (!all_packs_whole(args)) {
    // Packs that are cut: each takes an SM 2 to 4 ns; a thread's four are waited for together, and
    // where a pack has eight elements each is asked whether it exists.
    const bool small = size_of(args.x.dtype) == 2;
    return waiting_seconds(Norm::cost(args),
                           {.bandwidth = small ? 0.28 : 0.4,
                            .blocks = rows,
                            .blocks_per_sm = 1e9,
                            .fixed = args.columns() == 1 ? 1.5e-6
                                     : small             ? 4.5e-6
                                                         : 2.5e-6,
                            .busy = static_cast<double>(packs_of(args)) * (small ? 4e-9 : 2.4e-9)},
                           context);
  }
  // A block that fills an SM alone has nobody to load while it reduces; the less so where rows fill
  // all of its threads.
  const bool alone = args.x.dtype == DType::f32 && args.columns() > 16384;
  return waiting_seconds(Norm::cost(args),
                         {.bandwidth = alone && args.columns() % 32768 != 0 ? 0.78 : 0.83,
                          .blocks = rows,
                          .blocks_per_sm = 1e9,
                          .fixed = 1.5e-6,
                          .busy = 0.015e-6},  // of a row, however short it is
                         context);
}

template <class T>
void launch_rows_of(Context& context, const Call<T>& call, RowBlock block,
                    void (*kernel)(Call<T>)) {
  block.shared_bytes = sizeof(RegisterShared<Accumulator<T>>);
  launch_call(context, call, block, kernel, can_depend(context));
}

/// Calls f<kind>() for the kind of the call; short rows, which share a warp, are of no usual kind.
template <class T, class F>
void with_kind(const Call<T>& call, const RowBlock& block, F&& f) {
  const Usual kind = block.threads >= 32 ? usual(call) : Usual::no;
  if (kind == Usual::gamma_and_beta) return f.template operator()<Usual::gamma_and_beta>();
  if (kind == Usual::gamma) return f.template operator()<Usual::gamma>();
  f.template operator()<Usual::no>();
}

/// How many rows further on L2 is asked for one by each row's block: half of those that the device
/// holds at a time. Every block is another, so that it is soon due.
template <class T>
std::int64_t rows_ahead(const Context& context, const Call<T>& call, const RowBlock& block,
                        void (*kernel)(Call<T>)) {
  if (!can_depend(context) || call.rows <= context.info().sms) return 0;
  return resident_blocks(context, kernel, block.threads * block.rows,
                         sizeof(RegisterShared<Accumulator<T>>)) *
         block.rows / 2;
}

/// Rows that every thread of their blocks has all packs of have a kernel that does not ask.
template <int kept, int max_threads, int min_blocks, bool ahead, class T>
bool launch_full(Context& context, Call<T> call, RowBlock block) {
  if (sizeof(T) == 2 && block.threads == 32) block.rows = 2;
  const bool full = block.threads >= 32 && call.rows % block.rows == 0 &&
                    call.n == std::int64_t{block.threads} * kept * vector_width<T>;
  if (!full || usual(call) == Usual::no) return false;
  auto* const kernel =
      usual(call) == Usual::gamma
          ? norm_registers<T, kept, max_threads, min_blocks, Usual::gamma, true>
          : norm_registers<T, kept, max_threads, min_blocks, Usual::gamma_and_beta, true>;
  if (ahead) call.ahead = rows_ahead(context, call, block, kernel);
  launch_rows_of(context, call, block, kernel);
  return true;
}

/// 32 elements per thread, f64 16; of 16 bits 64 where rows that fill their threads are longer than
/// 4096, and others longer than 16384. At least 8 threads, whose packs are a line of the cache.
template <class T>
void launch_whole(Context& context, const Call<T>& call) {
  constexpr int kept = kept_packs<T>;
  const std::int64_t packs = call.n / vector_width<T>;
  const RowBlock block = row_block(packs, kept, 8);
  if constexpr (sizeof(T) == 8) {
    launch_rows_of(context, call, block, norm_registers<T, kept, 512, 1, Usual::no>);
  } else if constexpr (sizeof(T) == 4) {
    if (block.threads <= 512) {
      if (launch_full<kept, 512, 2, true>(context, call, block)) return;
    } else if (launch_full<kept, 1024, 1, false>(context, call, block)) {
      return;
    }
    with_kind(call, block, [&]<Usual kind>() {
      if (block.threads <= 512 && kind != Usual::no) {
        launch_rows_of(context, call, block, norm_registers<T, kept, 512, 2, kind>);
      } else {
        launch_rows_of(context, call, block, norm_registers<T, kept, 1024, 1, kind>);
      }
    });
  } else {
    const RowBlock wide = row_block(packs, 8, 128);
    if (block.threads <= 128 ? launch_full<kept, 512, 2, false>(context, call, block)
                             : launch_full<8, 512, 2, true>(context, call, wide)) {
      return;
    }
    with_kind(call, block, [&]<Usual kind>() {
      if (block.threads <= 512) {
        constexpr int min_blocks = kind == Usual::no ? 2 : 3;
        launch_rows_of(context, call, block, norm_registers<T, kept, 512, min_blocks, kind>);
      } else {
        launch_rows_of(context, call, wide, norm_registers<T, 8, 512, 2, kind>);
      }
    });
  }
}

void run(const Norm::Args& args, Context& context) {
  const bool whole = all_packs_whole(args);
  with_call(args, [&]<class T>(const Call<T>& call) {
    if (whole) return launch_whole(context, call);
    launch_rows_of(context, call, row_block(packs_of(args), packs_cut, 1, max_threads_cut<T>),
                   norm_registers_cut<T, packs_cut, max_threads_cut<T>>);
  });
}

const Rung<Norm> self{{.name = "registers_single_read",
                       .step = 50,
                       .after = "warp_per_row",
                       .backend = device_backend,
                       .supports = supports,
                       .passes = {.loads = 1, .stores = 1},
                       .estimate = estimate,
                       .run = run}};

}  // namespace
}  // namespace rung

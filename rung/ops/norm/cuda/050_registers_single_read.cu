// SPDX-License-Identifier: Apache-2.0
// norm / registers, single read
//
// Idea     A row is spread over the registers of its threads (part of a warp for short rows, up to
//          1024 threads for long ones, 32 elements each), so that the two passes of a stable
//          variance, and y, need one read. One block per row and several blocks per SM, so that
//          some load while others reduce and write.
// Changes  against warp_per_row: x is read once; the thread count grows with the row; its warps
//          synchronize once (shared/cuda/parts.hpp). 16-bit elements stay in packed words
//          (device/row/packed_words.hpp), y is stored with streaming stores, and rows ahead are
//          prefetched into L2.
// Cost     Compulsory traffic: x once, y once.
// Limits   Contiguous rows of up to 32768 elements, 8192 of f64. With partial packs, f32 and f64
//          rows are limited to half that, at half the speed or less.
// Source   W. Guo, T. Dao et al., QuACK, 2025 (threads by row length).
#include "rung/device/dependent.hpp"
#include "rung/device/ptx/bulk_copy.hpp"
#include "rung/device/resident.hpp"
#include "rung/ops/norm/cuda/detail/usual.hpp"
#include "rung/ops/norm/shared/cuda/parts.hpp"

namespace rung {
namespace {

using namespace norm_cuda;

template <class W>
struct RegisterShared {
  WarpPart<W> parts[32];  // for the rows of a block
  RowScratch<W> sums;     // for rows with partial packs
  RowScratch<Moments<W>> moments;
};

/// Prefetches row `row + call.ahead` into L2; called by one thread per row.
template <bool flat, class T>
__device__ __forceinline__ void prefetch_ahead(const NormArguments<T>& call, int row) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  if (call.ahead == 0 || row + call.ahead >= call.rows) return;
  const auto next = static_cast<int>(row + call.ahead);
  ptx::bulk_prefetch(call.x + place<norm_lines::row_x, flat>(call, next),
                     static_cast<unsigned>(call.n * sizeof(T)));
#endif
}

/// Adds the residual to a row in registers and stores the sum, if requested.
template <class T, int packs, class Has, class Element>
__device__ __forceinline__ void add_residual(const NormArguments<T>& call, int row,
                                             PackedWords (&s)[packs], Has&& has,
                                             Element&& element) {
  constexpr int width = vector_width<T>;
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

/// Loads a pack of gamma or beta. `given`: it is present and of x's type.
template <bool given, class T, class W = Accumulator<T>>
__device__ __forceinline__ Pack<W, vector_width<T>> weights_at(const NormArguments<T>& call,
                                                               const void* weights,
                                                               std::int64_t element, W otherwise) {
  if constexpr (given) {
    return widen<W, T>(load_words_constant(static_cast<const T*>(weights) + element));
  }
  return wide_weights(call, weights, element, otherwise);
}

/// Computes rows of full, aligned packs. Each warp owns adjacent packs of the row. `whole`: no
/// thread has fewer than `kept` packs.
template <class T, int kept, int max_threads, int min_blocks, Usual kind, bool whole = false>
__global__ void __launch_bounds__(max_threads, min_blocks) norm_registers(NormArguments<T> call) {
  start_dependent();
  using W = Accumulator<T>;
  constexpr int width = vector_width<T>;
  constexpr bool flat = kind != Usual::no;
  const int thread = static_cast<int>(threadIdx.x);
  const int threads = static_cast<int>(blockDim.x);
  const int row = static_cast<int>(blockIdx.x * blockDim.y + threadIdx.y);
  const bool exists = whole || row < call.rows;
  const int begin = thread / 32 * (32 * kept);  // of the warp's packs
  const int lanes = !flat && threads < 32 ? threads : 32;
  const int left = whole ? 32 * kept : (exists ? static_cast<int>(call.n / width) : 0) - begin;
  const int first = begin + thread % 32;
  const auto has = [&](int p) { return whole || p * lanes < left - thread % 32; };
  const auto element = [&](int p) { return std::int64_t{first} * width + p * lanes * width; };

  const T* const x = call.x + place<norm_lines::row_x, flat>(call, exists ? row : 0);
  PackedWords s[kept];  // issue all loads before the first use
#pragma unroll
  for (int p = 0; p < kept; ++p) {
    if constexpr (!whole) s[p] = PackedWords{};
    if (has(p)) s[p] = load_words_streaming(x + element(p));
  }
  if constexpr (!flat) {
    if (call.residual != nullptr) add_residual(call, exists ? row : 0, s, has, element);
  }
  if (whole && thread == 0) prefetch_ahead<flat>(call, row);

  const WarpPart<W> part = part_of_lanes<kept, width, W>(call, lanes, left, has,
                                                         [&](int p) { return widen<W, T>(s[p]); });
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
  if (exists && thread == 0) write_statistics<flat>(call, row, center, moments, scale.rstd);

  T* const y = call.y + place<norm_lines::row_y, flat>(call, row);
  const void* const betas = kind == Usual::gamma ? nullptr : call.beta;
#pragma unroll
  for (int p = 0; p < kept; ++p) {
    if (!has(p)) continue;
    const Pack<W, width> gamma = weights_at<flat>(call, call.gamma, element(p), W{1});
    const Pack<W, width> beta =
        weights_at<kind == Usual::gamma_and_beta>(call, betas, element(p), W{0});
    Pack<W, width> z = widen_again<W, T>(s[p], call.zero);
#pragma unroll
    for (int i = 0; i < width; ++i) {
      z[i] = ((z[i] - scale.center) * scale.rstd + scale.shift) * gamma[i] + beta[i];
    }
    store_words_streaming(y + element(p), narrow<T>(z));
  }
}

/// Computes rows of any length at any address.
template <class T, int packs, int max_threads>
__global__ void __launch_bounds__(max_threads, 1024 / max_threads)
    norm_registers_cut(NormArguments<T> call) {
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

/// Returns the block of rows used for the grid size; full 16-bit rows of one warp use two rows per
/// block.
RowBlock block_of(const Norm::Args& args) {
  const std::size_t size = size_of(args.x.dtype);
  if (!all_packs_whole(args)) {
    return row_block(packs_of(args), packs_cut, 1, size == 4 ? 1024 : 512);
  }
  const int kept = size == 2 ? kept_packs<f16> : size == 4 ? kept_packs<float> : kept_packs<double>;
  RowBlock block = row_block(packs_of(args), kept, 8);
  if (size == 2 && packs_of(args) == warp_size * kept && args.rows() % 2 == 0) {
    with_call(args, [&]<class T>(const NormArguments<T>& call) {
      if (usual(call) != Usual::no) block.rows = 2;
    });
  }
  return block;
}

Work work(const Norm::Args& args, const Context&) {
  const RowBlock block = block_of(args);
  return row_work(args.rows(), block, 1,
                  pack_path(args, block.threads < warp_size ? "short" : type_path(args.x.dtype)),
                  64);
}

template <class T>
void launch_rows_of(Context& context, const NormArguments<T>& call, RowBlock block,
                    void (*kernel)(NormArguments<T>)) {
  block.shared_bytes = sizeof(RegisterShared<Accumulator<T>>);
  launch_call(context, call, block, kernel, can_depend(context));
}

/// Calls f<kind>() with the kind of the arguments; rows of less than a warp have Usual::no.
template <class T, class F>
void with_kind(const NormArguments<T>& call, const RowBlock& block, F&& f) {
  const Usual kind = block.threads >= 32 ? usual(call) : Usual::no;
  if (kind == Usual::gamma_and_beta) return f.template operator()<Usual::gamma_and_beta>();
  if (kind == Usual::gamma) return f.template operator()<Usual::gamma>();
  f.template operator()<Usual::no>();
}

/// Returns the distance in rows of the prefetch into L2: half of the rows resident on the GPU.
template <class T>
std::int64_t rows_ahead(const Context& context, const NormArguments<T>& call, const RowBlock& block,
                        void (*kernel)(NormArguments<T>)) {
  if (!can_depend(context) || call.rows <= context.info().sms) return 0;
  return resident_blocks(context, kernel, block.threads * block.rows,
                         sizeof(RegisterShared<Accumulator<T>>)) *
         block.rows / 2;
}

/// Launches a kernel without bounds checks and returns true, if every thread of every block has all
/// its packs; else returns false.
template <int kept, int max_threads, int min_blocks, bool ahead, class T>
bool launch_full(Context& context, NormArguments<T> call, RowBlock block) {
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

/// Launches the kernel for full packs: 32 elements per thread, 16 for f64. 16-bit rows of more than
/// 4096 elements have 64 per thread if these fill every thread or if the row is longer than 16384.
/// At least 8 threads per row, whose packs form a 128-byte line.
template <class T>
void launch_whole(Context& context, const NormArguments<T>& call) {
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
  with_call(args, [&]<class T>(const NormArguments<T>& call) {
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
                       .work = work,
                       .run = run}};

}  // namespace
}  // namespace rung

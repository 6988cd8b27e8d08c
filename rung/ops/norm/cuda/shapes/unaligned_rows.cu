// SPDX-License-Identifier: Apache-2.0
// norm / unaligned rows
//
// Idea     One block per row, whose aligned 16-byte packs are in registers as in
//          registers_single_read. The elements before and after them, less than three packs, are
//          one per lane of the first warp. gamma and beta are loaded in aligned chunks, from the L1
//          cache, and shifted by the row's offset from a pack.
// Changes  against registers_single_read: no pack is partial, so loads and stores have no branches
//          for single elements. Against ragged_rows: rows stay in registers instead of shared
//          memory, and resident blocks hide each other's barriers.
// Cost     Compulsory traffic; two loads and some 15 instructions to shift a pack of weights.
// Limits   Contiguous rows of 512 to 32768 elements, 65536 of 16 bits, that begin or end within a
//          pack, at the same offset in all tensors of a row; gamma and beta aligned to 16 bytes.
#include "rung/core/bounds.hpp"
#include "rung/device/dependent.hpp"
#include "rung/device/load_anywhere.hpp"
#include "rung/device/ptx/bulk_copy.hpp"
#include "rung/device/resident.hpp"
#include "rung/device/row/row_cut.hpp"
#include "rung/ops/norm/cuda/detail/usual.hpp"
#include "rung/ops/norm/shared/cuda/parts.hpp"

namespace rung {
namespace {

using namespace norm_cuda;

constexpr int unaligned_threads = 1024;  // at most; 64 registers each
constexpr int unaligned_packs = 8;       // per thread, in half of its registers
constexpr std::int64_t shortest_unaligned_row = 512;
/// 16-bit rows up to this length have half as many packs per thread, so that more warps hide
/// latencies.
constexpr std::int64_t short_unaligned_row = 4096;

template <class W>
struct UnalignedShared {
  WarpPart<W> parts[unaligned_threads / warp_size];
};

/// Loads a pack of gamma or beta from element `at` on, which is not in the last pack of the row.
/// `given`: it is present and of x's type.
template <bool given, class T, class W = Accumulator<T>>
__device__ __forceinline__ Pack<W, vector_width<T>> shifted_weights(const NormArguments<T>& call,
                                                                    const void* weights, int at,
                                                                    int head, W otherwise) {
  constexpr int width = vector_width<T>;
  constexpr int bytes = sizeof(T);
  if (!given && weights == nullptr) return all_equal<width>(otherwise);
  if (!given && call.wide_weights) {
    constexpr int wide_bytes = sizeof(W);
    return unpack(load_chunks<width>(static_cast<const W*>(weights) + at, head * wide_bytes % 16));
  }
  return widen<W, T>(
      words_of(load_chunks<width>(static_cast<const T*>(weights) + at, head * bytes)));
}

/// Prefetches the packs of row `row + call.ahead` into L2; called by one thread per row.
template <bool flat, class T>
__device__ __forceinline__ void prefetch_ahead(const NormArguments<T>& call, int row) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  if (call.ahead == 0 || row + call.ahead >= call.rows) return;
  const T* const x =
      call.x + place<norm_lines::row_x, flat>(call, static_cast<int>(row + call.ahead));
  const RowCut<T> cut(x, static_cast<int>(call.n));
  ptx::bulk_prefetch(x + cut.head, cut.middle_bytes());
#endif
}

template <class T, int kept, Usual kind>
__global__ void __launch_bounds__(unaligned_threads)
    norm_unaligned_rows(const __grid_constant__ NormArguments<T> call) {
  start_dependent();
  using W = Accumulator<T>;
  constexpr int width = vector_width<T>;
  constexpr bool flat = kind != Usual::no;
  auto& scratch = shared<UnalignedShared<W>>();
  const int thread = static_cast<int>(threadIdx.x);
  const int lane = lane_of_thread();
  const int warp = thread / warp_size;
  const int row = static_cast<int>(blockIdx.x);
  const T* const x = call.x + place<norm_lines::row_x, flat>(call, row);
  const RowCut<T> cut(x, static_cast<int>(call.n), width);
  const int begin = warp * warp_size * kept;  // of the warp's packs
  const int left = cut.middle / width - begin;
  const auto has = [&](int p) { return p * warp_size < left - lane; };
  const auto element = [&](int p) {
    return cut.head + (begin + lane) * width + p * warp_size * width;
  };
  const int edge = warp == 0 ? cut.edge(lane) : -1;  // this thread's single element

  PackedWords s[kept];  // issue all loads before the first use
#pragma unroll
  for (int p = 0; p < kept; ++p) {
    s[p] = PackedWords{};
    if (has(p)) s[p] = load_words_streaming(x + element(p));
  }
  T single = edge >= 0 ? x[edge] : zero<T>();
  if (thread == 0) prefetch_ahead<flat>(call, row);
  if constexpr (!flat) {
    if (call.residual != nullptr) {
      const T* const residual = call.residual + place<norm_lines::row_residual>(call, row);
      T* const sum =
          call.sum != nullptr ? call.sum + place<norm_lines::row_sum>(call, row) : nullptr;
#pragma unroll
      for (int p = 0; p < kept; ++p) {
        if (!has(p)) continue;
        const Pack<T, width> r = load_wide<width>(residual + element(p));
        Pack<T, width> added = pack_of<T>(s[p]);
#pragma unroll
        for (int i = 0; i < width; ++i) added[i] = add(added[i], r[i]);
        if (sum != nullptr) store_wide(sum + element(p), added);
        s[p] = words_of<T>(added);
      }
      if (edge >= 0) {
        single = add(single, residual[edge]);
        if (sum != nullptr) sum[edge] = single;
      }
    }
  }

  WarpPart<W> part = part_of_lanes<kept, width, W>(
      call, warp_size, left, has, [&](int p) { return widen<W, T>(s[p]); },
      [&](W center, Moments<W>& moments) {
        if (edge >= 0) moments.add(convert<W>(single) - center, call.factors.shrink);
      });
  if (warp == 0) part.count += static_cast<W>(cut.head + cut.tail);
  if (lane == 0) scratch.parts[warp] = part;
  __syncthreads();
  W center = 0;
  const Moments<W> moments =
      join(call, scratch.parts, static_cast<int>(blockDim.x) / warp_size, center);
  const Scale<W> scale = scale_about(call, center, moments);
  if (thread == 0) write_statistics<flat>(call, row, center, moments, scale.rstd);

  T* const y = call.y + place<norm_lines::row_y, flat>(call, row);
  const void* const betas = kind == Usual::gamma ? nullptr : call.beta;
  const auto result = [&](W value, W gamma, W beta) {
    return ((value - scale.center) * scale.rstd + scale.shift) * gamma + beta;
  };
#pragma unroll
  for (int p = 0; p < kept; ++p) {
    if (!has(p)) continue;
    const Pack<W, width> gamma =
        shifted_weights<flat>(call, call.gamma, element(p), cut.head, W{1});
    const Pack<W, width> beta =
        shifted_weights<kind == Usual::gamma_and_beta>(call, betas, element(p), cut.head, W{0});
    Pack<W, width> z = widen_again<W, T>(s[p], call.zero);
#pragma unroll
    for (int i = 0; i < width; ++i) z[i] = result(z[i], gamma[i], beta[i]);
    store_words_streaming(y + element(p), narrow<T>(z));
  }
  if (edge >= 0) {
    y[edge] = convert<T>(result(convert<W>(single), weight(call, call.gamma, edge, W{1}),
                                weight(call, betas, edge, W{0})));
  }
}

int packs_per_thread(const Norm::Args& args) {
  return size_of(args.x.dtype) == 2 && args.columns() <= short_unaligned_row ? unaligned_packs / 2
                                                                             : unaligned_packs;
}
RowBlock unaligned_block(const Norm::Args& args) {
  const auto width = static_cast<std::int64_t>(16 / size_of(args.x.dtype));
  const std::int64_t warps =
      ceil_div(args.columns() / width, std::int64_t{warp_size} * packs_per_thread(args));
  return {.threads = static_cast<int>(larger<std::int64_t>(warps, 1)) * warp_size,
          .shared_bytes = sizeof(UnalignedShared<float>)};
}

/// Returns whether every row of a tensor is at the same offset from a multiple of 16 bytes as the
/// row of x.
bool offsets_agree(const norm_lines::Lines& lines, int tensor, const ConstTensorRef& of,
                   const ConstTensorRef& x) {
  if (of.data == nullptr) return true;
  const auto address = [](const ConstTensorRef& t) {
    return reinterpret_cast<std::uintptr_t>(t.data);
  };
  const auto width = static_cast<std::int64_t>(16 / size_of(x.dtype));
  bool agree = (address(of) - address(x)) % 16 == 0;
  for (int axis = 0; axis < lines.rows.rank; ++axis) {
    const auto& strides = lines.rows.strides;
    agree = agree && (strides[tensor][axis] - strides[norm_lines::row_x][axis]) % width == 0;
  }
  return agree;
}

Support supports(const Norm::Args& args, const Context& context) {
  if (args.x.dtype == DType::f64) return unsupported("f32, f16 and bf16");
  if (const Support rows = require_contiguous_rows(args, context); !rows) return rows;
  constexpr std::int64_t max_rows = 0x7fffff00;
  if (args.rows() > max_rows) return unsupported("more than 2^31 rows");
  const auto width = static_cast<std::int64_t>(16 / size_of(args.x.dtype));
  if (args.columns() < shortest_unaligned_row ||
      args.columns() > unaligned_threads * unaligned_packs * width) {
    return unsupported("rows of 512 to 32768 elements, 65536 of 16 bits");
  }
  const norm_lines::Lines lines = norm_lines::lines_of(args);
  if (!offsets_agree(lines, norm_lines::row_y, args.y, args.x) ||
      !offsets_agree(lines, norm_lines::row_residual, args.residual, args.x) ||
      !offsets_agree(lines, norm_lines::row_sum, args.sum, args.x)) {
    return unsupported("rows of all tensors must have the same offset from 16 bytes");
  }
  for (const void* weights : {args.gamma.data, args.beta.data}) {
    if (reinterpret_cast<std::uintptr_t>(weights) % 16 != 0) {
      return unsupported("gamma and beta must be aligned to 16 bytes");
    }
  }
  return all_packs_whole(args) ? unsupported("rows must cut packs of 16 bytes") : supported;
}

Work work(const Norm::Args& args, const Context&) {
  return row_work(args.rows(), unaligned_block(args), 1, type_path(args.x.dtype), 64);
}

template <class T, int kept>
void launch_unaligned(Context& context, NormArguments<T> call, const RowBlock& block) {
  const Usual kind = usual(call);
  auto* const kernel = kind == Usual::gamma_and_beta
                           ? norm_unaligned_rows<T, kept, Usual::gamma_and_beta>
                       : kind == Usual::gamma ? norm_unaligned_rows<T, kept, Usual::gamma>
                                              : norm_unaligned_rows<T, kept, Usual::no>;
  // As in registers_single_read, prefetching half of the resident rows ahead pays if an SM holds
  // several rows, but not for short 16-bit rows, which are bound by instructions.
  const bool prefetch = can_depend(context) && call.rows > context.info().sms &&
                        block.threads <= unaligned_threads / 2 &&
                        (sizeof(T) == 4 || kept == unaligned_packs);
  if (prefetch) {
    call.ahead = resident_blocks(context, kernel, block.threads, block.shared_bytes) / 2;
  }
  launch_call(context, call, block, kernel, can_depend(context));
}

void run(const Norm::Args& args, Context& context) {
  const RowBlock block = unaligned_block(args);
  visit<float, f16, bf16>(args.x.dtype, [&]<class T>() {
    const NormArguments<T> call = call_of<T>(args);
    if constexpr (sizeof(T) == 2) {
      if (packs_per_thread(args) < unaligned_packs) {
        return launch_unaligned<T, unaligned_packs / 2>(context, call, block);
      }
    }
    launch_unaligned<T, unaligned_packs>(context, call, block);
  });
}

const Rung<Norm> self{{.name = "unaligned_rows",
                       .after = "ragged_rows",
                       .backend = device_backend,
                       .supports = supports,
                       .passes = {.loads = 1, .stores = 1},
                       .work = work,
                       .run = run}};

}  // namespace
}  // namespace rung

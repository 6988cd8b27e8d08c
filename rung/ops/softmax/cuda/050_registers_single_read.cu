// SPDX-License-Identifier: Apache-2.0
// softmax / the row in registers
//
// Idea     Each thread reads its part of the row once, with 16-byte loads that are all issued
//          before the first use, and keeps its 32 elements in registers. The thread count follows
//          the row length: 8 threads for 64 elements, a warp up to 1024, a block of 1024 threads up
//          to 32768.
// Changes  against warp_per_row: compulsory traffic only, a quarter of the load instructions, and
//          the same bytes in flight for rows of every length. A thread computes exponentials
//          relative to its own maximum, so the row's maximum and sum are reduced together, with one
//          barrier per row.
// Cost     1 load and 1 store per element. Per-thread overhead of a row (addresses, shuffles, the
//          barrier) is amortized over 32 elements; at full memory bandwidth an element has a budget
//          of some 30 instructions.
// Limits   Contiguous rows of up to 32768 elements, half as many in f64. Rows that do not begin and
//          end at multiples of 16 bytes use a kernel that handles the edges separately; if x and y
//          are misaligned by different amounts, y is stored by elements. Full rows use a kernel
//          without bounds checks.
// Source   QuACK (T. Dao and others, 2025) for threads per row.
#include "rung/device/dependent.hpp"
#include "rung/ops/softmax/cuda/detail/packed_row.hpp"

namespace rung {
namespace {

using namespace softmax_cuda;

/// Computes one row, from the loads to the stores. Each thread computes exponentials relative to
/// its own maximum; the factor that scales the results corrects them to the maximum of the row.
template <int packs, RowKind kind, class T, class Y, class Sum>
__device__ __forceinline__ void register_row(const T* x, Y* y, std::int64_t length, int lead,
                                             const SoftmaxCall<T, Y>& p,
                                             const MergePowers<Sum>& merge,
                                             RowValues<Total<Sum>>& totals, int turn) {
  constexpr bool whole_warps = kind == RowKind::whole;
  constexpr int width = vector_width<T>;
  const RegisterRow<const T, kind> in(x, length, lead);
  // Elements beyond the row read as -infinity, whose exponential is 0.
  const T nothing = convert<T>(-std::numeric_limits<Sum>::infinity());
  PackedWords read[packs];
#pragma unroll
  for (int k = 0; k < packs; ++k) read[k] = in.load(pack_index<kind, packs>(k), nothing);
  Pack<Sum, 1> single[1];  // of a shifted row
  if constexpr (kind == RowKind::shifted) single[0][0] = convert<Sum>(in.load_single(nothing));
  Pack<Sum, width> values[packs];
#pragma unroll
  for (int k = 0; k < packs; ++k) values[k] = widen<Sum, T>(read[k]);
  const Total<Sum> mine = take_powers(values, p.log, p.scale, merge.power);
  Total<Sum> of_single{};
  Total<Sum> all_mine = mine;
  if constexpr (kind == RowKind::shifted) {
    of_single = take_powers(single, p.log, p.scale, merge.power);
    all_mine = merge(mine, of_single);
  }
  const Total<Sum> row = row_all_reduce<whole_warps>(all_mine, merge, totals, turn);
  const Finish<Sum> finish(mine, row, p.log, p.scale, merge.power);
  const RegisterRow<Y, kind, width> out(y, length, lead);
#pragma unroll
  for (int k = 0; k < packs; ++k) out.store(pack_index<kind, packs>(k), finish(values[k]));
  if constexpr (kind == RowKind::shifted) {
    out.store_single(Finish<Sum>(of_single, row, p.log, p.scale, merge.power)(single[0])[0]);
  }
}

/// Computes regular rows of a warp or less, `packs` packs per thread. `packed`: elements stay in
/// registers in the type of x, so that 10 blocks fit per SM instead of 8.
template <class P, int packs, bool packed>
__global__ void __launch_bounds__(short_row_threads, packed ? 10 : 8)
    softmax_registers_short(Rows<2> rows, P p) {
  using Sum = typename P::Sum;
  constexpr RowKind kind = RowKind::regular;
  auto& totals = shared<RowValues<Total<Sum>>>();
  const MergePowers<Sum> merge{Power<Sum>(p.scale)};
  for_each_row(rows.count(), [&](std::int64_t row, bool exists) {
    const auto* x = p.x + (exists ? rows.template offset<0>(row) : 0);
    auto* y = p.y + (exists ? rows.template offset<1>(row) : 0);
    const std::int64_t length = exists ? rows.length : 0;
    if constexpr (packed) {
      constexpr PackedWords* no_stage = nullptr;
      packed_row<packs, 0, kind>(
          x, y, length, 0, p, merge.power, no_stage,
          [&](const Total<Sum>& mine) { return merge(mine, static_cast<int>(blockDim.x)); });
    } else {
      register_row<packs, kind>(x, y, length, 0, p, merge, totals, 0);
    }
  });
}

template <class P, int packs, RowKind kind>
__global__ void __launch_bounds__(max_threads) softmax_registers_single_read(Rows<2> rows, P p) {
  using Sum = typename P::Sum;
  auto& totals = shared<RowValues<Total<Sum>>>();
  const MergePowers<Sum> merge{Power<Sum>(p.scale)};
  int turn = 0;
  for_each_row(rows.count(), [&](std::int64_t row, bool exists) {
    const auto* x = p.x + (exists ? rows.template offset<0>(row) : 0);
    auto* y = p.y + (exists ? rows.template offset<1>(row) : 0);
    const std::int64_t length = exists ? rows.length : 0;
    register_row<packs, kind>(x, y, length, lead_of_row<kind>(x), p, merge, totals, turn);
    turn ^= 1;
  });
}

/// Computes one full row per block of full warps, without bounds checks. `packed`: elements stay in
/// registers in the type of x.
template <class P, int packs, int threads, int blocks, bool packed>
__global__ void __launch_bounds__(threads, blocks) softmax_registers_whole(Rows<2> rows, P p) {
  start_dependent();
  using Sum = typename P::Sum;
  constexpr RowKind kind = RowKind::whole;
  auto& totals = shared<RowValues<Total<Sum>>>();
  const MergePowers<Sum> merge{Power<Sum>(p.scale)};
  const std::int64_t row = blockIdx.x;
  const auto* x = p.x + rows.template offset<0>(row);
  auto* y = p.y + rows.template offset<1>(row);
  if constexpr (packed) {
    constexpr PackedWords* no_stage = nullptr;
    packed_row<packs, 0, kind>(
        x, y, rows.length, 0, p, merge.power, no_stage,
        [&](const Total<Sum>& mine) { return row_all_reduce<true>(mine, merge, totals, 0); });
  } else {
    register_row<packs, kind>(x, y, rows.length, 0, p, merge, totals, 0);
  }
}

Support supports(const Softmax::Args& args, const Context&) {
  if (const Support rows = require_contiguous_rows(args); !rows) return rows;
  if (const Support scale = require_foldable_scale(args); !scale) return scale;
  const bool fits = visit<float, double, f16, bf16>(args.x.dtype, [&]<class T>() {
    return packs_of_row<T>(args) <= max_threads * kept_packs<T>;
  });
  return fits ? supported : unsupported("the row exceeds a block's registers");
}

/// Packs per thread for which kernels of short regular rows exist.
template <class T>
inline constexpr auto short_packs = std::array{3, 4, 5, 6, 8};
template <>
inline constexpr auto short_packs<f16> = std::array{3, 4, 5};
template <>
inline constexpr auto short_packs<bf16> = std::array{3, 4, 5};

template <class T>
RowBlock block_of(const Softmax::Args& args, bool regular) {
  constexpr int kept = kept_packs<T>;
  const std::int64_t packs = packs_of_row<T>(args);
  RowBlock block;
  if (packs > warp_size * kept) {
    const auto warps = (packs + warp_size * kept - 1) / (warp_size * kept);
    block = {.threads = static_cast<int>(warps) * warp_size};
  } else {
    block =
        regular ? short_row_block(packs, short_packs<T>) : short_row_block(packs, std::array{kept});
  }
  block.shared_bytes = sizeof(RowValues<Total<Accumulator<T>>>);
  return block;
}

/// Returns whether the kernel for RowKind::shifted runs: its edges are single elements, where
/// ragged rows have partial packs.
template <class T, class Y>
bool runs_shifted(const Softmax::Args& args, const RowBlock& block) {
  return !is_regular<T, Y>(args) && block.threads >= warp_size && is_shifted<T, Y>(args);
}

/// Launches the kernel for full rows (f32, f16 or bf16, two warps or more) and returns true;
/// returns false for other rows. 16-bit rows of at least half a block's threads stay packed, so
/// that two blocks fit per SM.
template <class T>
bool launch_whole(Context& context, const Softmax::Args& args) {
  using P = SoftmaxCall<T, T>;
  constexpr int kept = kept_packs<T>;
  constexpr int half = max_threads / 2;
  constexpr std::int64_t max_blocks = 0x7fffffff;
  const RowBlock block = block_of<T>(args, true);
  const bool whole = block.threads > warp_size && args.count() <= max_blocks &&
                     args.length() == std::int64_t{block.threads} * kept * vector_width<T> &&
                     is_regular<T, T>(args);
  if (!whole) return false;
  void (*kernel)(Rows<2>, P) = softmax_registers_whole<P, kept, max_threads, 1, false>;
  if constexpr (std::is_class_v<T>) {
    if (block.threads > half) {
      kernel = softmax_registers_whole<P, kept, max_threads, 2, true>;
    } else if (block.threads == half) {
      kernel = softmax_registers_whole<P, kept, half, 2, true>;
    }
  }
  launch(context,
         {.grid = args.count(),
          .block = block.threads,
          .shared_bytes = block.shared_bytes,
          .dependent = can_depend(context)},
         kernel, args.rows, call_of<T, T>(args));
  return true;
}

template <class T, class Y>
void launch_row_kernel(const Softmax::Args& args, Context& context) {
  if constexpr (std::is_same_v<T, Y> && sizeof(T) <= 4) {
    if (launch_whole<T>(context, args)) return;
  }
  using P = SoftmaxCall<T, Y>;
  constexpr int kept = kept_packs<T>;
  const bool regular = is_regular<T, Y>(args);
  const RowBlock block = block_of<T>(args, regular);
  if (regular && block.threads <= warp_size) {
    with_packs_per_thread<short_packs<T>>(block, [&]<int packs>() {
      launch_rows(context, args.rows, block, softmax_registers_short<P, packs, sizeof(T) == 2>,
                  call_of<T, Y>(args));
    });
    return;
  }
  const bool shifted = runs_shifted<T, Y>(args, block);
  launch_rows(context, args.rows, block,
              regular   ? softmax_registers_single_read<P, kept, RowKind::regular>
              : shifted ? softmax_registers_single_read<P, kept, RowKind::shifted>
                        : softmax_registers_single_read<P, kept, RowKind::ragged>,
              call_of<T, Y>(args));
}

Work work(const Softmax::Args& args, const Context&) {
  RowBlock block;
  bool shifted = false;
  with_types(args, [&]<class T, class Y>() {
    block = block_of<T>(args, is_regular<T, Y>(args));
    shifted = runs_shifted<T, Y>(args, block);
  });
  return row_work(args.count(), block, 1,
                  shifted ? "shifted" : pack_path(args.length(), args.x.dtype, block.threads), 64);
}

void run(const Softmax::Args& args, Context& context) {
  if (args.empty()) return;
  void (*launch_types)(const Softmax::Args&, Context&) = nullptr;
  with_types(args, [&]<class T, class Y>() { launch_types = launch_row_kernel<T, Y>; });
  launch_types(args, context);
}

const Rung<Softmax> self{{.name = "registers_single_read",
                          .step = 50,
                          .after = "warp_per_row",
                          .backend = device_backend,
                          .supports = supports,
                          .passes = {.loads = 1, .stores = 1},
                          .work = work,
                          .run = run}};

}  // namespace
}  // namespace rung

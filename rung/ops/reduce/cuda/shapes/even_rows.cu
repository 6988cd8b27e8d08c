// SPDX-License-Identifier: Apache-2.0
// reduce / even rows
//
// Idea     many rows of whole, aligned packs, one block per row: the kernel handles no segments,
//          pieces or row ends, which keeps its registers within full occupancy.
// Changes  against single_pass_last_block: 25 registers per thread instead of 58, twice the warps
//          per SM; 3 % faster for rows of 64 KiB.
// Cost     x is read once.
// Limits   rows of one axis that start on 16-byte boundaries, of at least 512 packs. Four rows per
//          SM or fewer leave SMs idle.
#include "rung/cpu/split.hpp"  // types: float double f16 bf16 std::int32_t std::uint8_t
#include "rung/ops/reduce/cuda/detail/row_packs.hpp"

namespace rung::reduce_cuda::inline RUNG_TARGET {
namespace {

constexpr int threads = 256;

struct EvenRows {
  const void* x;
  int packs;         // packs per row
  Index pitch;       // between row starts, in packs
  Index place_step;  // between results in y
};

/// Reduces a row per block.
template <class F>
__global__ void __launch_bounds__(threads, is_light<F> ? 8 : 4)
    reduce_even_rows(EvenRows rows, Result result, F fold) {
  using State = typename F::State;
  using T = typename F::Element;
  constexpr int width = vector_width<T>;
  start_dependent();
  const auto join = [&](const State& a, const State& b) { return fold.join(a, b); };
  auto& scratch = shared<WarpValues<State, threads>>();
  State state = fold.identity();
  const T* const x = static_cast<const T*>(rows.x) + Index{blockIdx.x} * rows.pitch * width;
  const int packs = rows.packs;
  constexpr int step = threads;
  int at = static_cast<int>(threadIdx.x);
  RawPack<T, width> pack[loads_at_once];
  const auto load = [&](int u) { return load_raw<width>(x + Index{at + u * step} * width); };
  const auto take = [&](int u) { fold.take(state, unpack(pack[u]), Index{at + u * step} * width); };
#pragma unroll 1
  for (; at + (loads_at_once - 1) * step < packs; at += loads_at_once * step) {
#pragma unroll
    for (int u = 0; u < loads_at_once; ++u) pack[u] = load(u);
#pragma unroll
    for (int u = 0; u < loads_at_once; ++u) take(u);
  }
#pragma unroll
  for (int u = 0; u < loads_at_once - 1; ++u) {
    if (at + u * step < packs) pack[u] = load(u);
  }
#pragma unroll
  for (int u = 0; u < loads_at_once - 1; ++u) {
    if (at + u * step < packs) take(u);
  }
  state = first_warp_reduce(state, join, fold.identity(), scratch);
  if (threadIdx.x == 0) {
    store_state<F>(result, Index{blockIdx.x} * rows.place_step, state,
                   Index{rows.packs} * vector_width<T>);
  }
}

template <class F>
void launch_even_rows(const Reduce::Args& args, Context& context, const F& fold) {
  constexpr Index width = vector_width<typename F::Element>;
  const EvenRows rows{args.x.data, static_cast<int>(args.terms.size() / width),
                      args.kept.strides[0][0] / width, args.kept.strides[1][0]};
  launch(context,
         {.grid = args.results(),
          .block = threads,
          .shared_bytes = sizeof(WarpValues<typename F::State, threads>),
          .dependent = can_depend(context)},
         reduce_even_rows<F>, rows, result_of(args), fold);
}

}  // namespace

/// Launches the reduction of elements of T. Instantiated in T's part of this file.
template <class T>
void run_even_rows(const Reduce::Args& args, Context& context);
template <>
void run_even_rows<RUNG_SPLIT_TYPE>(const Reduce::Args& args, Context& context) {
  visit_folds<RUNG_SPLIT_TYPE, true>(
      args, [&](const auto& fold) { launch_even_rows(args, context, fold); });
}

#if RUNG_SPLIT_ONCE
namespace {

Support supports(const Reduce::Args& args, const Context&) {
  if (const Support rows = require_rows(args); !rows) return rows;
  const auto width = static_cast<Index>(load_bytes / size_of(args.x.dtype));
  const Index length = args.terms.size();
  const bool even = !args.has_segments() && args.terms.is_contiguous() && args.kept.rank == 1 &&
                    length % width == 0 && args.kept.strides[0][0] % width == 0 &&
                    reinterpret_cast<std::uintptr_t>(args.x.data) % load_bytes == 0;
  if (!even) return unsupported("rows of whole packs from multiples of 16 bytes on");
  const Index packs = length / width;
  if (packs < 2 * threads || packs >= 1 << 24) return unsupported("rows of 2^9 to 2^24 packs");
  const Index most = 0x7fffffff;
  return args.results() <= most ? supported : unsupported("2^31 rows and more");
}

Work work(const Reduce::Args& args, const Context&) {
  return row_work(args, args.results(), threads, threads);
}

void run(const Reduce::Args& args, Context& context) {
  visit<float, double, f16, bf16, std::int32_t, std::uint8_t>(
      args.x.dtype, [&]<class T>() { run_even_rows<T>(args, context); });
}

const Rung<Reduce> self{{.name = "even_rows",
                         .after = "short_rows",
                         .backend = device_backend,
                         .supports = supports,
                         .passes = {.loads = 1, .stores = 1},
                         .work = work,
                         .run = run}};

}  // namespace
#endif  // RUNG_SPLIT_ONCE
}  // namespace rung::reduce_cuda::inline RUNG_TARGET

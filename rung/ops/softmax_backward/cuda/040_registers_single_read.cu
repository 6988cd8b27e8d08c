// SPDX-License-Identifier: Apache-2.0
// softmax_backward / the row in registers
//
// Idea     Each thread reads its part of y and dy once, with 16-byte loads that are all issued
//          before the first use, and keeps both in registers, unconverted. The thread count follows
//          the row length: 8 threads for 64 elements, a warp up to 512 f32, a block of 1024 threads
//          up to 8192.
// Changes  against warp_per_row: compulsory traffic only, a quarter of the load instructions, and
//          the same bytes in flight for rows of every length. One barrier per row.
// Cost     1 load each of y and dy and 1 store per element. 16-bit elements stay packed between the
//          sum and the results, in half the registers.
// Limits   Contiguous rows of up to 8192 f32, 16384 f16 or bf16, 4096 f64. Rows that do not begin
//          and end at multiples of 16 bytes use a kernel that handles the edges separately; tensors
//          misaligned by different amounts are accessed by elements.
// Source   QuACK (T. Dao and others, 2025) for threads per row.
#include "rung/device/row/all_reduce.hpp"
#include "rung/ops/softmax_backward/cuda/detail/register_row.hpp"

namespace rung {
namespace {

using namespace softmax_backward_cuda;

constexpr int max_threads = 1024;

template <class P, int packs, int threads, RowKind kind>
__global__ void __launch_bounds__(threads, max_threads / threads)
    softmax_backward_registers(Rows<3> rows, P p) {
  using Sum = typename P::Sum;
  auto& sums = shared<RowValues<Sum>>();
  int turn = 0;
  for_each_row(rows.count(), [&](std::int64_t row, bool exists) {
    std::int64_t at[3] = {0, 0, 0};
    if (exists) rows.offsets(row, at);
    const std::int64_t length = exists ? rows.length : 0;
    const int lead = lead_of_row<kind>(p.y + at[0]);
    const GradientRow<P, packs, kind> loaded(p.y + at[0], p.dy + at[1], length, lead);
    const Sum sum = row_all_reduce(loaded.sum(p.log), RowSum<Sum>{}, sums, turn);
    loaded.store(p, p.dx + at[2], length, lead, sum);
    turn ^= 1;
  });
}

/// Packs per thread of each of y and dy, for rows of one warp and of several warps: a block of 1024
/// threads has 64 registers per thread.
constexpr int packs_by_warp = 4;
constexpr int packs_by_block = 2;

template <class T>
std::int64_t packs_of(const SoftmaxBackward::Args& args) {
  return packs_of_row(args.rows, args.y.data, vector_width<T>);
}

Support supports(const SoftmaxBackward::Args& args, const Context&) {
  if (const Support rows = require_contiguous_rows(args); !rows) return rows;
  const bool fits = visit<float, double, f16, bf16>(
      args.y.dtype, [&]<class T>() { return packs_of<T>(args) <= max_threads * packs_by_block; });
  return fits ? supported : unsupported("the row exceeds a block's registers");
}

/// Packs per thread for which kernels of short regular rows exist.
inline constexpr auto short_packs = std::array{3, packs_by_warp};

template <class T>
RowBlock block_of(const SoftmaxBackward::Args& args, bool regular) {
  const std::int64_t packs = packs_of<T>(args);
  RowBlock block;
  if (packs > warp_size * packs_by_warp) {
    const auto warps = ceil_div(packs, std::int64_t{warp_size} * packs_by_block);
    block = {.threads = static_cast<int>(warps) * warp_size};
  } else {
    block = regular ? short_row_block(packs, short_packs)
                    : short_row_block(packs, std::array{packs_by_warp});
  }
  block.shared_bytes = sizeof(RowValues<Accumulator<T>>);
  return block;
}

/// Returns whether the kernel for RowKind::shifted runs: its edges are single elements, where
/// ragged rows have partial packs.
template <class T, class Y>
bool runs_shifted(const SoftmaxBackward::Args& args, const RowBlock& block) {
  return !is_regular<T, Y>(args) && block.threads > warp_size && is_shifted<T, Y>(args);
}

Work work(const SoftmaxBackward::Args& args, const Context&) {
  RowBlock block;
  bool shifted = false;
  with_types(args, [&]<class T, class Y>() {
    block = block_of<T>(args, is_regular<T, Y>(args));
    shifted = runs_shifted<T, Y>(args, block);
  });
  return row_work(args.count(), block, 1,
                  shifted ? "shifted" : pack_path(args.length(), args.y.dtype, block.threads), 64);
}

void run(const SoftmaxBackward::Args& args, Context& context) {
  if (args.empty()) return;
  with_types(args, [&]<class T, class Y>() {
    using P = GradientCall<T, Y>;
    const bool regular = is_regular<T, Y>(args);
    const RowBlock block = block_of<T>(args, regular);
    const auto p = call_of<T, Y>(args);
    if (regular && block.threads <= warp_size) {
      with_packs_per_thread<short_packs>(block, [&]<int packs>() {
        launch_rows(context, args.rows, block,
                    softmax_backward_registers<P, packs, short_row_threads, RowKind::regular>, p);
      });
      return;
    }
    const bool shifted = runs_shifted<T, Y>(args, block);
    launch_rows(
        context, args.rows, block,
        regular   ? softmax_backward_registers<P, packs_by_block, max_threads, RowKind::regular>
        : shifted ? softmax_backward_registers<P, packs_by_block, max_threads, RowKind::shifted>
                  : softmax_backward_registers<P, packs_by_warp, max_threads, RowKind::ragged>,
        p);
  });
}

const Rung<SoftmaxBackward> self{{.name = "registers_single_read",
                                  .step = 40,
                                  .after = "warp_per_row",
                                  .backend = device_backend,
                                  .supports = supports,
                                  .passes = {.loads = 1, .stores = 1},
                                  .work = work,
                                  .run = run}};

}  // namespace
}  // namespace rung

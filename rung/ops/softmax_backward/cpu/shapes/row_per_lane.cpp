// SPDX-License-Identifier: Apache-2.0
// softmax_backward / row per lane
//
// Idea     Adjacent rows (along any axis but the last) are columns in memory: each vector lane
//          handles one row. Blocks of columns are split over a team of threads.
// Changes  Against the rung threads, which gathers rows element by element: memory is read in
//          contiguous order.
// Cost     y and dy are read once and dx is written once if a block of columns stays in L2, else y
//          and dy twice.
// Limits   Adjacent, non-contiguous rows.
#include "rung/cpu/foreach_target.hpp"

#include <algorithm>
#include <type_traits>

#include "rung/cpu/columns-inl.hpp"
#include "rung/ops/softmax_backward/cpu/detail/kernel.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::softmax_backward_cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;
using namespace cpu::HWY_NAMESPACE;

/// Elements of a column whose terms are summed before they are added to the column's sum.
constexpr int unroll = 8;

/// Computes the gradient of a block of columns.
template <class Sum, class T, class Y>
HWY_NOINLINE void column_gradients(ColumnBlock<const T> y, ColumnBlock<const T> dy,
                                   ColumnBlock<Y> dx, std::int64_t length, std::int64_t columns,
                                   Sum scale, bool log) {
  const Full<Sum> d;
  HWY_ALIGN Sum sums[cpu::ColumnBlocks::max_columns];
  for_columns<Sum>(columns, [&](std::int64_t j, std::size_t) HWY_ATTR RUNG_ALWAYS_INLINE {
    hn::StoreU(hn::Zero(d), d, sums + j);
  });
  // Sums of eight first: the rounding error is that of a sum of an eighth of the length.
  for (std::int64_t i = 0; i < length; i += unroll) {
    const std::int64_t end = std::min(i + unroll, length);
    for_columns<Sum>(columns, [&](std::int64_t j, std::size_t n) HWY_ATTR RUNG_ALWAYS_INLINE {
      auto sum = hn::Zero(d);
      for (std::int64_t k = i; k < end; ++k) {
        const auto gradient = load_columns(d, dy.first + k * dy.step + j, n);
        sum = log ? hn::Add(sum, gradient)
                  : hn::MulAdd(gradient, load_columns(d, y.first + k * y.step + j, n), sum);
      }
      hn::StoreU(hn::Add(hn::LoadU(d, sums + j), sum), d, sums + j);
    });
  }
  const auto factor = hn::Set(d, scale);
  const auto exponent = hn::Set(d, log2_e<Sum>);
  for (std::int64_t i = 0; i < length; ++i) {
    for_columns<Sum>(columns, [&](std::int64_t j, std::size_t n) HWY_ATTR RUNG_ALWAYS_INLINE {
      const auto value = load_columns(d, y.first + i * y.step + j, n);
      const auto gradient = load_columns(d, dy.first + i * dy.step + j, n);
      const auto sum = hn::LoadU(d, sums + j);
      const auto result =
          log ? hn::NegMulAdd(exp2<true>(d, hn::Mul(value, exponent)), sum, gradient)
              : hn::Mul(hn::Sub(gradient, sum), value);
      store_columns(hn::Mul(result, factor), d, dx.first + i * dx.step + j, n);
    });
  }
}

template <class T, class Y>
void column_blocks(const SoftmaxBackward::Args& args, const cpu::ColumnBlocks& blocks,
                   cpu::Range share) {
  using Sum = Accumulator<T>;
  for (std::int64_t block = share.begin; block < share.end; ++block) {
    std::int64_t at[3];
    args.rows.offsets(blocks.first_row(block), at);
    const ColumnBlock<const T> y{static_cast<const T*>(args.y.data) + at[0], args.rows.steps[0]};
    const ColumnBlock<const T> dy{static_cast<const T*>(args.dy.data) + at[1], args.rows.steps[1]};
    const ColumnBlock<Y> dx{static_cast<Y*>(args.dx.data) + at[2], args.rows.steps[2]};
    column_gradients(y, dy, dx, args.length(), blocks.width(block), static_cast<Sum>(args.scale),
                     args.log);
  }
}

/// Computes the column blocks in `share`, with the types of y and dx.
void rows_per_lane(const SoftmaxBackward::Args& args, const cpu::ColumnBlocks& blocks,
                   cpu::Range share) {
  visit<float, double, f16, bf16>(args.y.dtype, [&]<class T>() {
    if constexpr (std::is_same_v<T, float>) {
      if (args.dx.dtype == DType::f16) return column_blocks<float, f16>(args, blocks, share);
      if (args.dx.dtype == DType::bf16) return column_blocks<float, bf16>(args, blocks, share);
    }
    column_blocks<T, T>(args, blocks, share);
  });
}

}  // namespace
}  // namespace rung::softmax_backward_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rung::softmax_backward_cpu {
namespace {
HWY_EXPORT(rows_per_lane);

int threads_of(const SoftmaxBackward::Args& args, const Context& context) {
  return cpu::row_threads(args.length() * args.count(), context.threads());
}

Support supports(const SoftmaxBackward::Args& args, const Context&) {
  const bool adjacent = args.rows.are_adjacent() && args.rows.run() > 1;
  return adjacent && !args.rows.are_contiguous()
             ? supported
             : unsupported("rows must be adjacent, not contiguous");
}

Work work(const SoftmaxBackward::Args& args, const Context& context) {
  const cpu::ColumnBlocks blocks(args.rows, 2 * static_cast<std::int64_t>(size_of(args.y.dtype)));
  return cpu::column_facts(args.rows, blocks, args.y.dtype, threads_of(args, context));
}

void run(const SoftmaxBackward::Args& args, Context& context) {
  if (args.empty()) return;
  const cpu::ColumnBlocks blocks(args.rows, 2 * static_cast<std::int64_t>(size_of(args.y.dtype)));
  const auto threads =
      static_cast<int>(std::min<std::int64_t>(threads_of(args, context), blocks.count));
  cpu::run_shares(threads, [&](const cpu::Team& team) {
    HWY_DYNAMIC_DISPATCH(rows_per_lane)(args, blocks, team.share(blocks.count));
  });
}

const Rung<SoftmaxBackward> self{
    {.name = "row_per_lane", .after = "threads", .supports = supports, .work = work, .run = run}};

}  // namespace
}  // namespace rung::softmax_backward_cpu
#endif

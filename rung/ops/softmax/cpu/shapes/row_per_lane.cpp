// SPDX-License-Identifier: Apache-2.0
// softmax / row per lane
//
// Idea     Adjacent rows (along any axis but the last) are columns in memory: each vector lane
//          handles one row with online maximum and sum, because a column would not stay in L1.
//          Blocks of columns are split over a team of threads.
// Changes  Against the rung threads, which gathers rows element by element: memory is read in
//          contiguous order.
// Cost     x is read once and y written once if a block of columns stays in L2, else x twice; one
//          more exponential per eight elements, for rescaling.
// Limits   Adjacent, non-contiguous rows.
// Source   M. Milakov and N. Gimelshein, Online normalizer calculation for softmax, 2018.
#include "rung/cpu/foreach_target.hpp"

#include <type_traits>

#include "rung/cpu/columns-inl.hpp"
#include "rung/ops/softmax/cpu/detail/steps.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::softmax_cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;
using namespace cpu::HWY_NAMESPACE;

/// Elements of a column per batch, combined in registers: the sum is rescaled to a new maximum at
/// most once per batch.
constexpr int unroll = 8;

/// Computes maxima and sums of the columns online, reading x once. Both arrays are padded to full
/// vectors.
template <class Sum, class T>
HWY_NOINLINE void column_sums(ColumnBlock<const T> x, std::int64_t length, std::int64_t columns,
                              Sum scale, Sum* maxima, Sum* sums) {
  const Full<Sum> d;
  const auto factor = hn::Set(d, scale * log2_e<Sum>);
  const auto power = [&](auto value, auto maximum) HWY_ATTR RUNG_ALWAYS_INLINE {
    return exp2<false>(d, hn::Mul(hn::Sub(value, maximum), factor));
  };
  for_columns<Sum>(columns, [&](std::int64_t j, std::size_t) HWY_ATTR RUNG_ALWAYS_INLINE {
    hn::StoreU(hn::Set(d, no_maximum<Sum>), d, maxima + j);
    hn::StoreU(hn::Zero(d), d, sums + j);
  });
  std::int64_t i = 0;
  for (; i + unroll <= length; i += unroll) {
    for_columns<Sum>(columns, [&](std::int64_t j, std::size_t n) HWY_ATTR RUNG_ALWAYS_INLINE {
      Vector<Sum> value[unroll];
      const auto before = hn::LoadU(d, maxima + j);
      auto maximum = before;
#pragma GCC unroll 8
      for (int k = 0; k < unroll; ++k) {
        value[k] = load_columns(d, x.first + (i + k) * x.step + j, n);
        maximum = hn::Max(value[k], maximum);
      }
      auto sum = hn::Mul(hn::LoadU(d, sums + j), power(before, maximum));
#pragma GCC unroll 8
      for (int k = 0; k < unroll; ++k) value[k] = power(value[k], maximum);
#pragma GCC unroll 3
      for (int half = unroll / 2; half > 0; half /= 2) {
        for (int k = 0; k < half; ++k) value[k] = hn::Add(value[k], value[k + half]);
      }
      hn::StoreU(hn::Add(sum, value[0]), d, sums + j);
      hn::StoreU(maximum, d, maxima + j);
    });
  }
  for (; i < length; ++i) {
    for_columns<Sum>(columns, [&](std::int64_t j, std::size_t n) HWY_ATTR RUNG_ALWAYS_INLINE {
      const auto value = load_columns(d, x.first + i * x.step + j, n);
      const auto before = hn::LoadU(d, maxima + j);
      const auto maximum = hn::Max(value, before);
      const auto sum = hn::Mul(hn::LoadU(d, sums + j), power(before, maximum));
      hn::StoreU(hn::Add(sum, power(value, maximum)), d, sums + j);
      hn::StoreU(maximum, d, maxima + j);
    });
  }
}

/// Computes the softmax of a block of columns.
template <class Sum, class T, class Y>
HWY_NOINLINE void softmax_columns(ColumnBlock<const T> x, ColumnBlock<Y> y, std::int64_t length,
                                  std::int64_t columns, Sum scale, bool log) {
  const Full<Sum> d;
  HWY_ALIGN Sum maxima[cpu::ColumnBlocks::max_columns];
  HWY_ALIGN Sum sums[cpu::ColumnBlocks::max_columns];
  column_sums(x, length, columns, scale, maxima, sums);
  for (std::int64_t j = 0; j < columns; ++j) {
    sums[j] = log ? logarithm(sums[j]) : reciprocal(sums[j]);
  }
  const auto factor = hn::Set(d, log ? scale : scale * log2_e<Sum>);
  for (std::int64_t i = 0; i < length; ++i) {
    for_columns<Sum>(columns, [&](std::int64_t j, std::size_t n) HWY_ATTR RUNG_ALWAYS_INLINE {
      const auto value = load_columns(d, x.first + i * x.step + j, n);
      const auto difference = hn::Sub(value, hn::LoadU(d, maxima + j));
      const auto last = hn::LoadU(d, sums + j);
      const auto result = log ? hn::MulSub(difference, factor, last)
                              : hn::Mul(exp2<false>(d, hn::Mul(difference, factor)), last);
      store_columns(result, d, y.first + i * y.step + j, n);
    });
  }
}

template <class T, class Y>
void column_blocks(const Softmax::Args& args, const cpu::ColumnBlocks& blocks, cpu::Range share) {
  using Sum = Accumulator<T>;
  for (std::int64_t block = share.begin; block < share.end; ++block) {
    std::int64_t at[2];
    args.rows.offsets(blocks.first_row(block), at);
    const ColumnBlock<const T> x{static_cast<const T*>(args.x.data) + at[0], args.rows.steps[0]};
    const ColumnBlock<Y> y{static_cast<Y*>(args.y.data) + at[1], args.rows.steps[1]};
    softmax_columns(x, y, args.length(), blocks.width(block), static_cast<Sum>(args.scale),
                    args.log);
  }
}

/// Computes the column blocks in `share`, with the types of x and y.
void rows_per_lane(const Softmax::Args& args, const cpu::ColumnBlocks& blocks, cpu::Range share) {
  visit<float, double, f16, bf16>(args.x.dtype, [&]<class T>() {
    if constexpr (sizeof(T) == 2) {
      if (args.y.dtype == DType::f32) return column_blocks<T, float>(args, blocks, share);
    }
    column_blocks<T, T>(args, blocks, share);
  });
}

}  // namespace
}  // namespace rung::softmax_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rung::softmax_cpu {
namespace {
HWY_EXPORT(rows_per_lane);

int threads_of(const Softmax::Args& args, const Context& context) {
  return cpu::row_threads(args.length() * args.count(), context.threads());
}

Support supports(const Softmax::Args& args, const Context&) {
  const bool adjacent = args.rows.are_adjacent() && args.rows.run() > 1;
  return adjacent && !args.rows.are_contiguous()
             ? supported
             : unsupported("rows must be adjacent, not contiguous");
}

Work work(const Softmax::Args& args, const Context& context) {
  const cpu::ColumnBlocks blocks(args.rows, static_cast<std::int64_t>(size_of(args.x.dtype)));
  return cpu::column_facts(args.rows, blocks, args.x.dtype, threads_of(args, context));
}

void run(const Softmax::Args& args, Context& context) {
  if (args.empty()) return;
  const cpu::ColumnBlocks blocks(args.rows, static_cast<std::int64_t>(size_of(args.x.dtype)));
  const auto threads =
      static_cast<int>(std::min<std::int64_t>(threads_of(args, context), blocks.count));
  cpu::run_shares(threads, [&](const cpu::Team& team) {
    HWY_DYNAMIC_DISPATCH(rows_per_lane)(args, blocks, team.share(blocks.count));
  });
}

const Rung<Softmax> self{
    {.name = "row_per_lane", .after = "threads", .supports = supports, .work = work, .run = run}};

}  // namespace
}  // namespace rung::softmax_cpu
#endif

// SPDX-License-Identifier: Apache-2.0
// reduce / simd
//
// Idea     the accumulators are vectors: four of them, of 16 f32 each with AVX-512, take up 64
//          elements a turn.
// Changes  against unrolled: one instruction for 16 additions; the compiler is told what it may not
//          guess. The last elements come by a masked load, the lanes are put together in halves.
// Cost     a load and an addition for each vector: from L1 and L2 as fast as they deliver, memory
//          alone decides beyond.
// Limits   contiguous rows of f32 and f64; no index, no segments. Error up to (n / 64 + 6) u: still
//          growing with n, which is why it is never picked.
// Tried    -
// Source   as for unrolled.
#include "rung/cpu/foreach_target.hpp"
#include "rung/ops/reduce/cpu/detail/step-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::reduce_cpu::HWY_NAMESPACE {
namespace {

constexpr int accumulators = 4;

template <class S>
HWY_NOINLINE double simd_row(const typename S::Element* x, std::int64_t n) {
  typename S::V total[accumulators];
#pragma GCC unroll 4
  for (auto& one : total) one = S::identity();
  constexpr std::int64_t step = accumulators * S::lanes;
  std::int64_t i = 0;
  for (; i + step <= n; i += step) {
#pragma GCC unroll 4
    for (int a = 0; a < accumulators; ++a) {
      total[a] = S::take_with_nan(total[a], S::load(x + i + a * S::lanes));
    }
  }
  for (; i < n; i += S::lanes) {
    const std::int64_t count = std::min(S::lanes, n - i);
    total[0] = S::take_with_nan(total[0], S::load_some(x + i, count));
  }
  if constexpr (S::extreme) {
    // across() would lose a NaN in the lanes.
    HWY_ALIGN typename S::Lane lane[accumulators * S::lanes];
    for (int a = 0; a < accumulators; ++a) {
      hn::Store(total[a], typename S::D(), lane + a * S::lanes);
    }
    for (const auto value : lane) {
      if (reduce_cpu::displaces(S::fold, value, lane[0])) lane[0] = value;
    }
    return static_cast<double>(lane[0]);
  } else {
    // Partial sums of squares are added, not squared again.
    return static_cast<double>(
        S::across(S::join(S::join(total[0], total[1]), S::join(total[2], total[3]))));
  }
}

template <class T>
double simd_fold(Fold fold, const T* x, std::int64_t n) {
  switch (fold) {
    case Fold::squares:
      return simd_row<Step<T, Fold::squares, double>>(x, n);
    case Fold::product:
      return simd_row<Step<T, Fold::product, T>>(x, n);
    case Fold::least:
      return simd_row<Step<T, Fold::least, T>>(x, n);
    case Fold::greatest:
      return simd_row<Step<T, Fold::greatest, T>>(x, n);
    default:
      return simd_row<Step<T, Fold::sum, T>>(x, n);
  }
}

double simd_f32(Fold fold, const float* x, std::int64_t n) { return simd_fold(fold, x, n); }
double simd_f64(Fold fold, const double* x, std::int64_t n) { return simd_fold(fold, x, n); }

}  // namespace
}  // namespace rung::reduce_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "rung/ops/reduce/cpu/detail/textbook.hpp"

namespace rung::reduce_cpu {
namespace {
HWY_EXPORT(simd_f32);
HWY_EXPORT(simd_f64);

double estimate(const Reduce::Args& args, const Context&) {
  return Reduce::cost(args).bytes / 40e9;
}

void run(const Reduce::Args& args, Context&) {
  const Fold fold = fold_of(args.operation);
  visit<float, double>(args.x.dtype, [&]<class T>() {
    for_each_result<T>(args, [&](const T* x, std::int64_t, std::int64_t n, double& value, double&) {
      if constexpr (std::is_same_v<T, float>) {
        value = HWY_DYNAMIC_DISPATCH(simd_f32)(fold, x, n);
      } else {
        value = HWY_DYNAMIC_DISPATCH(simd_f64)(fold, x, n);
      }
    });
  });
}

const Rung<Reduce> self{{.name = "simd",
                         .step = 30,
                         .after = "unrolled",
                         .teaching = true,
                         .supports = require_contiguous_rows,
                         .estimate = estimate,
                         .run = run}};
}  // namespace
}  // namespace rung::reduce_cpu
#endif

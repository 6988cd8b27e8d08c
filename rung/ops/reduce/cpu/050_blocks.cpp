// SPDX-License-Identifier: Apache-2.0
// reduce / blocks
//
// Idea     A row is folded block by block: eight vector accumulators within a block, 64 elements
//          per lane; block results are combined in a wider type, f64 for f32 and two f64 (two-sum)
//          for f64.
// Changes  Against pairwise: an error of at most 80 u for any n without recursion, and every
//          operation on f32, f64, i32 and i64. Minima and maxima propagate NaN. Prefetching follows
//          the memory level where x is expected: every line from L3, the first lines of each page
//          from memory.
// Cost     A load and an operation per vector; minima and maxima of floats take half a comparison
//          more.
// Limits   Contiguous rows; one thread. EXPERIMENTS.md lists rejected variants.
#include "rung/cpu/foreach_target.hpp"
#include "rung/ops/reduce/cpu/detail/step-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::reduce_cpu::HWY_NAMESPACE {
namespace {

// A lane accumulates 64 elements of a block; the block's result is added in the wide type. This
// bounds the error of sums: 64 additions per lane, 3 to combine the accumulators, 4 to combine the
// lanes.
constexpr std::int64_t turns = 64;

/// Prefetch distance in lines for Reading::lines and Reading::into_l2.
template <Reading reading>
inline constexpr std::int64_t lines_ahead = reading == Reading::into_l2 ? 64 : 32;
template <Reading reading>
inline constexpr int into_cache = reading == Reading::into_l2 ? 2 : 3;

template <class S>
struct Shape {  // shape of a block, in elements
  // accumulators that cover the latency at two additions per cycle
  static constexpr int chains = 8;
  static constexpr std::int64_t step = chains * S::lanes;
  static constexpr std::int64_t block = turns * step;
};

template <class S>
HWY_INLINE typename S::V join_all(typename S::V (&total)[Shape<S>::chains]) {
#pragma GCC unroll 4
  for (int half = Shape<S>::chains / 2; half > 0; half /= 2) {
#pragma GCC unroll 4
    for (int c = 0; c < half; ++c) total[c] = S::join(total[c], total[c + half]);
  }
  return total[0];
}

/// Detects NaN in minima and maxima of floats. Vector minimum and maximum return their second
/// operand if either is NaN: a total is NaN right after it took a NaN, and loses it with the next
/// element. Therefore pairs of totals are compared after every iteration, half an instruction per
/// vector. The instruction count matters even for data in memory: fewer instructions between loads
/// leave more lines in flight (maximum of 64 MiB, 2-core Zen 5 vCPU: 39 GB/s with a load, a maximum
/// and an addition that propagates NaN per vector, 47 with NanWatch, 48 without a NaN test).
template <class S>
class NanWatch {
 public:
  static constexpr bool on = S::extreme && S::floating;
  /// True if totals are tested after each iteration; otherwise totals propagate NaN and are tested
  /// once at the end.
  static constexpr bool every_turn = on && HWY_TARGET <= HWY_AVX2;
  using V = typename S::V;

  HWY_INLINE NanWatch() {
    for (auto& one : ordered_) one = hn::Eq(hn::Zero(D()), hn::Zero(D()));
  }

  static HWY_INLINE V take(V total, V v) {
    return every_turn ? S::take(total, v) : S::take_with_nan(total, v);
  }

  HWY_INLINE void see(const V (&totals)[Shape<S>::chains]) {
#pragma GCC unroll 4
    for (int pair = 0; pair < pairs; ++pair) see(pair, totals[2 * pair], totals[2 * pair + 1]);
  }
  HWY_INLINE void see(int pair, V a, V b) {
    auto& ordered = ordered_[pair];
#if HWY_TARGET <= HWY_AVX3
    // One instruction: the compiler does not fuse a comparison and an And.
    if constexpr (std::is_same_v<typename S::Lane, float>) {
      ordered.raw = _mm512_mask_cmp_ps_mask(ordered.raw, a.raw, b.raw, _CMP_ORD_Q);
    } else {
      ordered.raw = _mm512_mask_cmp_pd_mask(ordered.raw, a.raw, b.raw, _CMP_ORD_Q);
    }
#elif HWY_TARGET == HWY_AVX2
    if constexpr (std::is_same_v<typename S::Lane, float>) {
      ordered.raw = _mm256_and_ps(ordered.raw, _mm256_cmp_ps(a.raw, b.raw, _CMP_ORD_Q));
    } else {
      ordered.raw = _mm256_and_pd(ordered.raw, _mm256_cmp_pd(a.raw, b.raw, _CMP_ORD_Q));
    }
#else
    ordered = hn::And(ordered, hn::And(hn::Eq(a, a), hn::Eq(b, b)));
#endif
  }

  [[nodiscard]] HWY_INLINE bool met() const {
    const auto left = hn::And(ordered_[0], ordered_[1]);
    const auto right = hn::And(ordered_[2], ordered_[3]);
    return !hn::AllTrue(D(), hn::And(left, right));
  }

 private:
  using D = typename S::D;
  static constexpr int pairs = Shape<S>::chains / 2;
  hn::Mask<D> ordered_[pairs];
};

/// Loads a vector for each accumulator and combines them; consecutive vectors are `apart` elements
/// apart.
template <class S, Reading reading, class Take>
HWY_INLINE void take_step(typename S::V (&totals)[Shape<S>::chains], const typename S::Element* at,
                          [[maybe_unused]] std::int64_t apart, const Take& take) {
  constexpr auto line = static_cast<std::int64_t>(64 / sizeof(*at));
#pragma GCC unroll 8
  for (int c = 0; c < Shape<S>::chains; ++c) {
    if ((reading == Reading::lines || reading == Reading::into_l2) && c * S::lanes % line == 0) {
      __builtin_prefetch(at + c * S::lanes + lines_ahead<reading> * line, 0, into_cache<reading>);
    }
    const std::int64_t place = c * (reading == Reading::streams ? apart : S::lanes);
    totals[c] = take(totals[c], S::load(at + place));
  }
}

/// Calls step over whole pages and prefetches the first lines of the next page: hardware
/// prefetchers stop at page boundaries. Returns the number of elements in these pages.
template <class S, class Step>
HWY_INLINE std::int64_t each_page(const typename S::Element* x, std::int64_t n, const Step& step) {
  constexpr auto line = static_cast<std::int64_t>(64 / sizeof(*x));
  constexpr std::int64_t page = 64 * line;
  std::int64_t i = 0;
  for (; i + page <= n; i += page) {
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) __builtin_prefetch(x + i + page + k * line);
      // Unrolled: loop instructions would occupy reorder-buffer entries that loads need.
#pragma GCC unroll 4
    for (std::int64_t j = 0; j < page; j += Shape<S>::step) step(x + i + j);
  }
  return i;
}

/// Folds one block of up to Shape<S>::block elements; an extreme is NaN if any element is. For
/// Reading::streams, n is a multiple of Shape<S>::step.
template <class S, Reading reading>
HWY_INLINE typename S::Lane fold_block(const typename S::Element* x, std::int64_t n,
                                       std::int64_t apart = S::lanes) {
  using V = typename S::V;
  using Watch = NanWatch<S>;
  constexpr int chains = Shape<S>::chains;
  constexpr std::int64_t lanes = S::lanes;
  Watch watch;
  V total;
  std::int64_t i = 0;
  if (n >= Shape<S>::step) {
    V totals[chains];
#pragma GCC unroll 8
    for (int c = 0; c < chains; ++c) totals[c] = S::identity();
    const auto step = [&](const auto* at) __attribute__((always_inline)) {
      take_step<S, reading>(totals, at, apart, Watch::take);
      if constexpr (Watch::every_turn) watch.see(totals);
    };
    if constexpr (reading == Reading::pages) i = each_page<S>(x, n, step);
    const auto* at = x + i;
    for (; i + Shape<S>::step <= n; i += Shape<S>::step) {
      step(at);
      at += reading == Reading::streams ? lanes : Shape<S>::step;
    }
    if constexpr (Watch::on && !Watch::every_turn) watch.see(totals);
    total = join_all<S>(totals);
  } else if (n >= lanes) {
    const V v = S::load(x);
    i = lanes;
    // The first vector unchanged, or squared.
    total = S::fold == Fold::squares ? S::take(S::identity(), v) : v;
    if constexpr (Watch::on) watch.see(0, v, v);
  } else {
    total = S::identity();
  }
  for (; i + lanes <= n; i += lanes) {
    total = Watch::take(total, S::load(x + i));
    if constexpr (Watch::on) watch.see(0, total, total);
  }
  if (i < n) {
    total = Watch::take(total, S::load_some(x + i, n - i));
    if constexpr (Watch::on) watch.see(0, total, total);
  }
  if constexpr (Watch::on) {
    if (HWY_UNLIKELY(watch.met())) return std::numeric_limits<typename S::Lane>::quiet_NaN();
  }
  return S::across(total);
}

#if HWY_TARGET <= HWY_AVX3
/// Returns the minimum or maximum of a long row of floats from memory, NaN if any element is NaN.
/// Minimum and maximum instructions raise the invalid flag for a NaN: a single read of that flag,
/// which waits for all instructions in flight, replaces a comparison per pair of vectors (64 MiB:
/// 1.09 of the speed of the fastest peer instead of 1.0).
template <class S>
typename S::Lane long_extreme(const typename S::Element* x, std::int64_t n) {
  constexpr unsigned invalid = 1;
  typename S::V totals[Shape<S>::chains];
  // Keeps the compiler, which does not model the flags, from moving arithmetic across their
  // accesses.
  const auto fence = [&]() __attribute__((always_inline)) {
#pragma GCC unroll 8
    for (auto& total : totals) asm volatile("" : "+v"(total.raw));
  };
  for (auto& total : totals) total = S::identity();
  const unsigned before = _mm_getcsr();
  _mm_setcsr(before & ~invalid);
  fence();
  const std::int64_t whole = each_page<S>(
      x, n, [&](const auto* at) __attribute__((always_inline)) {
        take_step<S, Reading::pages>(totals, at, 0, S::take);
      });
  fence();
  const unsigned after = _mm_getcsr();
  _mm_setcsr(before | after);
  if ((after & invalid) != 0) return std::numeric_limits<typename S::Lane>::quiet_NaN();
  const auto best = S::across(join_all<S>(totals));
  const auto rest = fold_block<S, Reading::near>(x + whole, n - whole);
  return wins(S::fold, rest, best) ? rest : best;
}
#endif

/// Returns the sum of squares of a block; recomputes it in f64 if f32 overflowed or underflowed.
template <class S, Reading reading>
HWY_INLINE double square_sum(const typename S::Element* x, std::int64_t n, std::int64_t apart) {
  const auto sum = fold_block<S, reading>(x, n, apart);
  if constexpr (std::is_same_v<typename S::Element, float>) {
    if (HWY_UNLIKELY(!squares_suffice(sum))) {
      using Wider = Step<float, Fold::squares, double>;
      // The tail of Reading::streams has a single accumulator: it is shorter than one step of
      // floats, but may exceed a step of doubles.
      if (reading != Reading::streams || n < Shape<S>::step) {
        return fold_block<Wider, Reading::near>(x, n);
      }
      return fold_block<Wider, Reading::streams>(x, n, apart);
    }
  }
  return sum;
}

template <class T>
HWY_INLINE bool is_nan(T value) {
  if constexpr (std::is_integral_v<T>) {
    return false;
  } else {
    return std::isnan(value);
  }
}

/// Returns the position of the first element equal to `value` (for NaN: of any NaN), or -1.
template <class T>
HWY_INLINE std::int64_t find(const T* x, std::int64_t n, T value) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  const auto wanted = hn::Set(d, value);
  const bool any_nan = is_nan(value);
  const auto hits = [&](auto v) HWY_ATTR {
    if constexpr (!std::is_integral_v<T>) {
      if (any_nan) return hn::IsNaN(v);
    }
    return hn::Eq(v, wanted);
  };
  for (; i + lanes <= n; i += lanes) {
    const auto hit = hits(hn::LoadU(d, x + i));
    if (HWY_UNLIKELY(!hn::AllFalse(d, hit))) return i + hn::FindFirstTrue(d, hit);
  }
  for (; i < n; ++i) {
    if (any_nan ? is_nan(x[i]) : x[i] == value) return i;
  }
  return -1;
}

/// Calls f(x, n, apart) for each block of a row; for Reading::streams, each accumulator reads a
/// contiguous part of the row.
template <class S, Reading reading, class F>
HWY_INLINE void each_block(const typename S::Element* x, std::int64_t n, const F& f) {
  constexpr std::int64_t block = Shape<S>::block;
  std::int64_t i = 0;
  if constexpr (reading == Reading::streams) {
    const std::int64_t run = n / Shape<S>::step * S::lanes;  // elements per accumulator
    for (; i < run; i += turns * S::lanes) {
      f(x + i, std::min(turns * S::lanes, run - i) * Shape<S>::chains, run);
    }
    i = run * Shape<S>::chains;
    if (i < n) f(x + i, n - i, S::lanes);  // less than a step: a single accumulator
  } else {
    for (; i < n; i += block) f(x + i, std::min(block, n - i), S::lanes);
  }
}

template <class S, Reading reading>
HWY_INLINE void fold_row(const typename S::Element* x, std::int64_t n, bool arg,
                         Wide<typename S::Element>& value, Wide<typename S::Element>& rest) {
  using T = typename S::Element;
  using W = Wide<T>;
  if constexpr (S::extreme) {
#if HWY_TARGET <= HWY_AVX3
    constexpr std::int64_t long_row = 32768;
    if constexpr (S::floating && reading == Reading::pages) {
      if (n >= long_row && !arg) {
        value = long_extreme<S>(x, n);
        rest = 0;
        return;
      }
    }
#endif
    T best = reduce_cpu::identity<T>(S::fold);
    const T* where = x;  // start of the block that holds the best element
    each_block<S, reading>(
        x,
        n, [&](const T* at, std::int64_t count, std::int64_t apart) __attribute__((always_inline)) {
          const T one = fold_block<S, reading>(at, count, apart);
          if (!wins(S::fold, one, best)) return;
          best = one;
          where = at;
        });
    // An empty row has the wide type's extreme: finish() clamps it.
    value = n > 0 ? static_cast<W>(best) : reduce_cpu::identity<W>(S::fold);
    rest = 0;
    if (arg) rest = n == 0 ? W{-1} : static_cast<W>(where - x + find(where, x + n - where, best));
  } else {
    value = reduce_cpu::identity<W>(S::fold);
    rest = 0;
    const auto one =
        [](const T* at, std::int64_t count, std::int64_t apart) __attribute__((always_inline)) {
      if constexpr (S::fold == Fold::squares) {
        return square_sum<S, reading>(at, count, apart);
      } else {
        return static_cast<W>(fold_block<S, reading>(at, count, apart));
      }
    };
    if (reading != Reading::streams && n <= Shape<S>::block) {
      if (n > 0) value = one(x, n, S::lanes);
      return;
    }
    each_block<S, reading>(
        x,
        n, [&](const T* at, std::int64_t count, std::int64_t apart) __attribute__((always_inline)) {
          if constexpr (S::fold == Fold::product) {
            value = reduce_cpu::multiply(value, one(at, count, apart));
          } else {
            add_exactly(value, rest, one(at, count, apart));
          }
        });
  }
}

/// Returns the product modulo 2^64 in four scalar accumulators: not every instruction set
/// multiplies vectors of 64-bit integers.
template <class T>
std::int64_t integer_product(const T* x, std::int64_t n) {
  std::uint64_t total[4] = {1, 1, 1, 1};
  std::int64_t i = 0;
  for (; i + 4 <= n; i += 4) {
    for (int c = 0; c < 4; ++c) {
      total[c] *= static_cast<std::uint64_t>(static_cast<std::int64_t>(x[i + c]));
    }
  }
  for (; i < n; ++i) total[0] *= static_cast<std::uint64_t>(static_cast<std::int64_t>(x[i]));
  return static_cast<std::int64_t>(total[0] * total[1] * (total[2] * total[3]));
}

template <class T, class RowFold>
HWY_INLINE void each_row(const Rows& rows, const RowFold& fold) {
  using W = Wide<T>;
  const T* x = static_cast<const T*>(rows.x);
  W* value = static_cast<W*>(rows.value);
  W* rest = static_cast<W*>(rows.rest);
  if (rows.bounds != nullptr) {
    for (std::int64_t r = 0; r < rows.rows; ++r) {
      fold(x + rows.bounds[r], rows.bounds[r + 1] - rows.bounds[r], value[r], rest[r]);
    }
  } else {
    for (std::int64_t r = 0; r < rows.rows; ++r) {
      fold(x + r * rows.stride, rows.length, value[r], rest[r]);
    }
  }
}

template <class S>
HWY_NOINLINE void rows_of(const Rows& rows) {
  using T = typename S::Element;
  using W = Wide<T>;
  const auto fold = [&]<Reading reading>() {
    each_row<T>(rows, [&](const T* x, std::int64_t n, W& value, W& rest) {
      fold_row<S, reading>(x, n, rows.arg, value, rest);
    });
  };
  switch (rows.reading) {
    case Reading::near:
      return fold.template operator()<Reading::near>();
    case Reading::streams:
      return fold.template operator()<Reading::streams>();
    case Reading::lines:
      return fold.template operator()<Reading::lines>();
    case Reading::pages:
      return fold.template operator()<Reading::pages>();
    case Reading::into_l2:
      return fold.template operator()<Reading::into_l2>();
  }
}

void blocks(DType element, Fold fold, const Rows& rows) {
  visit<float, double, std::int32_t, std::int64_t>(element, [&]<class T>() HWY_ATTR {
    if (fold == Fold::least) return rows_of<Step<T, Fold::least, T>>(rows);
    if (fold == Fold::greatest) return rows_of<Step<T, Fold::greatest, T>>(rows);
    if constexpr (std::is_integral_v<T>) {
      if (fold == Fold::product) {
        return each_row<T>(rows, [](const T* x, std::int64_t n, std::int64_t& value,
                                    std::int64_t&) { value = integer_product(x, n); });
      }
      rows_of<Step<T, Fold::sum, std::int64_t>>(rows);
    } else {
      if (fold == Fold::product) return rows_of<Step<T, Fold::product, T>>(rows);
      if (fold == Fold::squares) return rows_of<Step<T, Fold::squares, T>>(rows);
      rows_of<Step<T, Fold::sum, T>>(rows);
    }
  });
}

}  // namespace
}  // namespace rung::reduce_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rung::reduce_cpu {
namespace {
HWY_EXPORT(blocks);
}  // namespace

void fold_rows(DType element, Fold fold, const Rows& rows) {
  HWY_DYNAMIC_DISPATCH(blocks)(element, fold, rows);
}

/// Returns how to prefetch x, `bytes` in size. Prefetching every line pays from L3 (4 MiB: 127 GB/s
/// instead of 110 on a 2-core Zen 5 vCPU) and costs from memory (512 MiB: 35 GB/s instead of 40),
/// where pages are prefetched. A 2-core Zen 4 vCPU is the opposite: from L3 60 GB/s with prefetches
/// and 74 without, from memory 18 by pages and 22 by lines into L2 (two threads: 26 and 40).
Reading reading_of(double bytes) {
  constexpr double within_l2 = 512 << 10;
  constexpr double within_l3 = 16 << 20;
  if (cpu::prefetches_into_l2()) return bytes <= within_l3 ? Reading::near : Reading::into_l2;
  return bytes <= within_l2 ? Reading::near : bytes <= within_l3 ? Reading::lines : Reading::pages;
}

namespace {

Support supports(const Reduce::Args& args, const Context&) {
  if (args.has_segments()) return unsupported("no segments");
  return has_plain_rows(args) ? supported : unsupported("contiguous rows of f32, f64, i32 and i64");
}

Work work(const Reduce::Args& args, const Context&) { return row_facts(args, 1); }

void run(const Reduce::Args& args, Context&) {
  const auto size = static_cast<std::int64_t>(size_of(args.x.dtype));
  const std::int64_t length = args.terms.size();
  with_wide(args.x.dtype, [&]<class W>() {
    for (std::int64_t result = 0; result < args.results(); ++result) {
      std::int64_t at[2];
      args.kept.offsets(result, at);
      W value;
      W rest;
      fold_rows(args.x.dtype, fold_of(args.operation),
                {.x = static_cast<const std::byte*>(args.x.data) + at[0] * size,
                 .stride = 0,
                 .rows = 1,
                 .length = length,
                 .value = &value,
                 .rest = &rest,
                 .arg = args.is_arg(),
                 .reading = reading_of(static_cast<double>(args.results() * length * size))});
      store_results(args, at[1], 0, 1, &value, &rest, length);
    }
  });
}

const Rung<Reduce> self{{.name = "blocks",
                         .step = 50,
                         .after = "pairwise",
                         .supports = supports,
                         .work = work,
                         .run = run}};
}  // namespace
}  // namespace rung::reduce_cpu
#endif

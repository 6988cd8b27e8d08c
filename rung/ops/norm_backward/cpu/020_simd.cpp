// SPDX-License-Identifier: Apache-2.0
// norm_backward / SIMD
//
// Idea     Use vectors along contiguous rows: one pass for the two means, one for dx, which also
//          adds the row's terms of dgamma and dbeta to sums in cache. Rows are grouped in up to 64
//          chunks with separate sums, which keeps chains of additions short and their order
//          independent of the threads.
// Changes  Against naive: x and dy are read from memory once, along their rows.
// Cost     x, dy and dx once; per row, 2 to 4 n elements of sums are read and written in cache.
// Limits   Contiguous rows; one thread.
#include "rung/cpu/foreach_target.hpp"

#include "rung/cpu/row_work.hpp"
#include "rung/ops/norm/shared/cpu/row-inl.hpp"
#include "rung/ops/norm_backward/cpu/detail/call.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::norm_backward_cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;
namespace row = norm_cpu::HWY_NAMESPACE;
using cpu::HWY_NAMESPACE::load_as;
using cpu::HWY_NAMESPACE::load_as_n;
using cpu::HWY_NAMESPACE::store_as;
using cpu::HWY_NAMESPACE::store_as_n;
using norm_cpu::Scale;
using row::lanes;
using row::Tag;
using row::Wide;

constexpr int chains = 4;  // per sum, of two sums: 8 additions in flight

/// Returns the scale of a row, z = (x - center) rstd + shift, from the given statistics or
/// recomputed.
template <class T>
Scale<Wide<T>> scale_of(const NormBackward::Args& args, const std::int64_t (&at)[5], const T* x,
                        std::int64_t n) {
  using W = Wide<T>;
  if (args.rstd.data != nullptr) {
    const W rstd = static_cast<const W*>(args.rstd.data)[at[NormBackward::row_rstd]];
    const W mean = args.mean.data != nullptr
                       ? static_cast<const W*>(args.mean.data)[at[NormBackward::row_mean]]
                       : W{0};
    // rstd is 0 if the squares of the row overflow; x - mean may then overflow, too.
    return {rstd == 0 ? W{0} : mean, rstd, 0, mean};
  }
  const bool layer = args.kind == NormKind::layer;
  const auto moments_of = [&](std::int64_t first, std::int64_t count) HWY_ATTR {
    return row::moments_of<T>(x + first, count, layer, {x + first});
  };
  if (n <= norm_cpu::block) return norm_cpu::scale_of(moments_of(0, n), n, args.epsilon);
  norm_cpu::CombinedMoments<W> combined(n);
  for (std::int64_t first = 0; first < n; first += norm_cpu::block) {
    const std::int64_t length = std::min(norm_cpu::block, n - first);
    combined.add(moments_of(first, length), length);
  }
  return combined.scale(args.epsilon);
}

/// mean(g) and mean(g z) of a row, with g = dy gamma; computed by means_of().
template <class W>
struct Means {
  W g;
  W gz;
};
template <class T>
HWY_INLINE Means<Wide<T>> means_of(const T* x, const T* dy, const Wide<T>* gamma, std::int64_t n,
                                   const Scale<Wide<T>>& scale, const T* next) {
  const Tag<T> d;
  using V = hn::Vec<Tag<T>>;
  constexpr std::int64_t step = lanes<T>;
  const V center = hn::Set(d, scale.center);
  const V rstd = hn::Set(d, scale.rstd);
  const V shift = hn::Set(d, scale.shift);
  V sum_g[chains];
  V sum_gz[chains];
#pragma GCC unroll 4
  for (int k = 0; k < chains; ++k) sum_g[k] = sum_gz[k] = hn::Zero(d);
  std::int64_t i = 0;
  for (; i + chains * step <= n; i += chains * step) {
    row::Next<T>{next}.prefetch(i, chains * step);
#pragma GCC unroll 4
    for (int k = 0; k < chains; ++k) {
      const std::int64_t at = i + k * step;
      const V z = hn::MulAdd(hn::Sub(load_as(d, x + at), center), rstd, shift);
      V g = load_as(d, dy + at);
      if (gamma != nullptr) g = hn::Mul(g, hn::LoadU(d, gamma + at));
      sum_g[k] = hn::Add(sum_g[k], g);
      sum_gz[k] = hn::MulAdd(g, z, sum_gz[k]);
    }
  }
  for (; i < n; i += step) {
    const auto count = static_cast<std::size_t>(std::min(step, n - i));
    const V z = hn::MulAdd(hn::Sub(load_as_n(d, x + i, count), center), rstd, shift);
    V g = load_as_n(d, dy + i, count);  // zero past the end, so both terms are zero
    if (gamma != nullptr) g = hn::Mul(g, load_as_n(d, gamma + i, count));
    sum_g[0] = hn::Add(sum_g[0], g);
    sum_gz[0] = hn::Add(sum_gz[0], hn::IfThenElseZero(hn::FirstN(d, count), hn::Mul(g, z)));
  }
  const V g = hn::Add(hn::Add(sum_g[0], sum_g[1]), hn::Add(sum_g[2], sum_g[3]));
  const V gz = hn::Add(hn::Add(sum_gz[0], sum_gz[1]), hn::Add(sum_gz[2], sum_gz[3]));
  const Wide<T> part = 1 / static_cast<Wide<T>>(n);
  return {hn::GetLane(hn::SumOfLanes(d, g)) * part, hn::GetLane(hn::SumOfLanes(d, gz)) * part};
}

/// Writes dx of a row and, if `sums`, adds the row's terms to the sums of dgamma and dbeta.
template <class T, bool sums>
HWY_INLINE void write(const T* x, const T* dy, T* dx, const Wide<T>* gamma, Wide<T>* sum_dgamma,
                      Wide<T>* sum_dbeta, std::int64_t n, const Scale<Wide<T>>& scale,
                      const Means<Wide<T>>& means, const T* next) {
  const Tag<T> d;
  using V = hn::Vec<Tag<T>>;
  constexpr std::int64_t step = lanes<T>;
  const V center = hn::Set(d, scale.center);
  const V rstd = hn::Set(d, scale.rstd);
  const V shift = hn::Set(d, scale.shift);
  const V mean_g = hn::Set(d, means.g);
  const V mean_gz = hn::Set(d, means.gz);
  std::int64_t i = 0;
  for (; i + step <= n; i += step) {
    row::Next<T>{next}.prefetch(i, step);
    const V z = hn::MulAdd(hn::Sub(load_as(d, x + i), center), rstd, shift);
    const V dy_i = load_as(d, dy + i);
    const V g = gamma != nullptr ? hn::Mul(dy_i, hn::LoadU(d, gamma + i)) : dy_i;
    if constexpr (sums) {
      hn::StoreU(hn::MulAdd(dy_i, z, hn::LoadU(d, sum_dgamma + i)), d, sum_dgamma + i);
      hn::StoreU(hn::Add(dy_i, hn::LoadU(d, sum_dbeta + i)), d, sum_dbeta + i);
    }
    store_as(hn::Mul(rstd, hn::NegMulAdd(z, mean_gz, hn::Sub(g, mean_g))), d, dx + i);
  }
  if (i < n) {
    const auto count = static_cast<std::size_t>(n - i);
    const V z = hn::MulAdd(hn::Sub(load_as_n(d, x + i, count), center), rstd, shift);
    const V dy_i = load_as_n(d, dy + i, count);
    const V g = gamma != nullptr ? hn::Mul(dy_i, load_as_n(d, gamma + i, count)) : dy_i;
    if constexpr (sums) {
      store_as_n(hn::MulAdd(dy_i, z, load_as_n(d, sum_dgamma + i, count)), d, sum_dgamma + i,
                 count);
      store_as_n(hn::Add(dy_i, load_as_n(d, sum_dbeta + i, count)), d, sum_dbeta + i, count);
    }
    store_as_n(hn::Mul(rstd, hn::NegMulAdd(z, mean_gz, hn::Sub(g, mean_g))), d, dx + i, count);
  }
}

template <class T>
void rows_of(const GradientCall& call, cpu::Range chunks) {
  using W = Wide<T>;
  const NormBackward::Args& args = *call.args;
  const std::int64_t n = call.n;
  const auto* gamma = static_cast<const W*>(call.gamma);
  const auto base = [](const auto& tensor) { return static_cast<const T*>(tensor.data); };
  for (std::int64_t chunk = chunks.begin; chunk < chunks.end; ++chunk) {
    const cpu::Range range =
        cpu::part_of(call.rows, static_cast<int>(chunk), static_cast<int>(call.chunks));
    W* sum_dgamma = nullptr;
    W* sum_dbeta = nullptr;
    if (call.wants_sums()) {
      sum_dgamma = static_cast<W*>(call.sums) + chunk * 2 * n;
      sum_dbeta = sum_dgamma + n;
      std::fill_n(sum_dgamma, 2 * n, W{0});
    }
    for (std::int64_t index = range.begin; index < range.end; ++index) {
      std::int64_t at[5];
      std::int64_t then[5];
      call.lines.rows.offsets(index, at);
      call.lines.rows.offsets(std::min(index + 1, range.end - 1), then);
      const T* x = base(args.x) + at[NormBackward::row_x];
      const T* dy = base(args.dy) + at[NormBackward::row_dy];
      T* dx = static_cast<T*>(args.dx.data) + at[NormBackward::row_dx];
      const auto scale = scale_of(args, at, x, n);
      auto means = means_of(x, dy, gamma, n, scale, base(args.x) + then[NormBackward::row_x]);
      if (args.kind == NormKind::rms) means.g = 0;
      const T* next = base(args.dy) + then[NormBackward::row_dy];
      if (sum_dgamma != nullptr) {
        write<T, true>(x, dy, dx, gamma, sum_dgamma, sum_dbeta, n, scale, means, next);
      } else {
        write<T, false>(x, dy, dx, gamma, nullptr, nullptr, n, scale, means, next);
      }
    }
  }
}

template <class T>
void columns_of(const GradientCall& call, cpu::Range columns) {
  using W = Wide<T>;
  const NormBackward::Args& args = *call.args;
  auto* sums = static_cast<W*>(call.sums);
  const std::int64_t step = 2 * call.n;
  const auto finish = [&](const TensorRef& tensor, W* first, int which) {
    if (tensor.data == nullptr) return;
    for (std::int64_t chunk = 1; chunk < call.chunks; ++chunk) {
      for (std::int64_t i = columns.begin; i < columns.end; ++i)
        first[i] += first[chunk * step + i];
    }
    std::int64_t at[6];
    for (std::int64_t i = columns.begin; i < columns.end; ++i) {
      call.lines.columns.offsets(i, at);
      if (tensor.dtype == dtype_of<T>) {
        static_cast<T*>(tensor.data)[at[which]] = static_cast<T>(first[i]);
      } else {
        static_cast<W*>(tensor.data)[at[which]] = first[i];
      }
    }
  };
  finish(args.dgamma, sums, NormBackward::column_dgamma);
  finish(args.dbeta, sums + call.n, NormBackward::column_dbeta);
}

}  // namespace

void rows(const GradientCall& call, cpu::Range chunks) {
  visit<float, double, f16, bf16>(call.args->x.dtype, [&]<class T>() { rows_of<T>(call, chunks); });
}
void columns(const GradientCall& call, cpu::Range columns) {
  visit<float, double, f16, bf16>(call.args->x.dtype,
                                  [&]<class T>() { columns_of<T>(call, columns); });
}

}  // namespace rung::norm_backward_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rung {
namespace norm_backward_cpu {
HWY_EXPORT(rows);
HWY_EXPORT(columns);
void chunks_of_rows(const GradientCall& call, cpu::Range chunks) {
  HWY_DYNAMIC_DISPATCH(rows)(call, chunks);
}
void sums_of_columns(const GradientCall& call, cpu::Range all) {
  HWY_DYNAMIC_DISPATCH(columns)(call, all);
}

Support supports(const NormBackward::Args& args, const Context&) {
  const NormBackward::Lines lines = NormBackward::lines_of(args);
  if (lines.columns.rank == 0) return supported;
  bool contiguous = lines.columns.rank == 1;
  for (const int tensor :
       {NormBackward::column_x, NormBackward::column_dy, NormBackward::column_dx}) {
    contiguous = contiguous && lines.columns.strides[tensor][0] == 1;
  }
  return contiguous ? supported : unsupported("the rows of x, dy and dx must be contiguous");
}

Work facts(const NormBackward::Args& args, int threads) {
  const NormBackward::Lines lines = NormBackward::lines_of(args);
  return cpu::row_facts(lines.rows.size(), lines.columns.size(), true, args.x.dtype,
                        args.x.size() < min_elements ? 1 : threads);
}

GradientCall::GradientCall(const NormBackward::Args& a, Context& context)
    : args(&a),
      lines(NormBackward::lines_of(a)),
      rows(lines.rows.size()),
      n(lines.columns.size()),
      gamma(a.gamma.data) {
  const DType arithmetic = a.x.dtype == DType::f64 ? DType::f64 : DType::f32;
  const std::size_t size = size_of(arithmetic);
  // About 32 rows per chunk keep the chains of additions short; the chunks' sums take at most 256
  // MiB, unless eight chunks need more.
  constexpr std::int64_t max_bytes = std::int64_t{256} << 20;
  const std::int64_t fits =
      max_bytes / (2 * std::max<std::int64_t>(n, 1) * static_cast<std::int64_t>(size));
  chunks = std::clamp<std::int64_t>((rows + 31) / 32, 1, std::clamp<std::int64_t>(fits, 8, 64));

  const Collapsed<6>& columns = lines.columns;
  const bool ready =
      columns.is_contiguous<NormBackward::column_gamma>() && a.gamma.dtype == arithmetic;
  const bool copies = gamma != nullptr && !ready;
  const std::size_t row_bytes = static_cast<std::size_t>(n) * size;
  const std::size_t gamma_bytes = copies ? round_up(row_bytes, 64U) : 0;
  const std::size_t sum_bytes = wants_sums() ? 2 * static_cast<std::size_t>(chunks) * row_bytes : 0;
  auto* memory = static_cast<std::byte*>(context.workspace(gamma_bytes + sum_bytes));
  sums = memory + gamma_bytes;
  if (!copies) return;
  gamma = memory;
  visit<float, double, f16, bf16>(a.gamma.dtype, [&]<class T>() {
    auto* copy = reinterpret_cast<Accumulator<T>*>(memory);
    for (std::int64_t i = 0; i < n; ++i) {
      const std::int64_t at = columns.template offset<NormBackward::column_gamma>(i);
      copy[i] = static_cast<Accumulator<T>>(static_cast<const T*>(a.gamma.data)[at]);
    }
  });
}
}  // namespace norm_backward_cpu

namespace {
using namespace norm_backward_cpu;

Work work(const NormBackward::Args& args, const Context&) { return facts(args, 1); }

void run(const NormBackward::Args& args, Context& context) {
  const GradientCall call(args, context);
  chunks_of_rows(call, {0, call.chunks});
  if (call.wants_sums()) sums_of_columns(call, {0, call.n});
}

const Rung<NormBackward> self{{.name = "simd",
                               .step = 20,
                               .after = "naive",
                               .supports = norm_backward_cpu::supports,
                               .work = work,
                               .run = run}};

}  // namespace
}  // namespace rung
#endif

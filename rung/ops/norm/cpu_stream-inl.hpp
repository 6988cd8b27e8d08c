// SPDX-License-Identifier: Apache-2.0
//
// Contiguous rows whose y goes past the caches: one is written while the next is read.
#if defined(RUNG_OPS_NORM_CPU_STREAM_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef RUNG_OPS_NORM_CPU_STREAM_INL_HPP_
#undef RUNG_OPS_NORM_CPU_STREAM_INL_HPP_
#else
#define RUNG_OPS_NORM_CPU_STREAM_INL_HPP_
#endif

#include "rung/ops/norm/cpu_row-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::norm_cpu::HWY_NAMESPACE {
namespace {

/// gamma and beta, or a vector of ones or zeros that is loaded again and again.
template <class T>
class Weights {
 public:
  HWY_INLINE Weights(const Wide<T>* gamma, const Wide<T>* beta)
      : gamma_(gamma != nullptr ? gamma : one_),
        beta_(beta != nullptr ? beta : zero_),
        gamma_step_(gamma != nullptr ? 1 : 0),
        beta_step_(beta != nullptr ? 1 : 0) {
    std::fill_n(one_, lanes<T>, Wide<T>{1});
  }
  HWY_INLINE hn::Vec<Tag<T>> gamma(std::int64_t at) const {
    return hn::LoadU(Tag<T>(), gamma_ + at * gamma_step_);
  }
  HWY_INLINE hn::Vec<Tag<T>> beta(std::int64_t at) const {
    return hn::LoadU(Tag<T>(), beta_ + at * beta_step_);
  }

 private:
  alignas(64) Wide<T> one_[lanes<T>];
  alignas(64) Wide<T> zero_[lanes<T>] = {};
  const Wide<T>* gamma_;
  const Wide<T>* beta_;
  std::int64_t gamma_step_;
  std::int64_t beta_step_;
};

/// The few elements that are not written in turns.
template <class T>
HWY_NOINLINE void write_alone(const T* s, T* y, std::int64_t at, std::int64_t n,
                              const Scale<Wide<T>>& scale, const Wide<T>* gamma,
                              const Wide<T>* beta) {
  if (n == 0) return;
  write<T, true>(s + at, y + at, n, scale, gamma != nullptr ? gamma + at : nullptr,
                 beta != nullptr ? beta + at : nullptr, {});
}

/// Adds the squares of elements [from, n) of s, in the order of moments_about; `from` is a multiple
/// of what all chains take in a turn.
template <class T, class V>
HWY_INLINE void add_squares(V (&sums)[chains], const T* s, std::int64_t from, std::int64_t n) {
  const Tag<T> d;
  constexpr std::int64_t step = lanes<T>;
  std::int64_t i = from;
  for (; i + chains * step <= n; i += chains * step) {
#pragma GCC unroll 8
    for (int k = 0; k < chains; ++k) {
      const V v = load_as(d, s + i + k * step);
      sums[k] = hn::MulAdd(v, v, sums[k]);
    }
  }
  for (; i + step <= n; i += step) {
    const V v = load_as(d, s + i);
    sums[0] = hn::MulAdd(v, v, sums[0]);
  }
  if (i < n) {
    const V v = load_as_n(d, s + i, static_cast<std::size_t>(n - i));
    sums[1] = hn::MulAdd(v, v, sums[1]);
  }
}

/// What is read while a row is written: elements of the next row, and of the one behind it.
template <class T>
struct Incoming {
  const T* next;
  const T* behind;
  std::int64_t n;  // of a row
};

/// Bytes of x between what is read and what is asked for (4096x4096, RMS, on a 2-core Zen 5 vCPU:
/// 4.3 ms with none, 2.9 with 4 KiB, 2.7 with 8, 3.0 with 12).
constexpr std::int64_t asked_ahead = 8 << 10;

/// Writes a row of y from s, past the caches, and sums up the squares of the next. Stores and loads
/// take turns, vector by vector: in bunches of 8 each waits for the other (3.0 ms), and row by row
/// even more (3.6). y is written from its end, because what of s was read last is in L1 still.
template <class T>
HWY_NOINLINE Wide<T> write_and_add_squares(const T* s, T* y, const Scale<Wide<T>>& scale,
                                           const Wide<T>* gamma, const Wide<T>* beta,
                                           const Incoming<T>& in) {
  const Tag<T> d;
  using V = hn::Vec<Tag<T>>;
  constexpr std::int64_t step = lanes<T>;
  constexpr std::int64_t ahead = asked_ahead / static_cast<std::int64_t>(sizeof(T));
  const StoredTag<T, Tag<T>> stored;
  using Bits = hn::TFromD<decltype(stored)>;
  const V center = hn::Set(d, scale.center);
  const V rstd = hn::Set(d, scale.rstd);
  const V shift = hn::Set(d, scale.shift);
  const Weights<T> weights(gamma, beta);
  V sums[chains];
#pragma GCC unroll 8
  for (int k = 0; k < chains; ++k) sums[k] = hn::Zero(d);

  constexpr auto vector = static_cast<std::uintptr_t>(step) * sizeof(T);
  const std::uintptr_t past = reinterpret_cast<std::uintptr_t>(y) % vector;
  const auto head = static_cast<std::int64_t>((vector - past) % vector / sizeof(T));
  const std::int64_t whole = (in.n - head) / (chains * step) * (chains * step);
  for (std::int64_t i = 0; i < whole; i += chains * step) {
    const std::int64_t out = head + whole - chains * step - i;
    const T* ask = i + ahead < in.n ? in.next + i + ahead : in.behind + (i + ahead - in.n);
#pragma GCC unroll 8
    for (int k = 0; k < chains; ++k) {
      __builtin_prefetch(ask + k * step);
      const V v = load_as(d, in.next + i + k * step);
      sums[k] = hn::MulAdd(v, v, sums[k]);
      const std::int64_t at = out + k * step;
      const V z = hn::MulAdd(hn::Sub(load_as(d, s + at), center), rstd, shift);
      const V result = hn::MulAdd(z, weights.gamma(at), weights.beta(at));
      hn::Stream(narrow<T>(d, result), stored, reinterpret_cast<Bits*>(y + at));
    }
  }
  // Before the first whole vector, and behind the last turn.
  write_alone(s, y, 0, head, scale, gamma, beta);
  write_alone(s, y, head + whole, in.n - head - whole, scale, gamma, beta);
  add_squares(sums, in.next, whole, in.n);
  return total(d, sums);
}

/// Rows of RMS norm from `index` on, each written while the squares of the next are summed up. The
/// same for layer norm, with a pass for the moments between two rows, takes 5.7 ms in place of 3.2:
/// that pass has no share in reading or writing, and waits for both.
template <class T>
void rows_streamed(const RowsJob& job, std::int64_t index) {
  const Call& call = *job.call;
  const Norm::Args& args = *call.args;
  const auto* gamma = static_cast<const Wide<T>*>(call.gamma);
  const auto* beta = static_cast<const Wide<T>*>(call.beta);
  const auto x_of = [&](std::int64_t row) {
    return static_cast<const T*>(args.x.data) +
           call.lines.rows.template offset<norm_lines::row_x>(std::min(row, job.end - 1));
  };
  Row<T> row = row_at<T>(call, index);
  auto scale =
      scale_of(moments_of<T>(row.x, call.n, false, {x_of(index + 1)}), call.n, args.epsilon);
  for (;; ++index) {
    note<T>(call, index, scale);
    if (index + 1 == job.end) break;
    const Row<T> next = row_at<T>(call, index + 1);
    Moments<Wide<T>> moments{};
    moments.squares =
        write_and_add_squares(row.x, row.y, scale, gamma, beta, {next.x, x_of(index + 2), call.n});
    scale = scale_of(moments, call.n, args.epsilon);
    row = next;
  }
  write_alone(row.x, row.y, 0, call.n, scale, gamma, beta);
}

}  // namespace
}  // namespace rung::norm_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the guard flips with each target

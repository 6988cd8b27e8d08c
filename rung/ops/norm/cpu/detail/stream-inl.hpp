// SPDX-License-Identifier: Apache-2.0
//
// Contiguous rows in a software pipeline: one is written, with non-temporal stores or ordinary
// ones, while the next are read.
#if defined(RUNG_OPS_NORM_CPU_STREAM_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef RUNG_OPS_NORM_CPU_STREAM_INL_HPP_
#undef RUNG_OPS_NORM_CPU_STREAM_INL_HPP_
#else
#define RUNG_OPS_NORM_CPU_STREAM_INL_HPP_
#endif

#include "rung/cpu/ahead.hpp"
#include "rung/ops/norm/shared/cpu/row-inl.hpp"

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
        gamma_mask_(gamma != nullptr ? -1 : 0),
        beta_mask_(beta != nullptr ? -1 : 0) {
    std::fill_n(one_, lanes<T>, Wide<T>{1});
  }
  HWY_INLINE hn::Vec<Tag<T>> gamma(std::int64_t at) const {
    return hn::LoadU(Tag<T>(), gamma_ + (at & gamma_mask_));
  }
  HWY_INLINE hn::Vec<Tag<T>> beta(std::int64_t at) const {
    return hn::LoadU(Tag<T>(), beta_ + (at & beta_mask_));
  }
  /// Null where there are none.
  const Wide<T>* gamma_from(std::int64_t at) const {
    return gamma_mask_ != 0 ? gamma_ + at : nullptr;
  }
  const Wide<T>* beta_from(std::int64_t at) const { return beta_mask_ != 0 ? beta_ + at : nullptr; }

 private:
  alignas(64) Wide<T> one_[lanes<T>];
  alignas(64) Wide<T> zero_[lanes<T>] = {};
  const Wide<T>* gamma_;
  const Wide<T>* beta_;
  std::int64_t gamma_mask_;  // 0: the same again and again
  std::int64_t beta_mask_;
};

/// Bytes of x between what is read and what is asked for (4096x4096, RMS, on a 2-core Zen 5 vCPU:
/// 4.3 ms with none, 2.9 with 4 KiB, 2.7 with 8, 3.0 with 12).
constexpr std::int64_t prefetch_distance = 8 << 10;
/// The same where it is prefetched into L2 (65536x256, this loop on a 2-core Zen 4 vCPU: 32 to
/// 34 GB/s with 6 KiB, 36 to 40 with 8, 38 to 43 with 12, 37 to 44 with 16).
constexpr std::int64_t far_prefetch_distance = 12 << 10;

/// The few elements that are not written in the pipeline.
template <class T, bool streams>
HWY_NOINLINE void write_alone(const T* s, T* y, std::int64_t at, std::int64_t n,
                              const Scale<Wide<T>>& scale, const Weights<T>& weights) {
  write<T, streams>(s + at, y + at, n, scale, weights.gamma_from(at), weights.beta_from(at), {});
}

/// What is read while a row is written, each n elements: the next row, whose moments are summed up
/// about its center; the one behind it, which is added up; and the next rows, which are prefetched.
template <class T>
struct Incoming {
  const T* next;
  const T* behind;
  cpu::PrefetchedRows<T> coming;
  std::int64_t n;
  Wide<T> center;  // of the next row
  bool far;        // prefetched into L2
};

/// What a row that is written leaves behind.
template <class V>
struct Found {
  Moments<V> moments;  // of the next row
  V sum;               // of the one behind it
};

/// Writes a row of y from s, and computes the next row's moments and the sum of the one behind
/// it, of RMS norm the next row's squares alone. `streams`: with non-temporal stores, and rows to
/// come are asked for. Stores and loads take turns, vector by vector, so that memory is read and
/// written all the time, and no sum is waited for. In bunches of 8 each waits for the other
/// (4096x4096, RMS, on a 2-core Zen 5 vCPU: 3.0 ms in place of 2.7), and row by row even more (3.6;
/// 65536x256, layer, on a 2-core Zen 4 vCPU: 29 GB/s in place of 38). y is written from its end,
/// because what of s was read last is in L1 still.
template <class T, bool layer, bool streams>
HWY_INLINE Found<Wide<T>> write_and_look_on(const T* s, T* y, const Scale<Wide<T>>& scale,
                                            const Weights<T>& weights, const Incoming<T> in) {
  const Tag<T> d;
  using V = hn::Vec<Tag<T>>;
  constexpr std::int64_t step = lanes<T>;
  constexpr std::int64_t line = 64 / static_cast<std::int64_t>(sizeof(T));
  const StoredTag<T, Tag<T>> stored;
  using Bits = hn::TFromD<decltype(stored)>;
  const V center = hn::Set(d, scale.center);
  const V rstd = hn::Set(d, scale.rstd);
  const V shift = hn::Set(d, scale.shift);
  const V middle = hn::Set(d, in.center);
  constexpr auto vector = static_cast<std::uintptr_t>(step) * sizeof(T);
  const std::uintptr_t past = streams ? reinterpret_cast<std::uintptr_t>(y) % vector : 0;
  const auto head = static_cast<std::int64_t>((vector - past) % vector / sizeof(T));
  const std::int64_t whole = (in.n - head) / (chains * step) * (chains * step);
  // Before the first whole vector, and behind the last turn: now, when no sums are to be kept.
  if (head != 0) write_alone<T, streams>(s, y, 0, head, scale, weights);
  const std::int64_t left = in.n - head - whole;
  if (left != 0) write_alone<T, streams>(s, y, head + whole, left, scale, weights);
  if (streams) in.coming.ask_from(whole, in.far);

  V sums[chains];
  V rest[chains];
  V squares[chains];
#pragma GCC unroll 8
  for (int k = 0; k < chains; ++k) sums[k] = rest[k] = squares[k] = hn::Zero(d);
  for (std::int64_t i = 0; i < whole; i += chains * step) {
    const std::int64_t out = head + whole - chains * step - i;
    const T* ask = in.coming.place(i);
#pragma GCC unroll 8
    for (int k = 0; k < chains; ++k) {
      if (streams && k * step % line == 0) cpu::ask_for_line(ask + k * step, in.far);
      const V v = load_as(d, in.next + i + k * step);
      const V distance = layer ? hn::Sub(v, middle) : v;
      squares[k] = hn::MulAdd(distance, distance, squares[k]);
      if constexpr (layer) {
        rest[k] = hn::Add(rest[k], distance);
        sums[k] = hn::Add(sums[k], load_as(d, in.behind + i + k * step));
      }
      const std::int64_t at = out + k * step;
      const V z = hn::MulAdd(hn::Sub(load_as(d, s + at), center), rstd, shift);
      const V result = hn::MulAdd(z, weights.gamma(at), weights.beta(at));
      if constexpr (streams) {
        hn::Stream(narrow<T>(d, result), stored, reinterpret_cast<Bits*>(y + at));
      } else {
        store_as(result, d, y + at);
      }
    }
  }
  add_moments(rest, squares, middle, in.next, whole, in.n, {});
  if constexpr (layer) add_sum(sums, in.behind, whole, in.n);
  return {{in.center, layer ? total(d, rest) : 0, total(d, squares)},
          layer ? total(d, sums) : Wide<T>{0}};
}

/// Rows of one block, each written while the two behind it are read.
template <class T, bool layer, bool streams>
void rows_in_turns(const RowsJob& job) {
  const Call& call = *job.call;
  const Norm::Args& args = *call.args;
  const std::int64_t n = call.n;
  const Weights<T> weights(static_cast<const Wide<T>*>(call.gamma),
                           static_cast<const Wide<T>*>(call.beta));
  const auto x_of = [&](std::int64_t row) {
    return static_cast<const T*>(args.x.data) +
           call.lines.rows.template offset<norm_lines::row_x>(std::min(row, job.end - 1));
  };
  const auto center_of = [&](Wide<T> sum) { return layer ? sum / static_cast<Wide<T>>(n) : 0; };
  constexpr std::int64_t last = layer ? 2 : 1;  // row that is read
  const bool far = from_dram;
  const std::int64_t ahead =
      cpu::elements_ahead(far ? far_prefetch_distance : prefetch_distance, x_of(job.begin + last),
                          row_at<T>(call, job.begin).y, far);
  const std::int64_t asked = last + ahead / n;

  const T* s = x_of(job.begin);
  auto scale = scale_of(moments_of<T>(s, n, layer, {}), n, args.epsilon);
  Wide<T> center = layer ? center_of(sum_of(x_of(job.begin + 1), n)) : 0;
  for (std::int64_t index = job.begin; index < job.end; ++index) {
    note<T>(call, index, scale);
    T* const y = row_at<T>(call, index).y;
    if (index + 1 == job.end) {
      write_alone<T, streams>(s, y, 0, n, scale, weights);
      break;
    }
    const T* const next = x_of(index + 1);
    const auto found = write_and_look_on<T, layer, streams>(
        s, y, scale, weights,
        {next,
         x_of(index + 2),
         {x_of(index + asked), x_of(index + asked + 1), ahead % n, n},
         n,
         center,
         far});
    scale =
        scale_of(layer ? finite_moments(found.moments, next, n) : found.moments, n, args.epsilon);
    center = center_of(found.sum);
    s = next;
  }
}

}  // namespace
}  // namespace rung::norm_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the guard flips with each target

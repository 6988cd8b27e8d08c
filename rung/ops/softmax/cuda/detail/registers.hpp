// SPDX-License-Identifier: Apache-2.0
// Rows of softmax kept in registers: exponentials relative to each thread's own maximum, and the
// exchange that combines maxima and sums of the threads of a row.
#pragma once

#include "rung/device/ptx/thread.hpp"
#include "rung/device/row/all_reduce.hpp"
#include "rung/device/row/register_row.hpp"
#include "rung/ops/softmax/cuda/detail/softmax.hpp"

namespace rung::softmax_cuda::inline RUNG_TARGET {

/// Packs per thread and row: 32 elements, to fit the 64 registers per thread of a 1024-thread
/// block.
template <class T>
inline constexpr int kept_packs = std::is_class_v<T> ? 4 : 8;
inline constexpr int max_threads = 1024;

/// Computes exp(scale * difference). For f32, log2(e) is folded into the scale, which saves a
/// multiplication.
template <class Sum>
struct Power {
  Sum factor;
  __device__ __forceinline__ explicit Power(Sum scale)
      : factor(std::is_same_v<Sum, float> ? scale * Sum(1.44269504088896340736) : scale) {}
  __device__ __forceinline__ Sum operator()(Sum difference) const {
    if constexpr (std::is_same_v<Sum, float>) {
      return ptx::fast_exp2(difference * factor);
    } else {
      return exp(difference * factor);
    }
  }
};

/// Maximum of part of a row, and its sum of exponentials relative to that maximum.
template <class Sum>
struct alignas(2 * sizeof(Sum)) Total {
  Sum maximum;
  Sum sum;
};
template <class Sum>
__device__ __forceinline__ Total<Sum> sum_of(const Total<Sum>& a, const Total<Sum>& b,
                                             const Power<Sum>& power) {
  const Sum larger = Larger{}(a.maximum, b.maximum);
  return {larger, a.sum * power(a.maximum - larger) + b.sum * power(b.maximum - larger)};
}

/// Combines totals for row_all_reduce(): reduces the maximum first, then rescales each sum once.
template <class Sum>
struct MergePowers {
  Power<Sum> power;
  [[nodiscard]] __device__ __forceinline__ Total<Sum> identity() const {
    return {no_maximum<Sum>, 0};
  }
  __device__ __forceinline__ Total<Sum> operator()(Total<Sum> mine, int lanes) const {
    Total<Sum> all = mine;
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) {
      if (distance < lanes) {
        all.maximum = Larger{}(all.maximum, shuffle_xor(all.maximum, distance));
      }
    }
    all.sum *= power(mine.maximum - all.maximum);
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) {
      if (distance < lanes) all.sum += shuffle_xor(all.sum, distance);
    }
    return all;
  }
  __device__ __forceinline__ Total<Sum> operator()(const Total<Sum>& a, const Total<Sum>& b) const {
    return sum_of(a, b, power);
  }
};

/// Replaces this thread's values by exponentials relative to their maximum (log: by the exponents)
/// and returns their total. Since exponentials are relative to the thread's own maximum, one
/// exchange suffices for the row's maximum and sum.
template <class Sum, int packs, int width>
__device__ __forceinline__ Total<Sum> take_powers(Pack<Sum, width> (&values)[packs], bool log,
                                                  Sum scale, const Power<Sum>& power) {
  Sum maximum = no_maximum<Sum>;
  for_each_value(values, [&](Sum& value, int) { maximum = Larger{}(maximum, value); });
  Sum sums[2] = {0, 0};
  if (log) {
    for_each_value(values, [&](Sum& value, int i) {
      value -= maximum;
      sums[i % 2] += power(value);
      value *= scale;
    });
  } else {
    for_each_value(values, [&](Sum& value, int i) {
      value = power(value - maximum);
      sums[i % 2] += value;
    });
  }
  return {maximum, sums[0] + sums[1]};
}

/// Computes result = factor * value + shift from a value that take_powers() returned.
template <class Sum>
struct Finish {
  Sum factor;
  Sum shift;
  __device__ __forceinline__ Finish(const Total<Sum>& mine, const Total<Sum>& row, bool log,
                                    Sum scale, const Power<Sum>& power) {
    const Sum down = mine.maximum - row.maximum;
    factor = log ? Sum(1) : power(down) * reciprocal(row.sum);
    shift = log ? down * scale - logarithm(row.sum) : Sum(0);
  }
  template <int width>
  __device__ __forceinline__ Pack<Sum, width> operator()(const Pack<Sum, width>& values) const {
    Pack<Sum, width> results;
#pragma unroll
    for (int i = 0; i < width; ++i) results[i] = values[i] * factor + shift;
    return results;
  }
};

// --- on the host ---------------------------------------------------------------------------------

/// Returns whether rows of x and y begin and end at multiples of a pack of T.
template <class T, class Y>
bool is_regular(const Softmax::Args& args) {
  constexpr int width = vector_width<T>;
  return rows_are_regular(args.rows, 0, args.x.data, width, 16) &&
         rows_are_regular(args.rows, 1, args.y.data, width, wide_alignment<Y, width>);
}
/// Returns whether the rows of x and y begin at the same element of a pack of T.
template <class T, class Y>
bool is_shifted(const Softmax::Args& args) {
  return offsets_agree(args.rows.others, 1, args.y.data, sizeof(Y), args.x.data, sizeof(T),
                       vector_width<T>);
}
template <class T>
std::int64_t packs_of_row(const Softmax::Args& args) {
  return rung::packs_of_row(args.rows, args.x.data, vector_width<T>);
}

/// Requires a scale for which Power's factor is finite.
inline Support require_foldable_scale(const Softmax::Args& args) {
  constexpr double largest = 1e38;
  if (args.x.dtype == DType::f64 || args.scale < largest) return supported;
  return unsupported("the scale is too large");
}

}  // namespace rung::softmax_cuda::inline RUNG_TARGET

// SPDX-License-Identifier: Apache-2.0
// One row of softmax, or a block's part of one, kept on chip in the type of x: packs in registers
// and, beyond these, in shared memory, where each thread reads only what it copied itself.
// Exponentials are computed twice (sum, results), because keeping them would double the registers.
#pragma once

#include <type_traits>
#include <utility>

#include "rung/core/bounds.hpp"
#include "rung/device/ptx/async_copy.hpp"
#include "rung/device/ptx/halves.hpp"
#include "rung/device/row/register_row.hpp"
#include "rung/ops/softmax/cuda/detail/registers.hpp"

namespace rung::softmax_cuda::inline RUNG_TARGET {

struct DoNothing {
  __device__ __forceinline__ void operator()() const {}
};

/// Running maximum of packs; handles two 16-bit elements per instruction.
template <class T>
class PackMaximum {
 public:
  __device__ __forceinline__ void add(const PackedWords& words) {
    if constexpr (std::is_class_v<T>) {
#pragma unroll
      for (int i = 0; i < 4; ++i) both_[i % 2] = ptx::max_halves<T>(both_[i % 2], words[i]);
    } else {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        value_[i % 2] = Larger{}(value_[i % 2], __builtin_bit_cast(float, words[i]));
      }
    }
  }
  [[nodiscard]] __device__ __forceinline__ float value() const {
    if constexpr (std::is_class_v<T>) {
      const unsigned both = ptx::max_halves<T>(both_[0], both_[1]);
      const float low = convert<float>(T::from_bits(static_cast<std::uint16_t>(both)));
      const float high = convert<float>(T::from_bits(static_cast<std::uint16_t>(both >> 16)));
      return Larger{}(no_maximum<float>, Larger{}(low, high));
    } else {
      return Larger{}(value_[0], value_[1]);
    }
  }

 private:
  static constexpr unsigned infinities = std::is_same_v<T, bf16> ? 0xff80ff80U : 0xfc00fc00U;
  unsigned both_[2] = {infinities, infinities};  // -infinity, twice
  float value_[2] = {no_maximum<float>, no_maximum<float>};
};

/// Does the same as widen() with other instructions, so that the compiler does not keep the floats
/// of the first widening, which would spill.
template <class T>
__device__ __forceinline__ Pack<float, vector_width<T>> widen_again(const PackedWords& words) {
  if constexpr (std::is_same_v<T, bf16>) {
    Pack<float, vector_width<T>> wide;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      wide[2 * i] = __builtin_bit_cast(float, ptx::permute_bytes<0x1044>(words[i], 0));
      wide[2 * i + 1] = __builtin_bit_cast(float, ptx::permute_bytes<0x3244>(words[i], 0));
    }
    return wide;
  } else if constexpr (std::is_same_v<T, f16>) {
    PackedWords swapped;
#pragma unroll
    for (int i = 0; i < 4; ++i) swapped[i] = ptx::permute_bytes<0x1032>(words[i], 0);
    Pack<float, vector_width<T>> wide = widen<float, T>(swapped);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float first = wide[2 * i + 1];
      wide[2 * i + 1] = wide[2 * i];
      wide[2 * i] = first;
    }
    return wide;
  } else {
    return widen<float, T>(words);
  }
}

/// Returns the maximum of a thread's packs and the sum of exponentials relative to it.
template <class T, int count>
__device__ __forceinline__ Total<float> total_of(const PackedWords (&read)[count],
                                                 const Power<float>& power) {
  PackMaximum<T> maximum;
#pragma unroll
  for (int k = 0; k < count; ++k) maximum.add(read[k]);
  const float my_maximum = maximum.value();
  float sums[2] = {0, 0};
#pragma unroll
  for (int k = 0; k < count; ++k) {
    const Pack<float, vector_width<T>> wide = widen<float, T>(read[k]);
#pragma unroll
    for (int i = 0; i < vector_width<T>; ++i) sums[i % 2] += power(wide[i] - my_maximum);
  }
  return {my_maximum, sums[0] + sums[1]};
}

/// Computes (x - maximum) factor - shift: the base-2 logarithm of the result or, if `log`, the
/// result itself.
template <bool log>
class PackedResults {
 public:
  __device__ __forceinline__ PackedResults(const Total<float>& row, float scale,
                                           const Power<float>& power)
      : maximum_(row.maximum),
        factor_(log ? scale : power.factor),
        shift_(logarithm(row.sum) * (log ? 1.0F : 1.44269504088896340736F)) {}
  template <int width>
  __device__ __forceinline__ Pack<float, width> operator()(Pack<float, width> values) const {
#pragma unroll
    for (int i = 0; i < width; ++i) {
      const float value = (values[i] - maximum_) * factor_ - shift_;
      values[i] = log ? value : ptx::fast_exp2(value);
    }
    return values;
  }

 private:
  float maximum_;
  float factor_;
  float shift_;
};

/// Computes a row, or a block's part of one. A thread has `packs` packs in registers, then up to
/// `staged` in shared memory, loaded in `groups` groups. `stage` has space for one pack per thread
/// and round and is 128-byte aligned, so that lines of memory map to lines of shared memory.
/// row_total(mine) returns the total of the row; meanwhile() runs while loads are in flight.
template <int packs, int staged, RowKind kind, int groups = 1, class T, class Y, class RowTotal,
          class F = DoNothing>
__device__ __forceinline__ void packed_row(const T* x, Y* y, std::int64_t length, int lead,
                                           const SoftmaxCall<T, Y>& p, const Power<float>& power,
                                           PackedWords* stage, RowTotal&& row_total,
                                           F&& meanwhile = {}) {
  constexpr int width = vector_width<T>;
  constexpr int group = staged / groups;
  static_assert(group * groups == staged);
  const RegisterRow<const T, kind> in(x, length, lead);
  const auto index = [](int k) { return pack_index<kind, packs + staged>(k); };
  const T nothing = convert<T>(-std::numeric_limits<float>::infinity());
  const auto place = [&](int k) { return stage + pack_index<kind, staged>(k); };
  const auto kept = [&](int k) { return load_wide<4>(place(k)->at); };
  PackedWords read[packs];
#pragma unroll
  for (int k = 0; k < packs; ++k) read[k] = in.load(index(k), nothing);
  Pack<float, 1> single;
  if constexpr (kind == RowKind::shifted) single[0] = convert<float>(in.load_single(nothing));
  if constexpr (staged > 0) {
#pragma unroll
    for (int k = 0; k < staged; ++k) {
      in.stage(index(packs + k), place(k), nothing);
      if ((k + 1) % group == 0) ptx::async_commit();
    }
  }
  meanwhile();
  Total<float> mine = total_of<T>(read, power);
  if constexpr (kind == RowKind::shifted) {
    const float most = Larger{}(no_maximum<float>, single[0]);
    mine = sum_of(mine, {most, power(single[0] - most)}, power);
  }
  if constexpr (staged > 0) {
    const auto add_group = [&]<int g>(std::integral_constant<int, g>) {
      ptx::async_wait<groups - 1 - g>();
      Pack<T, width> none;
#pragma unroll
      for (int i = 0; i < width; ++i) none[i] = nothing;
      PackedWords words[group];
#pragma unroll
      for (int k = 0; k < group; ++k) {
        words[k] = words_of<T>(none);
        if (in.has(index(packs + g * group + k))) words[k] = kept(g * group + k);
      }
      mine = sum_of(mine, total_of<T>(words, power), power);
    };
    [&]<int... g>(std::integer_sequence<int, g...>) {
      (add_group(std::integral_constant<int, g>{}), ...);
    }
    (std::make_integer_sequence<int, groups>{});
  }
  const Total<float> row = row_total(mine);
  const RegisterRow<Y, kind, width> out(y, length, lead);
  const auto write = [&](const auto& results) {
    const auto store = [&](int k, const PackedWords& words) {
      out.store(index(k), results(widen_again<T>(words)));
    };
#pragma unroll
    for (int k = 0; k < packs; ++k) store(k, read[k]);
#pragma unroll 2
    for (int k = 0; k < staged; ++k) {
      if (in.has(index(packs + k))) store(packs + k, kept(k));
    }
    if constexpr (kind == RowKind::shifted) out.store_single(results(single)[0]);
  };
  p.log ? write(PackedResults<true>(row, p.scale, power))
        : write(PackedResults<false>(row, p.scale, power));
}

inline constexpr int long_packs = 8;   // per thread, in registers
inline constexpr int long_staged = 8;  // in shared memory, at most
inline constexpr int long_groups = 4;  // of staged packs

/// Threads and shared memory of a block; long_block() returns them for a number of packs.
struct LongBlock {
  int threads = 0;
  std::size_t stage_bytes = 0;
  bool fits = false;
};
inline LongBlock long_block(std::int64_t packs) {
  LongBlock block;
  block.fits = packs <= max_threads * (long_packs + long_staged);
  if (!block.fits) return block;
  constexpr std::int64_t a_warp = warp_size * long_packs;
  // At least one warp: an empty row, which is queried but never run, has no packs.
  const std::int64_t warps = larger<std::int64_t>((packs + a_warp - 1) / a_warp, 1);
  block.threads = static_cast<int>(smaller<std::int64_t>(warps * warp_size, max_threads));
  const std::int64_t rounds = (packs + block.threads - 1) / block.threads;
  block.stage_bytes = static_cast<std::size_t>(larger<std::int64_t>(rounds - long_packs, 0)) *
                      static_cast<std::size_t>(block.threads) * 16;
  return block;
}

}  // namespace rung::softmax_cuda::inline RUNG_TARGET

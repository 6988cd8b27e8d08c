// SPDX-License-Identifier: Apache-2.0
// Rows of softmax that stay in registers: how wide, how many, by how many threads, and what the
// threads of a row tell each other.
#pragma once

#include "rung/ops/softmax/cuda/detail/softmax.hpp"

namespace rung::softmax_cuda::inline RUNG_TARGET {

/// Elements of a 16-byte load.
template <class T>
inline constexpr int pack_width = 16 / static_cast<int>(sizeof(T));
/// Loads that a thread keeps of a row: 32 elements, which leave room in the 64 registers that a
/// block of 1024 threads has. Backward there are two tensors to keep, and a warp of its own for a
/// row has more registers than a block.
template <class T>
inline constexpr int kept_forward = std::is_class_v<T> ? 4 : 8;
inline constexpr int kept_backward_by_warp = 4;
inline constexpr int kept_backward_by_block = 2;
inline constexpr int max_threads = 1024;
inline constexpr int warp_block_threads = 128;

/// The k-th pack of this thread: neighboring threads have neighboring packs.
__device__ __forceinline__ int pack_index(int k) {
  return static_cast<int>(threadIdx.x) + k * static_cast<int>(blockDim.x);
}

template <class Sum, int packs, int width, class F>
__device__ __forceinline__ void for_each_value(Pack<Sum, width> (&values)[packs], F&& f) {
#pragma unroll
  for (int k = 0; k < packs; ++k) {
#pragma unroll
    for (int i = 0; i < width; ++i) f(values[k][i], i);
  }
}

/// A pack as it travels: four words, whatever is in them. Kept as elements of 16 bits, the compiler
/// takes words apart and puts them together again at every turn.
using Words = Pack<unsigned, 4>;

template <class T>
__device__ __forceinline__ Words words_of(const Pack<T, pack_width<T>>& pack) {
  return __builtin_bit_cast(Words, pack);
}

/// A pack in the type of sums.
template <class Sum, class T>
__device__ __forceinline__ Pack<Sum, pack_width<T>> widen(const Words& words) {
#if defined(__CUDA_ARCH__)
  if constexpr (std::is_same_v<T, bf16>) {
    Pack<Sum, pack_width<T>> wide;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      wide[2 * i] = __uint_as_float(words[i] << 16);
      wide[2 * i + 1] = __uint_as_float(words[i] & 0xffff0000U);
    }
    return wide;
  } else if constexpr (std::is_same_v<T, f16>) {
    Pack<Sum, pack_width<T>> wide;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      __half2 halves;
      __builtin_memcpy(&halves, &words[i], 4);
      const float2 both = __half22float2(halves);
      wide[2 * i] = both.x;
      wide[2 * i + 1] = both.y;
    }
    return wide;
  }
#endif
  return convert<Sum>(__builtin_bit_cast(Pack<T, pack_width<T>>, words));
}
/// Results in a type as wide as that of x.
template <class Y, class Sum, int width>
__device__ __forceinline__ Words narrow(const Pack<Sum, width>& values) {
  static_assert(sizeof(Y) * width == sizeof(Words));
#if defined(__CUDA_ARCH__)
  if constexpr (std::is_same_v<Y, bf16> || std::is_same_v<Y, f16>) {
    Words words;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if constexpr (std::is_same_v<Y, bf16>) {
        const __nv_bfloat162 both = __floats2bfloat162_rn(values[2 * i], values[2 * i + 1]);
        __builtin_memcpy(&words[i], &both, 4);
      } else {
        const __half2 both = __floats2half2_rn(values[2 * i], values[2 * i + 1]);
        __builtin_memcpy(&words[i], &both, 4);
      }
    }
    return words;
  }
#endif
  return words_of<Y>(convert<Y>(values));
}

/// exp(scale * difference). For f32 the scale takes log2(e) in: one multiplication less.
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

/// What a part of a row comes to: its maximum, and the sum of exponentials below it. Backward there
/// is only a sum.
template <class Sum>
struct alignas(2 * sizeof(Sum)) Total {
  Sum maximum;
  Sum sum;
};
__device__ __forceinline__ Total<float> sum_of(const Total<float>& a, const Total<float>& b,
                                               const Power<float>& power) {
  const float larger = Larger{}(a.maximum, b.maximum);
  return {larger, a.sum * power(a.maximum - larger) + b.sum * power(b.maximum - larger)};
}
/// Of each warp; rows that a block has in succession take turns, so that none writes what the one
/// before still reads.
template <class Sum>
struct TotalScratch {
  Total<Sum> of_warp[2][32];
};

/// merge(total, lanes): the total of so many neighboring lanes, in each of them; merge(a, b): of
/// the two.
template <class Sum>
struct MergePowers {
  Power<Sum> power;
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
template <class Sum>
struct MergeSums {
  __device__ __forceinline__ Total<Sum> operator()(const Total<Sum>& a, const Total<Sum>& b) const {
    return {0, a.sum + b.sum};
  }
  __device__ __forceinline__ Total<Sum> operator()(Total<Sum> all, int lanes) const {
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) {
      if (distance < lanes) all.sum += shuffle_xor(all.sum, distance);
    }
    return all;
  }
};

/// The total of the row's threads, in each of them; of whole warps in the order of warps. Where a
/// row always has those, shuffles need not ask whether they are due.
template <bool whole_warps = false, class Sum, class Merge>
__device__ __forceinline__ Total<Sum> row_total(Total<Sum> mine, const Merge& merge,
                                                TotalScratch<Sum>& scratch, int turn) {
  const int threads = static_cast<int>(blockDim.x);
  const Total<Sum> of_warp = merge(mine, whole_warps ? warp_size : threads);
  if (!whole_warps && threads <= warp_size) return of_warp;
  const int lane = static_cast<int>(threadIdx.x) % warp_size;
  if (lane == 0) scratch.of_warp[turn][threadIdx.x / warp_size] = of_warp;
  __syncthreads();
  Total<Sum> others = {no_maximum<Sum>, 0};
  if (lane < threads / warp_size) others = scratch.of_warp[turn][lane];
  return merge(others, warp_size);
}

/// The total of this thread's values, which become exponentials below their maximum; with the
/// logarithm, what these are exponentials of. Each thread has its own maximum: the row's is known
/// only when its sum is, after one exchange for both.
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

/// result = factor * value + shift, from what take_powers left of a value.
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

/// Whether rows of all tensors begin and end at multiples of a pack of T.
template <class T, class Y>
bool rows_are_regular(const Softmax::Args& args) {
  constexpr int width = pack_width<T>;
  const auto is_aligned = [](const void* p, std::uintptr_t bytes) {
    return reinterpret_cast<std::uintptr_t>(p) % bytes == 0;
  };
  bool regular = args.length() % width == 0 && is_aligned(args.x.data, 16) &&
                 (!args.backward || is_aligned(args.dy.data, 16)) &&
                 is_aligned(args.y.data, wide_alignment<Y, width>);
  for (const auto& strides : args.rows.others.strides) {
    for (int axis = 0; axis < args.rows.others.rank; ++axis) {
      regular = regular && strides[axis] % width == 0;
    }
  }
  return regular;
}

/// Packs that a row spans, one more where rows may begin between multiples of 16 bytes.
template <class T>
std::int64_t packs_of_row(const Softmax::Args& args) {
  constexpr int width = pack_width<T>;
  bool aligned = reinterpret_cast<std::uintptr_t>(args.x.data) % 16 == 0;
  for (int axis = 0; axis < args.rows.others.rank; ++axis) {
    aligned = aligned && args.rows.others.strides[0][axis] % width == 0;
  }
  return (args.length() + width - 1) / width + (aligned ? 0 : 1);
}

/// Power's factor must be finite.
inline Support require_foldable_scale(const Softmax::Args& args) {
  constexpr double largest = 1e38;
  if (args.x.dtype == DType::f64 || args.scale < largest) return supported;
  return unsupported("the scale is too large");
}

}  // namespace rung::softmax_cuda::inline RUNG_TARGET

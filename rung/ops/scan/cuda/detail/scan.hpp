// SPDX-License-Identifier: Apache-2.0
// Code of scan's CUDA rungs: lines as kernel arguments, 16-byte loads and stores, and policies,
// which define the operation.
//
// A pack is the unit that a thread loads and stores: 16 bytes of any element type, so that small
// types take no more instructions per byte than large ones. Policies implement the work within a
// pack.
#pragma once

#include <bit>
#include <cstdint>
#include <string_view>

#include "rung/device/block_work.hpp"
#include "rung/device/collectives.hpp"
#include "rung/device/load.hpp"
#include "rung/ops/scan/op/operations.hpp"

namespace rung::inline RUNG_TARGET::scan_cuda {

/// Elements per 16 bytes; 1 for elements that are larger or whose size does not divide 16.
template <class T>
inline constexpr int pack_size = 16 % sizeof(T) == 0 ? vector_width<T> : 1;

/// Lines of n elements each, with any strides; a kernel argument.
template <class T>
struct Lines {
  const T* x = nullptr;
  T* y = nullptr;
  std::int64_t n = 0;
  std::int64_t x_stride = 1;
  std::int64_t y_stride = 1;
  Collapsed<2> lines;
  // bit i: a segment begins at element i of a line; null: no segments
  const unsigned* heads = nullptr;

  [[nodiscard]] RUNG_HD const T* x_of(std::int64_t line) const { return x + lines.offset<0>(line); }
  [[nodiscard]] RUNG_HD T* y_of(std::int64_t line) const { return y + lines.offset<1>(line); }
};

template <class T>
Lines<T> lines_of(const Scan::Args& args) {
  Lines<T> lines;
  lines.x = static_cast<const T*>(args.x.data);
  lines.y = static_cast<T*>(args.y.data);
  lines.n = args.length();
  lines.x_stride = args.length() == 1 ? 1 : args.x_stride();
  lines.y_stride = args.length() == 1 ? 1 : args.y_stride();
  lines.lines = args.lines;
  return lines;
}

/// Returns `pointer`, opaque to g++ 12, which otherwise merges the wide and the element-wise access
/// of a pack and keeps the one that requires alignment.
template <class T>
RUNG_HD RUNG_ALWAYS_INLINE inline T* not_aligned(T* pointer) {
#if !defined(__CUDACC__)
  asm("" : "+r"(pointer));
#endif
  return pointer;
}

/// Loads 16 aligned bytes as a pack, also for types that load.hpp does not support.
template <class T>
__device__ __forceinline__ Pack<T, pack_size<T>> load_aligned(const T* from) {
  const auto words = load_wide<4>(reinterpret_cast<const unsigned*>(from));
  return __builtin_bit_cast(Pack<T, pack_size<T>>, words);
}
template <class T>
__device__ __forceinline__ void store_aligned(T* to, const Pack<T, pack_size<T>>& pack) {
  store_wide<4>(reinterpret_cast<unsigned*>(to), __builtin_bit_cast(Pack<unsigned, 4>, pack));
}

/// Returns the pack with its small elements packed in registers: nvcc otherwise keeps bytes that
/// were loaded individually in a register each.
template <class T>
__device__ __forceinline__ Pack<T, pack_size<T>> by_words(const Pack<T, pack_size<T>>& pack) {
#if defined(__CUDA_ARCH__)
  if constexpr (sizeof(T) < 4 && sizeof(T) * pack_size<T> == 16) {
    auto words = __builtin_bit_cast(uint4, pack);
    asm("" : "+r"(words.x), "+r"(words.y), "+r"(words.z), "+r"(words.w));
    using Elements = Pack<T, pack_size<T>>;
    return __builtin_bit_cast(Elements, words);
  }
#endif
  return pack;
}

/// Loads elements [i, i + pack_size) of a line, element i at `from`. Elements at or past `valid`
/// are zero; they affect no valid result.
template <class T>
__device__ __forceinline__ Pack<T, pack_size<T>> load_pack(const T* from, std::int64_t stride,
                                                           std::int64_t valid) {
  constexpr int count = pack_size<T>;
  if constexpr (count > 1) {
    if (stride == 1 && valid >= count && is_wide_aligned<T, count>(from)) return load_aligned(from);
  }
  Pack<T, count> pack{};
  from = not_aligned(from);
#pragma unroll
  for (int k = 0; k < count; ++k) {
    if (k < valid) pack[k] = from[k * stride];
  }
  return by_words(pack);
}
template <class T>
__device__ __forceinline__ void store_pack(T* to, std::int64_t stride, std::int64_t valid,
                                           const Pack<T, pack_size<T>>& pack) {
  constexpr int count = pack_size<T>;
  if constexpr (count > 1) {
    if (stride == 1 && valid >= count && is_wide_aligned<T, count>(to))
      return store_aligned(to, pack);
  }
  to = not_aligned(to);
#pragma unroll
  for (int k = 0; k < count; ++k) {
    if (k < valid) to[k * stride] = pack[k];
  }
}

/// Returns the bits of `heads` for the pack that begins at element i, a multiple of pack_size.
template <class T>
__device__ __forceinline__ unsigned head_bits(const unsigned* heads, std::int64_t i,
                                              std::int64_t valid) {
  if (heads == nullptr || valid <= 0) return 0;
  return heads[i / 32] >> (i % 32) & ((1u << pack_size<T>)-1);
}

// --- policies ------------------------------------------------------------------------------------
//
// A policy has Element and State, the identity, combine(earlier, later), and for packs
//   total(pack, heads)                         the pack's elements combined
//   apply(pack, heads, before, exclusive)      the prefixes, given the prefix before the pack

/// Policy of any operation whose elements are states or convert to states.
template <class T, class S, class Combine>
struct Plain {
  using Element = T;
  using State = S;
  Combine functor;
  State identity;

  [[nodiscard]] __device__ __forceinline__ State combine(const State& a, const State& b) const {
    return functor(a, b);
  }
  [[nodiscard]] __device__ __forceinline__ State total(const Pack<T, pack_size<T>>& pack,
                                                       unsigned) const {
    State sum = convert<State>(pack[0]);
#pragma unroll
    for (int k = 1; k < pack_size<T>; ++k) sum = functor(sum, convert<State>(pack[k]));
    return sum;
  }
  [[nodiscard]] __device__ __forceinline__ Pack<T, pack_size<T>> apply(
      const Pack<T, pack_size<T>>& pack, unsigned, State before, bool exclusive) const {
    Pack<T, pack_size<T>> result;
#pragma unroll
    for (int k = 0; k < pack_size<T>; ++k) {
      const State after = functor(before, convert<State>(pack[k]));
      result[k] = convert<T>(exclusive ? before : after);
      before = after;
    }
    return result;
  }
};

/// Policy of sums of bytes, four at a time: the dot product with ones sums a word's bytes in one
/// instruction, and with fewer ones gives the prefixes. 7 instructions per 4 elements.
template <class T>
struct ByteSum {
  using Element = T;
  using State = std::int32_t;
  State identity = 0;

  [[nodiscard]] __device__ __forceinline__ State combine(State a, State b) const {
    return ScanSum()(a, b);
  }
  [[nodiscard]] __device__ __forceinline__ State total(const Pack<T, 16>& pack, unsigned) const {
    const auto words = __builtin_bit_cast(Words, pack);
    unsigned sum = 0;
#pragma unroll
    for (int w = 0; w < 4; ++w) sum = dot(words.at[w], 0x01010101u, sum);
    return static_cast<State>(sum);
  }
  [[nodiscard]] __device__ __forceinline__ Pack<T, 16> apply(const Pack<T, 16>& pack, unsigned,
                                                             State before, bool exclusive) const {
    auto words = __builtin_bit_cast(Words, pack);
    auto running = static_cast<unsigned>(before);
#pragma unroll
    for (int w = 0; w < 4; ++w) {
      const unsigned word = words.at[w];
      const unsigned a = dot(word, 0x00000001u, running);
      const unsigned b = dot(word, 0x00000101u, running);
      const unsigned c = dot(word, 0x00010101u, running);
      const unsigned d = dot(word, 0x01010101u, running);
      const unsigned low = __byte_perm(exclusive ? running : a, exclusive ? a : b, 0x0040);
      const unsigned high = __byte_perm(exclusive ? b : c, exclusive ? c : d, 0x0040);
      words.at[w] = __byte_perm(low, high, 0x5410);
      running = d;
    }
    return __builtin_bit_cast(Pack<T, 16>, words);
  }

 private:
  struct Words {
    unsigned at[4];
  };
  /// Returns sum + the dot product of four pairs of bytes.
  static __device__ __forceinline__ unsigned dot(unsigned a, unsigned b, unsigned sum) {
#if defined(__CUDA_ARCH__)
    return __dp4a(a, b, sum);
#else
    for (int k = 0; k < 32; k += 8) sum += (a >> k & 0xff) * (b >> k & 0xff);
    return sum;
#endif
  }
};

/// State of a segmented scan: a value, and whether a segment began within it, in which case nothing
/// before it contributes [Blelloch 1990]. Associative if the operation is.
template <class S>
struct Flagged {
  S value;
  unsigned head;
};
template <class T>
struct Segmented {
  using Element = T;
  using Value = ScanState<T>;
  using State = Flagged<Value>;
  ScanAny functor;
  State identity;

  [[nodiscard]] __device__ __forceinline__ State combine(const State& a, const State& b) const {
    return {b.head != 0 ? b.value : functor(a.value, b.value), a.head | b.head};
  }
  [[nodiscard]] __device__ __forceinline__ State total(const Pack<T, pack_size<T>>& pack,
                                                       unsigned heads) const {
    State sum{convert<Value>(pack[0]), heads};
#pragma unroll
    for (int k = 1; k < pack_size<T>; ++k) {
      const Value next = convert<Value>(pack[k]);
      sum.value = (heads >> k & 1) != 0 ? next : functor(sum.value, next);
    }
    return sum;
  }
  [[nodiscard]] __device__ __forceinline__ Pack<T, pack_size<T>> apply(
      const Pack<T, pack_size<T>>& pack, unsigned heads, const State& before,
      bool exclusive) const {
    Pack<T, pack_size<T>> result;
    Value running = before.value;
#pragma unroll
    for (int k = 0; k < pack_size<T>; ++k) {
      if ((heads >> k & 1) != 0) running = identity.value;
      const Value after = functor(running, convert<Value>(pack[k]));
      result[k] = convert<T>(exclusive ? running : after);
      running = after;
    }
    return result;
  }
};

/// The fast policy of unsegmented sums.
template <class T>
using Sum = std::conditional_t<sizeof(T) == 1, ByteSum<T>, Plain<T, ScanState<T>, ScanSum>>;

/// Returns unsupported except for sums without segments, which the fast policy serves.
inline Support supports_sum(const Scan::Args& args) {
  if (args.operation != ScanOperation::sum) return unsupported("sums only");
  return args.has_segments() ? unsupported("no segments") : supported;
}
template <class T>
Sum<T> sum_policy() {
  Sum<T> policy;
  policy.identity = 0;
  return policy;
}

template <class T>
Segmented<T> segmented_policy(const Scan::Args& args) {
  Segmented<T> policy;
  policy.functor = {args.operation};
  policy.identity = {scan_identity<T>(args.operation), 0};
  return policy;
}

/// Returns the number of launches that build the bitmap of heads: a clear and a marking.
inline int marking_launches(const Scan::Args& args) { return args.has_segments() ? 2 : 0; }

/// Returns whether adjacent elements of a line are adjacent in memory, forward or backward.
inline bool is_adjacent(const Scan::Args& args) {
  return args.length() <= 1 ||
         (args.x_stride() * args.x_stride() == 1 && args.y_stride() * args.y_stride() == 1);
}

/// Returns the rates key: one per element size, and for lines that are reversed or strided.
inline std::string_view line_path(const Scan::Args& args) {
  constexpr std::string_view paths[] = {"1", "2", "", "8"};
  constexpr std::int64_t few = 128;  // fewer lines leave SMs idle
  return !is_adjacent(args)      ? args.lines.size() < few ? "few apart" : "apart"
         : !args.is_contiguous() ? "backward"
                                 : paths[std::countr_zero(size_of(args.x.dtype))];
}

/// Returns the bytes moved, in whole sectors per line; strided elements move a sector each.
inline double line_bytes_moved(const Scan::Args& args) {
  constexpr std::int64_t sector = 32;
  const auto size = static_cast<std::int64_t>(size_of(args.x.dtype));
  const std::int64_t element = is_adjacent(args) ? size : sector;
  return 2.0 * static_cast<double>(args.lines.size()) *
         static_cast<double>(round_up(args.length() * element, sector));
}

/// Returns the work of a kernel along lines with `resident` blocks per SM, and of the launches
/// before it that mark segments.
inline Work line_work(const Scan::Args& args, Amount blocks, int threads, Amount trips,
                      int resident = 6) {
  Work work = block_work(blocks, threads, trips, line_path(args));
  work.bytes = line_bytes_moved(args);
  work.launches = 1 + marking_launches(args);
  work.resident = resident;
  return work;
}

}  // namespace rung::inline RUNG_TARGET::scan_cuda

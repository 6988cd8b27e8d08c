// SPDX-License-Identifier: Apache-2.0
// load<N>(p, valid) and store<N>(p, pack, valid): N consecutive elements, the first `valid` of
// which are accessed. The rest load as zero and are not stored, so that a kernel's edge handling is
// one min().
//
// load_wide and store_wide require a pointer aligned to wide_alignment<T, N> bytes (the largest
// power of two, up to 16, that divides the pack's size) and move full packs by vector instructions.
// load_wide_streaming and store_wide_streaming are for data that is not accessed again: its cache
// lines are evicted first.
#pragma once

#include <cstdint>
#include <type_traits>

#include "rung/device/convert.hpp"
#include "rung/device/device.hpp"

namespace rung::inline RUNG_TARGET {

/// Elements of T in 16 bytes, the widest load or store of a thread.
template <class T>
inline constexpr int vector_width = 16 / static_cast<int>(sizeof(T));

template <class T, int N>
inline constexpr int wide_alignment = (sizeof(T) * N) % 16 == 0  ? 16
                                      : (sizeof(T) * N) % 8 == 0 ? 8
                                      : (sizeof(T) * N) % 4 == 0 ? 4
                                      : (sizeof(T) * N) % 2 == 0 ? 2
                                                                 : 1;

template <class T, int N>
RUNG_HD RUNG_ALWAYS_INLINE inline bool is_wide_aligned(const T* p) {
  return reinterpret_cast<std::uintptr_t>(p) % wide_alignment<T, N> == 0;
}

/// Returns p, a pointer to global memory, as a value that stays in registers: otherwise the
/// compiler would recompute the address from its terms (base, index, offset) at every access.
template <class T>
__device__ __forceinline__ T* in_registers(T* p) {
#if defined(__CUDACC__)
  asm("" : "+l"(p));
  __builtin_assume(__isGlobal(p));
#endif
  return p;
}

namespace device_detail {

// Register type of a load or store of `Bytes` bytes. The simulator uses vector types that may alias
// any type: the host compiler would split the access of a uint4 into four, and the simulator would
// count four.
template <int Bytes>
struct Chunk;
#if defined(__CUDACC__)
template <>
struct Chunk<16> {
  using Type = uint4;
};
template <>
struct Chunk<8> {
  using Type = uint2;
};
template <>
struct Chunk<4> {
  using Type = unsigned;
};
template <>
struct Chunk<2> {
  using Type = unsigned short;
};
#else
template <>
struct Chunk<16> {
  typedef unsigned Type __attribute__((vector_size(16), may_alias));
};
template <>
struct Chunk<8> {
  typedef unsigned Type __attribute__((vector_size(8), may_alias));
};
template <>
struct Chunk<4> {
  typedef unsigned Type __attribute__((may_alias));
};
template <>
struct Chunk<2> {
  typedef unsigned short Type __attribute__((may_alias));
};
#endif
template <>
struct Chunk<1> {
  using Type = unsigned char;
};

template <class T, int N>
struct alignas(wide_alignment<T, N>) AlignedPack {
  Pack<T, N> pack;
};

/// Stores a chunk. 16-byte stores to global memory use __stwb: nvcc 13 splits a plain 16-byte store
/// if another branch stores single elements, and L2 then gets four times the requests.
template <class Chunk>
__device__ __forceinline__ void store_chunk(Chunk* to, const Chunk& chunk) {
#if defined(__CUDA_ARCH__)
  if constexpr (sizeof(Chunk) == 16) {
    if (__isGlobal(to)) {
      __stwb(to, chunk);
      return;
    }
  }
#endif
  *to = chunk;
}

}  // namespace device_detail

template <int N, class T>
__device__ __forceinline__ Pack<std::remove_const_t<T>, N> load(T* p, std::int64_t valid = N) {
  Pack<std::remove_const_t<T>, N> values;
#pragma unroll
  for (int i = 0; i < N; ++i) values[i] = i < valid ? p[i] : zero<std::remove_const_t<T>>();
  return values;
}

template <int N, class T>
__device__ __forceinline__ void store(T* p, const Pack<T, N>& values, std::int64_t valid = N) {
#pragma unroll
  for (int i = 0; i < N; ++i) {
    if (i < valid) p[i] = values[i];
  }
}

template <int N, class T>
__device__ __forceinline__ Pack<std::remove_const_t<T>, N> load_wide(T* p, std::int64_t valid = N) {
  using Element = std::remove_const_t<T>;
  constexpr int bytes = wide_alignment<Element, N>;
  constexpr int chunks = static_cast<int>(sizeof(Element)) * N / bytes;
  using Chunk = typename device_detail::Chunk<bytes>::Type;
  if (valid < N) return load<N>(p, valid);
  device_detail::AlignedPack<Element, N> aligned;
#pragma unroll
  for (int i = 0; i < chunks; ++i) {
    reinterpret_cast<Chunk*>(&aligned)[i] = reinterpret_cast<const Chunk*>(p)[i];
  }
  return aligned.pack;
}

template <int N, class T>
__device__ __forceinline__ void store_wide(T* p, const Pack<T, N>& values, std::int64_t valid = N) {
  constexpr int bytes = wide_alignment<T, N>;
  constexpr int chunks = static_cast<int>(sizeof(T)) * N / bytes;
  using Chunk = typename device_detail::Chunk<bytes>::Type;
  if (valid < N) {
    store<N>(p, values, valid);
    return;
  }
  const device_detail::AlignedPack<T, N> aligned{values};
#pragma unroll
  for (int i = 0; i < chunks; ++i) {
    device_detail::store_chunk(reinterpret_cast<Chunk*>(p) + i,
                               reinterpret_cast<const Chunk*>(&aligned)[i]);
  }
}

/// N elements as loaded, not unpacked: elements smaller than 4 bytes share registers, so that loads
/// in flight occupy fewer.
template <class T, int N>
struct RawPack {
  static constexpr int bytes = wide_alignment<T, N>;
  using Chunk = typename device_detail::Chunk<bytes>::Type;
  Chunk chunk[static_cast<int>(sizeof(T)) * N / bytes];
};
template <int N, class T>
__device__ __forceinline__ RawPack<std::remove_const_t<T>, N> load_raw(T* p) {
  using Raw = RawPack<std::remove_const_t<T>, N>;
  return *reinterpret_cast<const Raw*>(p);
}
namespace device_detail {
/// Cache policy for data that is not accessed again.
struct Streaming {
  template <class Chunk>
  static __device__ __forceinline__ Chunk load(const Chunk* from) {
#if defined(__CUDACC__)
    return __ldcs(from);
#else
    return *from;
#endif
  }
  template <class Chunk>
  static __device__ __forceinline__ void store(Chunk* to, Chunk chunk) {
#if defined(__CUDACC__)
    __stcs(to, chunk);
#else
    *to = chunk;
#endif
  }
};
/// Cache policy for data that no kernel writes while this one runs.
struct Constant {
  template <class Chunk>
  static __device__ __forceinline__ Chunk load(const Chunk* from) {
#if defined(__CUDACC__)
    return __ldg(from);
#else
    return *from;
#endif
  }
};
template <class Access, int N, class T>
__device__ __forceinline__ RawPack<T, N> load_raw_by(const T* p) {
  RawPack<T, N> raw;
  const auto* from = reinterpret_cast<const typename RawPack<T, N>::Chunk*>(p);
#pragma unroll
  for (auto& chunk : raw.chunk) chunk = Access::load(from++);
  return raw;
}
}  // namespace device_detail

/// Loads N elements that are not read again.
template <int N, class T>
__device__ __forceinline__ RawPack<std::remove_const_t<T>, N> load_raw_streaming(T* p) {
  return device_detail::load_raw_by<device_detail::Streaming, N, std::remove_const_t<T>>(p);
}
/// Loads N elements that no kernel writes while this one runs: earlier stores do not delay the
/// load.
template <int N, class T>
__device__ __forceinline__ RawPack<std::remove_const_t<T>, N> load_raw_constant(T* p) {
  return device_detail::load_raw_by<device_detail::Constant, N, std::remove_const_t<T>>(p);
}
template <class T, int N>
__device__ __forceinline__ void store_raw_streaming(T* p, const RawPack<T, N>& raw) {
  auto* to = reinterpret_cast<typename RawPack<T, N>::Chunk*>(p);
#pragma unroll
  for (const auto& chunk : raw.chunk) device_detail::Streaming::store(to++, chunk);
}
template <class T, int N>
__device__ __forceinline__ void store_raw(T* p, const RawPack<T, N>& raw) {
  *reinterpret_cast<RawPack<T, N>*>(p) = raw;
}
template <class T, int N>
__device__ __forceinline__ RawPack<T, N> raw(const Pack<T, N>& pack) {
  const device_detail::AlignedPack<T, N> aligned{pack};
  RawPack<T, N> result;
  __builtin_memcpy(&result, &aligned, sizeof(result));
  return result;
}
template <class T, int N>
__device__ __forceinline__ Pack<T, N> unpack(const RawPack<T, N>& raw) {
  device_detail::AlignedPack<T, N> aligned;
  __builtin_memcpy(&aligned, &raw, sizeof(raw));
  return aligned.pack;
}

template <int N, class T>
__device__ __forceinline__ Pack<std::remove_const_t<T>, N> load_wide_streaming(T* p) {
  return unpack(load_raw_streaming<N>(p));
}
template <int N, class T>
__device__ __forceinline__ void store_wide_streaming(T* p, const Pack<T, N>& values) {
  store_raw_streaming(p, raw(values));
}

}  // namespace rung::inline RUNG_TARGET

// SPDX-License-Identifier: Apache-2.0
// wgmma: the tensor cores of compute capability 9.0. A warpgroup (128 threads: four warps in a row)
// multiplies 64 x K by K x N elements, operands in shared memory, sums in registers. For sm_90a.
//
//   float sums[N / 2];                         // N = 8, 16 ... 256, by the array's size
//   ptx::wgmma_fence(sums);                    // ordinary code has written them
//   for (int k = 0; k < 64; k += 16) {         // an instruction multiplies 32 bytes of K
//     ptx::wgmma<bf16>(sums, ptx::advanced(a, 2 * k), ptx::advanced(b, 2 * k), k > 0);
//   }
//   ptx::wgmma_commit();
//   ptx::wgmma_wait<0>(sums);                  // they are there; a and b may be overwritten
//
// It runs asynchronously: until the wait neither `sums` nor an A in registers may be touched, and
// the array stays where it is. Operands that threads wrote themselves need fence_async_proxy()
// (ptx/bulk_copy.hpp) by each writer before the barrier; what copies brought needs none.
//
// Registers, with w = warp % 4, group = lane / 4 and t = lane % 4:
//   D         d[i]: row 16 w + group + 8 (i / 2 % 2), column 8 (i / 4) + 2 t + i % 2
//   A 16-bit  a[0]: row 16 w + group, columns 2 t, 2 t + 1; a[1]: row + 8; a[2], a[3]: columns + 8
//   A tf32    a[0]: row 16 w + group, column t; a[1]: row + 8; a[2], a[3]: column + 4
//   A 8-bit   a[0]: row 16 w + group, columns 4 t to 4 t + 3; a[1]: row + 8; a[2], a[3]: + 16
//
// Operands in shared memory: B is described as N rows of K elements, so "rows" are those of M or N.
// Nothing smaller than 16 bytes is moved by a swizzle, of W = 32, 64 or 128 bytes.
//   K-major         row r is at r * W, swizzled, W bytes long; more bytes of K are further panels.
//                   `stride` leads to the next 8 rows, 8 W where they are dense; `leading` means
//                   nothing. Within a panel, along K, one advances by so many bytes.
//   K-major, none   pieces of 8 rows by 16 bytes, dense. `leading` leads to the next along K,
//                   `stride` along the rows.
//   MN-major        element (row, k) is at k * W + 2 row, swizzled, for W / 2 rows; more rows are
//                   further panels: `leading` leads there, `stride` to the next 8 k, 8 W where they
//                   are dense. 16-bit types only, here and below.
//   MN-major, none  pieces of 8 k by 16 bytes (8 rows), dense. `stride` leads to the next along the
//                   rows, `leading` along K.
// tensor_load with the same swizzle writes these layouts.
#pragma once

#include <cstdint>
#include <type_traits>

#include "rung/core/dtype.hpp"
#include "rung/device/device.hpp"
#include "rung/device/tensor_map.hpp"

#if defined(__CUDACC__)
#include "rung/device/ptx/wgmma_shapes.hpp"
#else
#include "rung/simt/wgmma.hpp"
#endif

namespace rung::inline RUNG_TARGET::ptx {

/// The operand type of floats of which the tensor core sees 19 bits; it truncates.
struct tf32 {};

enum class Major : std::uint8_t { k, mn };

/// Descriptor of an operand in shared memory.
struct MatrixDescriptor {
  std::uint64_t bits;
};
/// Offsets in bytes, multiples of 16. The tile is aligned to swizzle_period(); where its rows begin
/// within the pattern, `line` says in which of its 128-byte lines.
__device__ __forceinline__ MatrixDescriptor matrix_descriptor(const void* tile, Swizzle swizzle,
                                                              int leading, int stride,
                                                              int line = 0) {
  const auto field = [](std::uint32_t bytes) { return std::uint64_t{(bytes & 0x3ffffu) >> 4}; };
  // The instruction counts swizzles from the widest.
  const std::uint64_t mode = swizzle == Swizzle::none ? 0 : 4 - static_cast<std::uint64_t>(swizzle);
  return {field(shared_address(tile)) | field(static_cast<std::uint32_t>(leading)) << 16 |
          field(static_cast<std::uint32_t>(stride)) << 32 |
          static_cast<std::uint64_t>(line & 7) << 49 | mode << 62};
}
/// Returns the descriptor advanced by `bytes`, a multiple of 16.
__device__ __forceinline__ MatrixDescriptor advanced(MatrixDescriptor matrix, int bytes) {
  return {matrix.bits + static_cast<std::uint64_t>(bytes >> 4)};
}

/// Options of the instruction. Only 16-bit types may be MN-major.
struct WgmmaOptions {
  Major a = Major::k;
  Major b = Major::k;
  bool negate_a = false;  // not of integers
  bool negate_b = false;
};

namespace device_detail {

template <class T>
inline constexpr bool is_integer =
    std::is_same_v<T, std::int8_t> || std::is_same_v<T, std::uint8_t>;
template <class T>
inline constexpr bool is_small_float = std::is_same_v<T, e4m3> || std::is_same_v<T, e5m2>;

/// Combinations of operand and accumulator types.
template <class A, class B, class Sum, int Registers>
constexpr bool wgmma_takes(WgmmaOptions options, bool a_in_registers) {
  constexpr bool halves =
      std::is_same_v<A, B> && (std::is_same_v<A, f16> || std::is_same_v<A, bf16>);
  constexpr bool others = (std::is_same_v<A, tf32> && std::is_same_v<B, tf32>) ||
                          (is_small_float<A> && is_small_float<B>);
  constexpr bool integers = is_integer<A> && is_integer<B>;
  constexpr int n = 2 * Registers;
  const bool k_major = options.a == Major::k && options.b == Major::k;
  if (a_in_registers && options.a != Major::k) return false;
  if (n < 8 || n > 256 || n % 8 != 0) return false;
  if (integers) {
    return k_major && !options.negate_a && !options.negate_b && std::is_same_v<Sum, int> &&
           (n % 16 == 0 || n == 8 || n == 24);
  }
  return (halves || (others && k_major)) && std::is_same_v<Sum, float>;
}

}  // namespace device_detail

#if defined(__CUDACC__)

namespace device_detail {
/// Keeps the compiler from moving what it does with registers across this place.
template <class Sums>
__device__ __forceinline__ void hold(Sums& sums) {
  if constexpr (std::is_array_v<Sums>) {
#pragma unroll
    for (auto& each : sums) hold(each);
  } else if constexpr (std::is_same_v<Sums, float>) {
    asm volatile("" : "+f"(sums)::"memory");
  } else {
    asm volatile("" : "+r"(sums)::"memory");
  }
}
}  // namespace device_detail

/// Orders register accesses before a wgmma. Required before the first one, and before one whose
/// registers (sums, an A) ordinary code has accessed since: pass the array, of any rank. All
/// threads of the warpgroup call these functions.
__device__ __forceinline__ void wgmma_fence() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
template <class Sums>
__device__ __forceinline__ void wgmma_fence(Sums& sums) {
  device_detail::hold(sums);
  wgmma_fence();
}
/// Makes a group of what was issued since the last call.
__device__ __forceinline__ void wgmma_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
/// Waits until at most `Pending` groups are in flight; give the array that is used next.
template <int Pending>
__device__ __forceinline__ void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Pending) : "memory");
}
template <int Pending, class Sums>
__device__ __forceinline__ void wgmma_wait(Sums& sums) {
  wgmma_wait<Pending>();
  device_detail::hold(sums);
}

/// sums = a b^T, added to what they are if `accumulate`: 64 rows of a, 2 * Registers rows of b, 32
/// bytes of each along K. Sums are int for 8-bit integers, else float.
template <class A, class B = A, WgmmaOptions Options = WgmmaOptions{}, class Sum, int Registers>
__device__ __forceinline__ void wgmma(Sum (&sums)[Registers], MatrixDescriptor a,
                                      MatrixDescriptor b, bool accumulate) {
  static_assert(device_detail::wgmma_takes<A, B, Sum, Registers>(Options, false));
  using namespace device_detail;
  using Kind = AsmArray<WgmmaKind<A, B>>;
  using Tail = AsmArray<WgmmaTail<A, Options.a == Major::mn, Options.b == Major::mn,
                                  Options.negate_a, Options.negate_b, false>>;
  WgmmaShape<2 * Registers>::template from_shared<Kind, Tail>(sums, a.bits, b.bits, accumulate);
}
/// Multiplies with `a` in registers.
template <class A, class B = A, WgmmaOptions Options = WgmmaOptions{}, class Sum, int Registers>
__device__ __forceinline__ void wgmma(Sum (&sums)[Registers], const std::uint32_t (&a)[4],
                                      MatrixDescriptor b, bool accumulate) {
  static_assert(device_detail::wgmma_takes<A, B, Sum, Registers>(Options, true));
  using namespace device_detail;
  using Kind = AsmArray<WgmmaKind<A, B>>;
  using Tail = AsmArray<
      WgmmaTail<A, false, Options.b == Major::mn, Options.negate_a, Options.negate_b, true>>;
  WgmmaShape<2 * Registers>::template from_registers<Kind, Tail>(sums, a, b.bits, accumulate);
}

#else

namespace device_detail {

template <class T>
constexpr simt::WgmmaType wgmma_type() {
  using simt::WgmmaType;
  if constexpr (std::is_same_v<T, f16>) return WgmmaType::f16;
  if constexpr (std::is_same_v<T, bf16>) return WgmmaType::bf16;
  if constexpr (std::is_same_v<T, tf32>) return WgmmaType::tf32;
  if constexpr (std::is_same_v<T, e4m3>) return WgmmaType::e4m3;
  if constexpr (std::is_same_v<T, e5m2>) return WgmmaType::e5m2;
  if constexpr (std::is_same_v<T, std::int8_t>) return WgmmaType::s8;
  return WgmmaType::u8;
}
template <class A, class B, int N>
constexpr simt::WgmmaShape wgmma_shape(WgmmaOptions options) {
  return {wgmma_type<A>(),  wgmma_type<B>(), N, options.a == Major::mn, options.b == Major::mn,
          options.negate_a, options.negate_b};
}

}  // namespace device_detail

inline void wgmma_fence(simt::Place place = simt::Place::current()) { simt::wgmma_fence(place); }
template <class Sums>
void wgmma_fence(Sums&, simt::Place place = simt::Place::current())
  requires(std::is_array_v<Sums>)
{
  simt::wgmma_fence(place);
}
inline void wgmma_commit(simt::Place place = simt::Place::current()) { simt::wgmma_commit(place); }
template <int Pending>
void wgmma_wait(simt::Place place = simt::Place::current()) {
  simt::wgmma_wait(Pending, place);
}
template <int Pending, class Sums>
void wgmma_wait(Sums&, simt::Place place = simt::Place::current())
  requires(std::is_array_v<Sums>)
{
  simt::wgmma_wait(Pending, place);
}

template <class A, class B = A, WgmmaOptions Options = WgmmaOptions{}, class Sum, int Registers>
void wgmma(Sum (&sums)[Registers], MatrixDescriptor a, MatrixDescriptor b, bool accumulate,
           simt::Place place = simt::Place::current()) {
  static_assert(device_detail::wgmma_takes<A, B, Sum, Registers>(Options, false));
  simt::wgmma(device_detail::wgmma_shape<A, B, 2 * Registers>(Options), sums, nullptr, a.bits,
              b.bits, accumulate, place);
}
template <class A, class B = A, WgmmaOptions Options = WgmmaOptions{}, class Sum, int Registers>
void wgmma(Sum (&sums)[Registers], const std::uint32_t (&a)[4], MatrixDescriptor b, bool accumulate,
           simt::Place place = simt::Place::current()) {
  static_assert(device_detail::wgmma_takes<A, B, Sum, Registers>(Options, true));
  simt::wgmma(device_detail::wgmma_shape<A, B, 2 * Registers>(Options), sums, a, 0, b.bits,
              accumulate, place);
}

#endif

}  // namespace rung::inline RUNG_TARGET::ptx

// SPDX-License-Identifier: Apache-2.0
// wgmma: tensor core instructions of compute capability 9.0. A warpgroup (four consecutive warps)
// multiplies 64 x K by K x N elements, with operands in shared memory and sums in registers. For
// sm_90a.
//
//   float sums[N / 2];                         // N = 8, 16 ... 256, by the array's size
//   ptx::wgmma_fence(sums);                    // after ordinary accesses to sums
//   for (int k = 0; k < 64; k += 16) {         // an instruction covers 32 bytes of K
//     ptx::wgmma<bf16>(sums, ptx::advanced(a, 2 * k), ptx::advanced(b, 2 * k), k > 0);
//   }
//   ptx::wgmma_commit();
//   ptx::wgmma_wait<0>(sums);                  // sums are complete; a and b may be overwritten
//
// wgmma is asynchronous: before the wait, neither `sums` nor an A in registers may be accessed or
// moved to other registers. Operands that threads wrote to shared memory need fence_async_proxy()
// (ptx/bulk_copy.hpp) by each writer before the barrier; operands from copies need none.
//
// Registers, with w = warp % 4, group = lane / 4 and t = lane % 4:
//   D         d[i]: row 16 w + group + 8 (i / 2 % 2), column 8 (i / 4) + 2 t + i % 2
//   A 16-bit  a[0]: row 16 w + group, columns 2 t, 2 t + 1; a[1]: row + 8; a[2], a[3]: columns + 8
//   A tf32    a[0]: row 16 w + group, column t; a[1]: row + 8; a[2], a[3]: column + 4
//   A 8-bit   a[0]: row 16 w + group, columns 4 t to 4 t + 3; a[1]: row + 8; a[2], a[3]: + 16
//
// Operands in shared memory. B has N rows of K elements: "rows" are along M or N. A swizzle of
// W = 32, 64 or 128 bytes permutes 16-byte chunks. `leading` and `stride` are byte offsets.
//   K-major         row r is at r * W, swizzled, W bytes long; more bytes of K are further panels.
//                   `stride`: from 8 rows to the next 8, 8 W if dense. `leading`: ignored.
//                   advanced() moves along K within a panel.
//   K-major, none   dense blocks of 8 rows by 16 bytes. `leading`: to the next block along K.
//                   `stride`: to the next block along the rows.
//   MN-major        element (row, k) is at k * W + 2 row, swizzled, for W / 2 rows; more rows are
//                   further panels. `leading`: to the next panel. `stride`: from 8 k to the next 8,
//                   8 W if dense. MN-major operands have 16-bit types.
//   MN-major, none  dense blocks of 8 k by 16 bytes (8 rows). `stride`: to the next block along the
//                   rows. `leading`: to the next block along K.
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

/// Operand type of floats as tf32: the tensor core truncates them to 19 bits.
struct tf32 {};

enum class Major : std::uint8_t { k, mn };

/// Descriptor of an operand in shared memory.
struct MatrixDescriptor {
  std::uint64_t bits;
};
/// Makes a descriptor from `leading` and `stride`, multiples of 16 bytes. The tile is aligned to
/// swizzle_period(), except for rows that begin within the swizzle's pattern: `line` is then the
/// index of their 128-byte line in the pattern.
__device__ __forceinline__ MatrixDescriptor matrix_descriptor(const void* tile, Swizzle swizzle,
                                                              int leading, int stride,
                                                              int line = 0) {
  const auto field = [](std::uint32_t bytes) { return std::uint64_t{(bytes & 0x3ffffu) >> 4}; };
  // The descriptor encodes 128, 64 and 32 bytes as 1, 2 and 3.
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
  bool negate_a = false;  // floats only
  bool negate_b = false;
};

namespace device_detail {

template <class T>
inline constexpr bool is_integer =
    std::is_same_v<T, std::int8_t> || std::is_same_v<T, std::uint8_t>;
template <class T>
inline constexpr bool is_small_float = std::is_same_v<T, e4m3> || std::is_same_v<T, e5m2>;

/// Returns whether wgmma supports the combination of types, width and options.
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
/// Prevents the compiler from moving accesses to these registers across this point.
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

/// Orders register accesses before a wgmma. Required before the first wgmma, and before a wgmma
/// whose registers (sums, or A) ordinary code has accessed since the last one: pass their array, of
/// any rank. All threads of the warpgroup call it.
__device__ __forceinline__ void wgmma_fence() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
template <class Sums>
__device__ __forceinline__ void wgmma_fence(Sums& sums) {
  device_detail::hold(sums);
  wgmma_fence();
}
/// Makes the wgmma instructions issued since the last call a group.
__device__ __forceinline__ void wgmma_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
/// Waits until at most `Pending` groups are in flight; pass the array of sums that is used next.
template <int Pending>
__device__ __forceinline__ void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Pending) : "memory");
}
template <int Pending, class Sums>
__device__ __forceinline__ void wgmma_wait(Sums& sums) {
  wgmma_wait<Pending>();
  device_detail::hold(sums);
}

/// Computes a b^T for 64 rows of a and 2 * Registers rows of b, 32 bytes of each along K; adds to
/// `sums` if `accumulate`, else overwrites them. Sums are int for 8-bit integers, else float.
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
/// Computes the same product with `a` in registers.
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

// SPDX-License-Identifier: Apache-2.0
// shared<Layout>(): the block's dynamic shared memory as a struct.
//
//   struct Tiles { float a[2][16][64]; float b[2][16][64]; };
//   Tiles& tiles = shared<Tiles>();          // launched with .shared_bytes = sizeof(Tiles)
//
// One struct defines the layout, of up to 227 KiB (static __shared__ is limited to 48 KiB); the
// simulator allocates it. The base is 1024-byte aligned, as 128-byte swizzles need. Contents are
// undefined at first; the simulator fills them with NaN.
#pragma once

#include <cstdint>
#include <type_traits>

#include "rung/device/target.hpp"

#if !defined(__CUDACC__)
#include "rung/simt/simulator.hpp"
#include "rung/simt/sync.hpp"
#endif

namespace rung::inline RUNG_TARGET {

#if defined(__CUDACC__)

namespace device_detail {
extern __shared__ __align__(1024) unsigned char shared_bytes[];
}

template <class Layout>
__device__ __forceinline__ Layout& shared() {
  static_assert(std::is_trivially_default_constructible_v<Layout> && alignof(Layout) <= 1024);
  return *reinterpret_cast<Layout*>(device_detail::shared_bytes);
}

/// Returns the address in the shared state space, as PTX instructions expect it.
__device__ __forceinline__ std::uint32_t shared_address(const void* pointer) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(pointer));
}

#else

template <class Layout>
Layout& shared(simt::Place place = simt::Place::current()) {
  static_assert(std::is_trivially_default_constructible_v<Layout> && alignof(Layout) <= 1024);
  if (sizeof(Layout) > simt::shared_memory_size()) {
    simt::fail("shared<Layout>() is larger than the launch's shared_bytes", place);
  }
  return *static_cast<Layout*>(simt::shared_memory());
}

/// Returns the address in the shared state space. The first KiB is reserved, as on the GPU;
/// addresses have at most 18 bits.
inline std::uint32_t shared_address(const void* pointer) {
  return static_cast<std::uint32_t>(static_cast<const char*>(pointer) -
                                    static_cast<const char*>(simt::shared_memory())) +
         1024;
}

#endif

}  // namespace rung::inline RUNG_TARGET

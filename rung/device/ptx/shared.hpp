// SPDX-License-Identifier: Apache-2.0
// Atomic additions to counters in shared memory, by shared address, and loads of data that is read
// once; for histogram kernels.
//
//   const std::uint32_t row = shared_address(&table[lane]);
//   ptx::shared_add_if(inside, row + bin * row_bytes, 1);
//
// atomicAdd() converts a generic address again after every branch; a shared address is computed
// once.
#pragma once

#include <cstdint>

#include "rung/device/convert.hpp"
#include "rung/device/device.hpp"

namespace rung::inline RUNG_TARGET::ptx {

#if defined(__CUDACC__)

/// Atomically adds `amount` to the word at `address`, a result of shared_address().
__device__ __forceinline__ void shared_add(std::uint32_t address, unsigned amount) {
  asm volatile("red.shared.add.u32 [%0], %1;" ::"r"(address), "r"(amount) : "memory");
}
/// Adds if `condition` holds; otherwise the address is not accessed. The assembler may emit a
/// branch.
__device__ __forceinline__ void shared_add_if(bool condition, std::uint32_t address,
                                              unsigned amount) {
  asm volatile(
      "{\n .reg .pred p;\n setp.ne.s32 p, %0, 0;\n @p red.shared.add.u32 [%1], %2;\n}" ::"r"(
          static_cast<int>(condition)),
      "r"(address), "r"(amount)
      : "memory");
}

/// Loads 16 bytes that no kernel writes and no other thread reads, without allocation in L1.
__device__ __forceinline__ Pack<unsigned, 4> load_once(const void* from) {
  Pack<unsigned, 4> words;
  asm("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
      : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
      : "l"(__cvta_generic_to_global(from)));
  return words;
}

#else

inline void shared_add(std::uint32_t address, unsigned amount) {
  constexpr std::uint32_t first = 1024;  // shared_address() of the first byte
  char* const memory = static_cast<char*>(simt::shared_memory());
  atomicAdd(reinterpret_cast<unsigned*>(memory + (address - first)), amount);
}
inline void shared_add_if(bool condition, std::uint32_t address, unsigned amount) {
  if (condition) shared_add(address, amount);
}
inline Pack<unsigned, 4> load_once(const void* from) {
  typedef unsigned Words __attribute__((vector_size(16), may_alias));
  const Words words = *static_cast<const Words*>(from);
  return {{words[0], words[1], words[2], words[3]}};
}

#endif

}  // namespace rung::inline RUNG_TARGET::ptx

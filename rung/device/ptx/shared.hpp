// SPDX-License-Identifier: Apache-2.0
// Additions to counters in shared memory, by address, and loads of what is read once: the two ends
// of a kernel that counts.
//
//   const std::uint32_t row = shared_address(&table[lane]);
//   ptx::shared_add_if(inside, row + bin * row_bytes, 1);
//
// atomicAdd() finds the block's shared memory anew behind every branch; an address is found once.
#pragma once

#include <cstdint>

#include "rung/device/convert.hpp"
#include "rung/device/device.hpp"

namespace rung::inline RUNG_TARGET::ptx {

#if defined(__CUDACC__)

/// Adds `amount` to the word at `address`, as shared_address() gives it, atomically.
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

/// 16 bytes that no other thread reads and nobody writes: they are not kept in the L1 cache.
__device__ __forceinline__ Pack<unsigned, 4> load_once(const void* from) {
  Pack<unsigned, 4> words;
  asm("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
      : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
      : "l"(__cvta_generic_to_global(from)));
  return words;
}

#else

inline void shared_add(std::uint32_t address, unsigned amount) {
  constexpr std::uint32_t first = 1024;  // of shared_address()
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

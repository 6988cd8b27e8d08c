// SPDX-License-Identifier: Apache-2.0
// Asynchronous stores to other blocks of a cluster (st.async): the store to a block's shared memory
// signals an mbarrier of that block when complete. Its latency is half that of a remote store
// followed by a remote arrival. Compute capability 9.0.
//
//   struct alignas(16) Sums { float at[4]; };
//   struct Shared { Sums of_block[8]; ptx::MemoryBarrier sent; };   // initialized for 1 arrival
//   if (threadIdx.x == 0) ptx::mbarrier_arrive_expect(s.sent, blocks * sizeof(Sums));
//   if (threadIdx.x < blocks) ptx::cluster_send(s.of_block[rank], sums, s.sent, threadIdx.x);
//   ptx::mbarrier_wait_cluster(s.sent, parity);                     // all sums have arrived
//
// Values may arrive before their bytes are expected: the phase cannot complete before the expecting
// thread's arrival.
#pragma once

#include <cstdint>
#include <type_traits>

#include "rung/device/ptx/mbarrier.hpp"

#if !defined(__CUDACC__)
#include "rung/simt/cluster_send.hpp"
#endif

namespace rung::inline RUNG_TARGET::ptx {

/// Stores `value` to block `rank`'s copy of `to`, 16 bytes at a time; block `rank`'s copy of
/// `barrier` counts the bytes. `to` and `barrier` are in this block's shared memory.
template <class T>
__device__ __forceinline__ void cluster_send(T& to, const T& value, MemoryBarrier& barrier,
                                             int rank) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) % 16 == 0 && alignof(T) >= 16);
  struct Words {
    std::uint32_t at[sizeof(T) / 4];
  };
  const auto words = __builtin_bit_cast(Words, value);
#pragma unroll
  for (std::size_t i = 0; i < sizeof(T) / 4; i += 4) {
#if defined(__CUDACC__)
    asm volatile(
        "{\n .reg .b32 target, counter;\n mapa.shared::cluster.u32 target, %0, %2;\n"
        " mapa.shared::cluster.u32 counter, %1, %2;\n"
        " st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [target], {%3, %4, %5, "
        "%6}, [counter];\n}" ::"r"(shared_address(&to) + static_cast<std::uint32_t>(4 * i)),
        "r"(shared_address(&barrier)), "r"(rank), "r"(words.at[i]), "r"(words.at[i + 1]),
        "r"(words.at[i + 2]), "r"(words.at[i + 3])
        : "memory");
#else
    simt::cluster_send(reinterpret_cast<char*>(&to) + 4 * i, words.at + i, &barrier.state, rank);
#endif
  }
}

}  // namespace rung::inline RUNG_TARGET::ptx

// SPDX-License-Identifier: Apache-2.0
// mbarriers of the simulated GPU. All of a barrier's state is in its 64 bits of shared memory, as
// on the chip, with a mark by which one that was never initialized is recognized.
#pragma once

#include <cstdint>
#include <string>

#include "rung/core/export.hpp"
#include "rung/simt/sync.hpp"

namespace rung::simt {

RUNG_API void mbarrier_init(std::uint64_t* barrier, int arrivals, Place place);
/// The calling thread's inits are for copies and other blocks to see.
RUNG_API void fence_mbarrier_init();
RUNG_API void mbarrier_invalidate(std::uint64_t* barrier, Place place);
/// Announces bytes to come, then arrives `count` times.
RUNG_API void mbarrier_arrive(std::uint64_t* barrier, std::uint32_t bytes, Place place,
                              int count = 1);
/// The same, for the last time: later phases expect so many arrivals fewer.
RUNG_API void mbarrier_drop(std::uint64_t* barrier, std::uint32_t bytes, Place place,
                            int count = 1);
RUNG_API void mbarrier_expect(std::uint64_t* barrier, std::uint32_t bytes, Place place);
/// Arrives at the barrier of the same place in block `rank` of the cluster.
RUNG_API void mbarrier_arrive_remote(std::uint64_t* barrier, int rank, Place place,
                                     std::uint32_t bytes = 0, int count = 1);
/// Its state now: what an arrival returns of the phase that it belongs to.
RUNG_API std::uint64_t mbarrier_state(std::uint64_t* barrier, Place place);
/// Of a state: the parity of its phase, and the arrivals that it still lacked.
RUNG_API std::uint32_t mbarrier_parity(std::uint64_t state);
RUNG_API std::uint32_t mbarrier_pending(std::uint64_t state);
RUNG_API bool mbarrier_try_wait(std::uint64_t* barrier, std::uint32_t parity, Place place,
                                bool of_state = false);
/// `of_state`: the parity is that of a state, whose phase it tells from the one before.
RUNG_API void mbarrier_wait(std::uint64_t* barrier, std::uint32_t parity, Place place,
                            bool of_state = false);

/// What the current phase still lacks: "1 of 2 arrivals and 512 bytes".
std::string what_is_missing(std::uint64_t barrier);

}  // namespace rung::simt

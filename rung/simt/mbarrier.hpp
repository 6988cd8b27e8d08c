// SPDX-License-Identifier: Apache-2.0
// mbarriers of the simulated GPU. A barrier's whole state is in its 64 bits of shared memory, as on
// a GPU; a tag in it detects barriers that were never initialized.
#pragma once

#include <cstdint>
#include <string>

#include "rung/core/export.hpp"
#include "rung/simt/sync.hpp"

namespace rung::simt {

RUNG_API void mbarrier_init(std::uint64_t* barrier, int arrivals, Place place);
/// Makes the calling thread's mbarrier initializations visible to copies and to other blocks
/// (fence.mbarrier_init).
RUNG_API void fence_mbarrier_init();
RUNG_API void mbarrier_invalidate(std::uint64_t* barrier, Place place);
/// Announces `bytes` (expect_tx), then arrives `count` times.
RUNG_API void mbarrier_arrive(std::uint64_t* barrier, std::uint32_t bytes, Place place,
                              int count = 1);
/// Arrives `count` times and drops out: later phases expect `count` arrivals fewer (arrive_drop).
RUNG_API void mbarrier_drop(std::uint64_t* barrier, std::uint32_t bytes, Place place,
                            int count = 1);
RUNG_API void mbarrier_expect(std::uint64_t* barrier, std::uint32_t bytes, Place place);
/// Arrives at the barrier at the same offset in block `rank` of the cluster.
RUNG_API void mbarrier_arrive_remote(std::uint64_t* barrier, int rank, Place place,
                                     std::uint32_t bytes = 0, int count = 1);
/// Returns the barrier's current state, in the encoding that an arrival returns.
RUNG_API std::uint64_t mbarrier_state(std::uint64_t* barrier, Place place);
/// Returns the parity of the phase in `state`.
RUNG_API std::uint32_t mbarrier_parity(std::uint64_t state);
RUNG_API std::uint32_t mbarrier_pending(std::uint64_t state);
RUNG_API bool mbarrier_try_wait(std::uint64_t* barrier, std::uint32_t parity, Place place,
                                bool of_state = false);
/// Waits for a phase of this parity. `of_state`: the parity comes from a state, which identifies
/// the phase exactly.
RUNG_API void mbarrier_wait(std::uint64_t* barrier, std::uint32_t parity, Place place,
                            bool of_state = false);

/// Describes what the current phase lacks: "1 of 2 arrivals and 512 bytes".
std::string what_is_missing(std::uint64_t barrier);

}  // namespace rung::simt

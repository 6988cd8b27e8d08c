// SPDX-License-Identifier: Apache-2.0
// Bulk copies of the simulated GPU (cp.async.bulk). A load lands when no thread can go on without
// it, and reads its source then; a store reads shared memory when its thread waits for its group.
// So a kernel that forgets a wait finds what was there before. Under random orders half of the
// copies are done at once instead, which tells the kernels that overwrite what others still read.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "rung/core/export.hpp"
#include "rung/simt/sync.hpp"

namespace rung::simt {

/// Adds the elements of `from` to those of `to`, each atomically.
using BulkReduce = void (*)(void* to, const void* from, std::size_t bytes);
template <class T>
void add_elements(void* to, const void* from, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes / sizeof(T); ++i) {
    std::atomic_ref<T>(static_cast<T*>(to)[i])
        .fetch_add(static_cast<const T*>(from)[i], std::memory_order_relaxed);
  }
}

RUNG_API void bulk_load(void* to, const void* from, std::uint32_t bytes, std::uint64_t* barrier,
                        Place place);
RUNG_API void bulk_load_multicast(void* to, const void* from, std::uint32_t bytes,
                                  std::uint64_t* barrier, std::uint16_t ranks, Place place);
RUNG_API void bulk_send(void* to, const void* from, std::uint32_t bytes, std::uint64_t* barrier,
                        int rank, Place place);
/// Plain when `reduce` is null.
RUNG_API void bulk_store(void* to, const void* from, std::uint32_t bytes, BulkReduce reduce,
                         Place place);
RUNG_API void bulk_commit();
/// Completes all groups of the calling thread but the latest `pending`; `read`: only their reads.
RUNG_API void bulk_wait_group(int pending, bool read);
/// The calling thread's writes so far are for copies to see.
RUNG_API void fence_async_proxy();
RUNG_API void bulk_prefetch(const void* from, std::uint32_t bytes, Place place);

}  // namespace rung::simt

// SPDX-License-Identifier: Apache-2.0
// Bulk copies of the simulated GPU (cp.async.bulk). A load is performed when no thread can proceed
// without it; a store reads shared memory when its thread waits for its group. A kernel that omits
// a wait therefore reads stale data. Under random orders half of the copies are performed at issue,
// which exposes kernels that overwrite a buffer still being read.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "rung/core/export.hpp"
#include "rung/simt/sync.hpp"

namespace rung::simt {

/// Adds the elements of `from` to the elements of `to`, each atomically.
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
/// Issues a store from shared to global memory; a reduction if `reduce` is not null.
RUNG_API void bulk_store(void* to, const void* from, std::uint32_t bytes, BulkReduce reduce,
                         Place place);
RUNG_API void bulk_commit();
/// Completes all groups of the calling thread except the latest `pending`. `read`: waits only until
/// these groups have read their source.
RUNG_API void bulk_wait_group(int pending, bool read);
/// Makes the calling thread's preceding writes visible to the asynchronous proxy
/// (fence.proxy.async).
RUNG_API void fence_async_proxy();
RUNG_API void bulk_prefetch(const void* from, std::uint32_t bytes, Place place);

}  // namespace rung::simt

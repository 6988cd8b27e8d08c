// SPDX-License-Identifier: Apache-2.0
// Interface of memory pools for other parts of the runtime.
#pragma once

#include <cstdint>

#include "rung/emulate/runtime/memory.hpp"

namespace rung::cuda {

/// Returns true if the pool's memory may be exported to other processes.
bool pool_may_export(cudaMemPool_t pool);
int device_of_pool(cudaMemPool_t pool);
/// Returns the pool's number, which is the same in all processes that have opened it.
std::uint64_t number_of_pool(cudaMemPool_t pool);
Access access_to_pool(cudaMemPool_t pool);

}  // namespace rung::cuda

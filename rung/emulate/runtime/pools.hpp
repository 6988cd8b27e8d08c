// SPDX-License-Identifier: Apache-2.0
// Functions of memory pools for other parts of the runtime.
#pragma once

#include <cstdint>

#include "rung/emulate/runtime/memory.hpp"

namespace rung::cuda {

/// Returns whether other processes may be told of its memory.
bool pool_may_export(cudaMemPool_t pool);
int device_of_pool(cudaMemPool_t pool);
/// Returns the number of the pool, which is the same in all processes that have it.
std::uint64_t number_of_pool(cudaMemPool_t pool);
Access access_to_pool(cudaMemPool_t pool);

}  // namespace rung::cuda

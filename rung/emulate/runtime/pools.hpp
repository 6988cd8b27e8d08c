// SPDX-License-Identifier: Apache-2.0
// What other parts of the runtime ask of memory pools.
#pragma once

#include <cstdint>

#include "rung/emulate/runtime/memory.hpp"

namespace rung::cuda {

/// Whether other processes may be told of its memory.
bool pool_may_export(cudaMemPool_t pool);
int device_of_pool(cudaMemPool_t pool);
/// The same in all processes that have the pool.
std::uint64_t number_of_pool(cudaMemPool_t pool);
Access access_to_pool(cudaMemPool_t pool);

}  // namespace rung::cuda

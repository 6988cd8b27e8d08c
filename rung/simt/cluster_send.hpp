// SPDX-License-Identifier: Apache-2.0
// st.async of the simulated GPU: stores 4 to 16 bytes to another block of the cluster. As with bulk
// copies, the data arrives when no thread can proceed without it; under random orders half of the
// stores are performed at issue.
#pragma once

#include <cstdint>

#include "rung/core/export.hpp"
#include "rung/simt/sync.hpp"

namespace rung::simt {

RUNG_API void cluster_send(void* to, const void* value, std::uint64_t* barrier, int rank,
                           Place place = Place::current(), std::uint32_t bytes = 16);

}  // namespace rung::simt

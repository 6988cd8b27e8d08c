// SPDX-License-Identifier: Apache-2.0
// Arithmetic of wgmma, and its reads of shared memory. Internal to simt/.
#pragma once

#include "rung/simt/warpgroup.hpp"

namespace rung::simt {

class Worker;

/// Returns 2 m n k.
std::uint64_t operations_of(const WgmmaShape& shape);
/// Computes sums += a b^T for all 128 threads of the warpgroup.
void multiply(Worker& here, const Block& block, MatrixProduct& product);
/// Records the reads of shared memory by the calling thread's warp; only lane 0 records them.
void note_operands(Worker& here, const MatrixProduct& product);

}  // namespace rung::simt

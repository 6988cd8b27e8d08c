// SPDX-License-Identifier: Apache-2.0
// The arithmetic of a wgmma, and the memory that it reads. Internal to simt/.
#pragma once

#include "rung/simt/warpgroup.hpp"

namespace rung::simt {

class Worker;

/// 2 m n k.
std::uint64_t operations_of(const WgmmaShape& shape);
/// sums += a b^T of all 128 threads.
void multiply(Worker& here, const Block& block, MatrixProduct& product);
/// Tells the recorder what the calling thread's share of the product reads of shared memory.
void note_operands(Worker& here, const MatrixProduct& product);

}  // namespace rung::simt

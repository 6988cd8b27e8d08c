// SPDX-License-Identifier: Apache-2.0
// Interface of simt_top for rungs that first copy operands into a layout that suits its tiles.
#pragma once

#include "rung/ops/gemm/cuda/detail/async.hpp"

namespace rung::gemm_cuda::inline RUNG_TARGET {

/// Returns the tile for a call, and its time with operands that are copied 16 bytes at a time.
TileChoice simt_top_choice(const Gemm::Args& args, const Context& context);

/// Returns the work of a call with that tile.
Work simt_top_work(const Gemm::Args& args, const Context& context);

/// Multiplies with the chosen tile. If C has a contiguous axis, it must be the rows.
void run_simt_top(Context& context, const Product32& p, const TileChoice& choice);

}  // namespace rung::gemm_cuda::inline RUNG_TARGET

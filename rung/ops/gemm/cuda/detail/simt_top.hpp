// SPDX-License-Identifier: Apache-2.0
// simt_top for other rungs, which bring operands into a form that suits its tiles.
#pragma once

#include "rung/ops/gemm/cuda/detail/async.hpp"

namespace rung::gemm_cuda::inline RUNG_TARGET {

/// The tile for a call, and its time with operands that are copied 16 bytes at a time.
TileChoice simt_top_choice(const Gemm::Args& args, const Context& context);

/// Returns the work of that tile.
Work simt_top_work(const Gemm::Args& args, const Context& context);

/// Multiplies by it. C has contiguous rows where it has a contiguous axis.
void run_simt_top(Context& context, const Product32& p, const TileChoice& choice);

}  // namespace rung::gemm_cuda::inline RUNG_TARGET

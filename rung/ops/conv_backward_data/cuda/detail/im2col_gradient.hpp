// SPDX-License-Identifier: Apache-2.0
// The rung implicit_gemm_tma as functions, which channels_first calls on copies.
#pragma once

#include <cstddef>

#include "rung/core/context.hpp"
#include "rung/core/work.hpp"
#include "rung/device/target.hpp"
#include "rung/ops/conv_backward_data/op/conv_backward_data.hpp"

namespace rung::conv_cuda::inline RUNG_TARGET {

Support supports_data_tma(const ConvBackwardData::Args& args, const Context& context);
Work data_tma_facts(const ConvBackwardData::Args& args, const Context& context);
/// Returns the size of the workspace in bytes.
std::size_t data_tma_bytes(const ConvBackwardData::Args& args, const Context& context);
/// Computes dx; `memory` has data_tma_bytes() bytes.
void run_data_tma(const ConvBackwardData::Args& args, Context& context, std::byte* memory);

}  // namespace rung::conv_cuda::inline RUNG_TARGET

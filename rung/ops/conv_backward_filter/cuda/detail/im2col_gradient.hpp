// SPDX-License-Identifier: Apache-2.0
// The rung implicit_gemm_tma as functions, which channels_first calls on copies.
#pragma once

#include <cstddef>

#include "rung/core/context.hpp"
#include "rung/core/work.hpp"
#include "rung/device/target.hpp"
#include "rung/ops/conv_backward_filter/op/conv_backward_filter.hpp"

namespace rung::conv_cuda::inline RUNG_TARGET {

Support supports_gradient_tma(const ConvBackwardFilter::Args& args, const Context& context);
Work gradient_tma_facts(const ConvBackwardFilter::Args& args, const Context& context);
/// Returns the size of the slices' partial sums in bytes; 0 if there is one slice.
std::size_t gradient_partial_bytes(const ConvBackwardFilter::Args& args, const Context& context);
/// Computes dw. `partial` has gradient_partial_bytes(); if null, the context's workspace is used.
void run_gradient_tma(const ConvBackwardFilter::Args& args, Context& context, void* partial);

}  // namespace rung::conv_cuda::inline RUNG_TARGET

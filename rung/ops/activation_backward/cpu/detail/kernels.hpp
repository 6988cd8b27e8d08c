// SPDX-License-Identifier: Apache-2.0
// activation_backward: kernels of the vector rungs.
#pragma once

#include <cstdint>

#include "rung/cpu/team.hpp"
#include "rung/ops/activation_backward/op/activation_backward.hpp"

namespace rung::activation_backward_cpu {

/// Kernel for a run of n elements; `steps` are the strides of dx, saved and dy.
using Kernel = void (*)(ActivationFunction function, void* dx, const void* saved, const void* dy,
                        const std::int64_t (&steps)[3], std::int64_t n);

/// 020: computes a range of elements in the order of args.elements on the calling thread.
void compute(const ActivationBackward::Args& args, cpu::Range range);

}  // namespace rung::activation_backward_cpu

// SPDX-License-Identifier: Apache-2.0
// conv_backward_data / threads
//
// Idea     Panels of pixels of dx, and if these are few also blocks of its channels, are divided
//          among the threads: they are independent.
// Changes  Against transposed_simd: all cores.
// Cost     As transposed_simd.
// Limits   None.
#include "rung/ops/conv/shared/cpu/call.hpp"
#include "rung/ops/conv_backward_data/cpu/detail/call.hpp"
#include "rung/ops/conv_backward_data/op/layer.hpp"

namespace rung {
namespace {

int threads_of(const ConvBackwardData::Args& args, const Context& context) {
  return conv_cpu::threads_for(conv_layer::phase_cost(args).operations / 2, context.threads());
}

Work work(const ConvBackwardData::Args& args, const Context& context) {
  return conv_backward_data_cpu::facts(args, context, threads_of(args, context));
}

void run(const ConvBackwardData::Args& args, Context& context) {
  conv_backward_data_cpu::transposed_on(args, context, threads_of(args, context));
}

const Rung<ConvBackwardData> self{
    {.name = "threads", .step = 30, .after = "transposed_simd", .work = work, .run = run}};

}  // namespace
}  // namespace rung

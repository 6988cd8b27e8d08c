// SPDX-License-Identifier: Apache-2.0
// conv_backward_filter / threads
//
// Idea     Blocks of dw, and slices of the pixels if blocks are few, are divided among the threads.
// Changes  Against terms_by_filters: all cores.
// Cost     As terms_by_filters.
// Limits   None.
#include "rung/ops/conv_backward_filter/cpu/detail/call.hpp"

namespace rung {
namespace {

using conv_backward_filter_cpu::threads_of;

Work work(const ConvBackwardFilter::Args& args, const Context& context) {
  return conv_backward_filter_cpu::facts(args, threads_of(args, context));
}

void run(const ConvBackwardFilter::Args& args, Context& context) {
  conv_backward_filter_cpu::terms_by_filters_on(args, context, threads_of(args, context));
}

const Rung<ConvBackwardFilter> self{
    {.name = "threads", .step = 30, .after = "terms_by_filters", .work = work, .run = run}};

}  // namespace
}  // namespace rung

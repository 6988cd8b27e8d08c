// SPDX-License-Identifier: Apache-2.0
// conv_backward_filter / threads
//
// Idea     blocks of dw, and slices of the pixels where it has few, are shared among the threads.
// Changes  against terms_by_filters: all cores.
// Cost     as terms_by_filters.
// Limits   every valid call.
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

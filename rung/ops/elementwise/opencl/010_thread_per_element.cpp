// SPDX-License-Identifier: Apache-2.0
// elementwise / thread per element: the host side of 010_thread_per_element.cl.
#include "rung/ops/elementwise/opencl/010_thread_per_element.cl.hpp"

#include "rung/core/integer.hpp"
#include "rung/ops/elementwise/op/elementwise.hpp"

namespace rung {
namespace {

Support supports(const Elementwise::Args& args, const Context&) {
  if (args.function != ElementwiseFunction::add) return unsupported("this rung adds");
  if (args.z.dtype != DType::f32) return unsupported("this rung takes f32");
  return args.flat() ? supported
                     : unsupported("takes contiguous tensors of one order, without broadcasting");
}

void run(const Elementwise::Args& args, Context& context) {
  const std::int64_t items = opencl::largest_group(context, 256);
  opencl::launch(context, {.source = source, .name = "elementwise_thread_per_element"},
                 {.groups = {ceil_div(args.size(), items)}, .items = {items}},
                 opencl::pointer_to(args.in[0]), opencl::pointer_to(args.in[1]),
                 opencl::pointer_to(args.z), args.size());
}

const Rung<Elementwise> self{{.name = "thread_per_element",
                              .step = 10,
                              .backend = Backend::opencl,
                              .supports = supports,
                              .passes = {.loads = 1, .stores = 1},
                              .run = run},
                             source.path};

}  // namespace
}  // namespace rung

// SPDX-License-Identifier: Apache-2.0
// elementwise / std_parallel: the peer std::transform with std::execution::par_unseq.
//
// Kernels  as std, divided among threads by oneTBB.
// Limits   f32 and f64, contiguous; one or two operands.
#include "rung/ops/elementwise/peers/module.hpp"

namespace rung {
namespace {

const peer_elementwise::Module& loaded() {
  static const peer_elementwise::Module module("std_parallel");
  return module;
}

Support present() { return loaded().present(); }

std::string about() { return std::string("libstdc++ on oneTBB, ") + peers::module_isa(); }

Support supports(const Elementwise::Args& args, const Context& context) {
  if (args.function == ElementwiseFunction::fma) {
    return unsupported("std::transform reads one or two ranges");
  }
  if (context.threads() > Context::cpu().info().sms) {
    return unsupported("oneTBB starts no more threads than there are cores");
  }
  return peer_elementwise::supports_call(args);
}

void run(const Elementwise::Args& args, Context& context) { loaded().run(args, context.threads()); }

const Rung<Elementwise> self{{.name = "std_parallel",
                              .peer = true,
                              .about = about,
                              .present = present,
                              .supports = supports,
                              .run = run}};

}  // namespace
}  // namespace rung

// SPDX-License-Identifier: Apache-2.0
// elementwise / eigen: the peer Eigen: Eigen's array expressions.
//
// Kernels  templates, compiled for each instruction set (peer_modules/).
// Limits   f32 and f64, contiguous; one thread.
#include "rung/ops/elementwise/peers/module.hpp"

namespace rung {
namespace {

const peer_elementwise::Module& loaded() {
  static const peer_elementwise::Module module("eigen");
  return module;
}

Support present() { return loaded().present(); }

std::string about() { return std::string("Eigen 3, ") + peers::module_isa(); }

Support supports(const Elementwise::Args& args, const Context&) {
  if (args.function == ElementwiseFunction::gelu) {
    return unsupported("Eigen's core has no error function");
  }
  return peer_elementwise::supports_call(args);
}

void run(const Elementwise::Args& args, Context& context) { loaded().run(args, context.threads()); }

const Rung<Elementwise> self{{.name = "eigen",
                              .peer = true,
                              .about = about,
                              .present = present,
                              .supports = supports,
                              .run = run}};

}  // namespace
}  // namespace rung

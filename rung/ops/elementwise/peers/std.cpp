// SPDX-License-Identifier: Apache-2.0
// elementwise / std: the peer std::transform with a lambda.
//
// Kernels  compiled with -O3 and the widest vectors; exp and similar functions are calls of libm.
// Limits   f32 and f64, contiguous; one thread.
#include "rung/ops/elementwise/peers/module.hpp"

namespace rung {
namespace {

const peer_elementwise::Module& loaded() {
  static const peer_elementwise::Module module("std");
  return module;
}

Support present() { return loaded().present(); }

std::string about() { return std::string("libstdc++, ") + peers::module_isa(); }

Support supports(const Elementwise::Args& args, const Context&) {
  if (args.function == ElementwiseFunction::fma) {
    return unsupported("std::transform reads one or two ranges");
  }
  return peer_elementwise::supports_call(args);
}

void run(const Elementwise::Args& args, Context& context) { loaded().run(args, context.threads()); }

const Rung<Elementwise> self{{.name = "std",
                              .peer = true,
                              .about = about,
                              .present = present,
                              .supports = supports,
                              .run = run}};

}  // namespace
}  // namespace rung

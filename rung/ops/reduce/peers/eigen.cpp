// SPDX-License-Identifier: Apache-2.0
// reduce / eigen: the peer Eigen's reductions of mapped arrays.
//
// Kernels  compiled with the module for the instruction set that our own rungs use.
// Limits   contiguous f32 and f64; one thread. min and max do not propagate NaN.
#include "rung/ops/reduce/peers/headers.hpp"

namespace rung {
namespace {
using namespace reduce_peer;

std::string about() { return module_about("Eigen", peer_reduce::Library::eigen); }

Support supports(const Reduce::Args& args, const Context&) { return supports_plain(args); }

void run(const Reduce::Args& args, Context& context) {
  run_module(args, context.threads(), peer_reduce::Library::eigen);
}

const Rung<Reduce> self{{.name = "eigen",
                         .peer = true,
                         .about = about,
                         .present = module_present,
                         .supports = supports,
                         .run = run}};
}  // namespace
}  // namespace rung

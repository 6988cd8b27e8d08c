// SPDX-License-Identifier: Apache-2.0
// reduce / std: the peer std::reduce of the standard library.
//
// Kernels  the policy unseq on one thread, par_unseq (on oneTBB) on several; compiled for the
//          instruction set that our own rungs use.
// Limits   contiguous f32 and f64. min and max do not propagate NaN.
#include "rung/ops/reduce/peers/headers.hpp"

namespace rung {
namespace {
using namespace reduce_peer;

std::string about() { return module_about("libstdc++", peer_reduce::Library::std); }

Support supports(const Reduce::Args& args, const Context&) { return supports_plain(args); }

void run(const Reduce::Args& args, Context& context) {
  run_module(args, context.threads(), peer_reduce::Library::std);
}

const Rung<Reduce> self{{.name = "std",
                         .peer = true,
                         .about = about,
                         .present = module_present,
                         .supports = supports,
                         .run = run}};
}  // namespace
}  // namespace rung

// SPDX-License-Identifier: Apache-2.0
// reduce / tbb: oneTBB's parallel_reduce and parallel_for as a peer.
//
// Kernels  std::reduce(unseq) within each piece; compiled for the instruction set that our own
//          rungs use.
// Limits   contiguous f32 and f64. min and max do not propagate NaN.
#include "rung/ops/reduce/peers/headers.hpp"

namespace rung {
namespace {
using namespace reduce_peer;

std::string about() { return module_about("oneTBB", peer_reduce::Library::tbb); }

Support supports(const Reduce::Args& args, const Context&) { return supports_plain(args); }

void run(const Reduce::Args& args, Context& context) {
  run_module(args, context.threads(), peer_reduce::Library::tbb);
}

const Rung<Reduce> self{{.name = "tbb",
                         .peer = true,
                         .about = about,
                         .present = module_present,
                         .supports = supports,
                         .run = run}};
}  // namespace
}  // namespace rung

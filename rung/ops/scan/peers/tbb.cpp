// SPDX-License-Identifier: Apache-2.0
// scan / tbb: the peer oneTBB, its parallel_scan over a blocked_range with the default partitioner.
#include "rung/ops/scan/peers/tbb.hpp"

namespace rung {
namespace {

std::string about() { return "oneTBB " + scan_peer::tbb().about() + ", parallel_scan"; }

void run(const Scan::Args& args, Context& context) {
  scan_peer::run(args, context, scan_peer::tbb().tbb_scan);
}

const Rung<Scan> self{{.name = "tbb",
                       .peer = true,
                       .about = about,
                       .present = scan_peer::present,
                       .supports = scan_peer::supports,
                       .run = run}};
}  // namespace
}  // namespace rung

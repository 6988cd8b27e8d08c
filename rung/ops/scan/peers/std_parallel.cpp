// SPDX-License-Identifier: Apache-2.0
// scan / std_parallel: the peer std::inclusive_scan(std::execution::par_unseq, ...), which
// libstdc++ runs on oneTBB.
#include "rung/core/require.hpp"
#include "rung/ops/scan/peers/tbb.hpp"

namespace rung {
namespace {

std::string about() {
  return "libstdc++ " + std::to_string(_GLIBCXX_RELEASE) + ", par_unseq on oneTBB " +
         scan_peer::tbb().about();
}

Support supports(const Scan::Args& args, const Context& context) {
  // libstdc++ 12 overwrites elements before it reads them.
  if (args.exclusive && same_place(args.x, args.y)) {
    return unsupported("the peer's exclusive scan is wrong in place");
  }
  return scan_peer::supports(args, context);
}

void run(const Scan::Args& args, Context& context) {
  scan_peer::run(args, context, scan_peer::tbb().std_scan);
}

const Rung<Scan> self{{.name = "std_parallel",
                       .peer = true,
                       .about = about,
                       .present = scan_peer::present,
                       .supports = supports,
                       .run = run}};
}  // namespace
}  // namespace rung

// SPDX-License-Identifier: Apache-2.0
// Callback for host accesses that a launcher observes.
#include "rung/simt/record/host_watch.hpp"

namespace rung::simt::record {

constinit HostWatch host_watch;

}  // namespace rung::simt::record

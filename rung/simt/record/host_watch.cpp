// SPDX-License-Identifier: Apache-2.0
// Selects host accesses that are reported to the launcher.
#include "rung/simt/record/host_watch.hpp"

namespace rung::simt::record {

constinit HostWatch host_watch;

}  // namespace rung::simt::record

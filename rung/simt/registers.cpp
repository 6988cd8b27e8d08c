// SPDX-License-Identifier: Apache-2.0
// setmaxnreg. Simulated threads have no register limit; the simulator only checks whether the
// registers that a kernel claims can become available.
#include <algorithm>

#include "rung/simt/scheduler.hpp"

namespace rung::simt {
namespace {

constexpr int registers_of_a_block = 65536;
constexpr int register_granule = 8;

/// Returns the maximum number of registers per thread that a compiler can allocate for a block that
/// has the SM to itself.
int max_at_start(const Block& block) {
  const int threads = static_cast<int>(block.warps.size()) * warp_lanes;
  return std::min(256, registers_of_a_block / threads / register_granule * register_granule);
}

}  // namespace

void set_registers(int registers, bool claim, Place place) {
  Worker& here = running_worker("setmaxnreg");
  Thread& self = here.current();
  if (self.lane != 0) return;  // called by all lanes of a warp
  const Block& block = *self.block;
  const int at_start = max_at_start(block);
  const int own = self.warp->registers == 0 ? at_start : self.warp->registers;
  if (claim ? registers <= own : registers >= own) return;
  const auto in_use = [&] {
    int sum = 0;
    for (const Warp& warp : block.warps) sum += warp.registers == 0 ? at_start : warp.registers;
    return sum;
  };
  const int pool = at_start * static_cast<int>(block.warps.size());
  while (claim && in_use() - own + registers > pool) {
    self.operation = "claim_registers, of which too few were released,";
    self.place = place;
    here.yield(YieldReason::in_vain);
  }
  self.warp->registers = registers;
  memory_changed = true;  // other warps may wait for the released registers
}

}  // namespace rung::simt

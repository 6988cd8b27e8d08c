// SPDX-License-Identifier: Apache-2.0
// Detects accesses to the shared memory of a block of the cluster that may have exited: each access
// must happen before the exit of the owning block under every order of threads.
#include "rung/simt/record/finding_text.hpp"
#include "rung/simt/record/findings.hpp"
#include "rung/simt/record/recorder.hpp"
#include "rung/simt/scheduler.hpp"

namespace rung::simt::record {

void Recorder::note_remote(const BlockRecord& block, const WarpRecord& warp,
                           const Request& request) {
  BlockRecord& owner = *request.target.block;
  const auto number = static_cast<std::uint32_t>(&warp - block.warps.data());
  const RemoteUse use{
      .block = block.number,
      .warp = number,
      .thread = number * warp_lanes + static_cast<std::uint32_t>(__builtin_ctz(request.lanes)),
      .clock = warp.clock + request.step.clock,
      .phase = owner.cluster_phase,
      .site = request.step.site};
  if (owner.block->live == 0) {
    report_remote(owner, use);
    return;
  }
  for (RemoteUse& before : owner.remote_uses) {
    if (before.block != use.block || before.warp != use.warp) continue;
    before = use;
    return;
  }
  owner.remote_uses.push_back(use);
}

void Recorder::end_remote(BlockRecord& block) {
  if (block.remote_uses.empty()) return;
  bool waits = false;  // some thread has waited at the cluster barrier since its last arrival
  for (const Thread& thread : block.block->threads) waits |= !thread.at_cluster;
  for (const RemoteUse& use : block.remote_uses) {
    bool known = false;
    for (const WarpRecord& warp : block.warps) {
      const Clocks* const clocks = warp.remote != nullptr ? warp.remote->of(use.block) : nullptr;
      known |= clocks != nullptr && (*clocks)[use.warp] >= use.clock;
    }
    if (!known || (!waits && use.phase + 1 >= block.cluster_phase)) report_remote(block, use);
  }
  block.remote_uses.clear();
}

void Recorder::report_remote(const BlockRecord& owner, const RemoteUse& use) {
  Step step;
  step.site = use.site;
  step.site_index = site_index(use.site);
  if (!is_news(Kind::race, step.site_index, 0)) return;
  Finding finding = describe(Kind::race, *this, step, Where::shared, use.block, use.thread);
  const uint3 index = owner.block->index;
  finding.other_block = index;
  finding.message = "block (" + std::to_string(index.x) + ", " + std::to_string(index.y) + ", " +
                    std::to_string(index.z) +
                    ") may end, and its shared memory with it, before another block of its "
                    "cluster accesses that";
  finding.advice =
      "wait for the other blocks before a block ends: cluster.sync() (barrier.cluster.arrive and "
      ".wait) behind the last access to another block's shared memory";
  add(std::move(finding));
}

}  // namespace rung::simt::record

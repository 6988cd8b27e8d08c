// SPDX-License-Identifier: Apache-2.0
// Runs a launch on one or more OS threads.
#include <optional>
#include <string>

#include "rung/core/error.hpp"
#include "rung/simt/launch_state.hpp"
#include "rung/simt/record/session.hpp"
#include "rung/simt/scheduler.hpp"

namespace rung::simt {
namespace {

void require_resident(const Launch& launch, const LaunchState& state) {
  const std::uint64_t most = resident_clusters(launch);
  if (state.clusters <= most) return;
  const auto blocks = static_cast<std::uint64_t>(state.cluster_size);
  throw Error(ErrorCode::device,
              "launch: a cooperative grid of " + std::to_string(state.clusters * blocks) +
                  " blocks of " +
                  std::to_string(std::uint64_t{launch.block.x} * launch.block.y * launch.block.z) +
                  " threads and " + std::to_string(launch.shared_bytes) +
                  " bytes of shared memory, of which " + std::to_string(most * blocks) +
                  " can be resident at once");
}

}  // namespace

void run(const Launch& launch) {
  if (launch.grid.x == 0 || launch.grid.y == 0 || launch.grid.z == 0) return;  // nothing to run
  LaunchState state(launch, thread_order());
  std::optional<record::LaunchRecord> record;
  if (record::follows_launches() && !launch.unrecorded) state.record = &record.emplace(launch);
  if (launch.cooperative) require_resident(launch, state);
  const int workers = static_cast<int>(state.useful_workers());
  // OpenMP's thread pool, with its workers and stacks, persists between launches.
#pragma omp parallel num_threads(workers) if (workers > 1)
  {
    try {
      worker().run(state);
    } catch (...) {
      state.failure.record(state.clusters, std::current_exception());
    }
  }
  const bool again = launch.launched_again != nullptr && *launch.launched_again;
  if (record && !again) record->finish();
  if (launch.unrecorded && !again) record::add_unrecorded(launch);
  state.failure.rethrow();
}

}  // namespace rung::simt

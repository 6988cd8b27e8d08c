// SPDX-License-Identifier: Apache-2.0
// Launches that repeat others. A kernel that is launched again and again and in which nothing is
// found is recorded in its first launches, and in few of the later ones: an unrecorded launch runs
// several times as fast (docs/simulated-gpu.md, "Repeated launches").
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "rung/emulate/runtime/api.hpp"
#include "rung/simt/record.hpp"
#include "rung/simt/simulator.hpp"

namespace rung::cuda {

/// Facts about a kernel's launches.
struct LaunchHistory;

/// One launch: decides, when it begins, whether it is recorded, and learns from it when it ends.
class Repetition {
 public:
  /// Sets launch.unrecorded and launch.summary. Both arguments must outlive it.
  Repetition(simt::Launch& launch, const Closure& closure);
  Repetition(const Repetition&) = delete;
  Repetition& operator=(const Repetition&) = delete;
  /// A launch that failed changes it, so that the next launches of its kernel are recorded.
  ~Repetition();
  /// `kernel`: its name for the report.
  void ended_well(const std::string& kernel);

 private:
  /// Describes the launch in words.
  std::vector<std::uint64_t> describe(const Closure& closure);
  /// Learns which memory its kernel writes to.
  void learn(LaunchHistory& history) const;

  simt::Launch& launch_;
  bool follows_ = false;  // the session counts or checks, and launches may go unrecorded
  bool ended_ = false;
  struct Pointer {
    std::size_t word;    // index into the launch's description
    const void* memory;  // begin of the memory that it points into
  };
  std::vector<Pointer> pointers_;  // arguments that point into registered memory
  simt::LaunchSummary summary_;
};

/// Sets which launches are recorded from now on, in the words of --checks, and all of their blocks.
void set_recorded_launches(const std::string& launches);

/// Returns the kernels of which some launches were not recorded, in the order of the first of
/// those.
std::vector<simt::record::PartlyRecorded> partly_recorded();

}  // namespace rung::cuda

// SPDX-License-Identifier: Apache-2.0
// Repeated launches. A kernel that is launched repeatedly without findings is recorded in its first
// launches and in a sample of later ones: an unrecorded launch runs several times as fast
// (docs/simulated-gpu.md, "Repeated launches").
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "rung/emulate/runtime/api.hpp"
#include "rung/simt/record.hpp"
#include "rung/simt/simulator.hpp"

namespace rung::cuda {

/// History of a kernel's launches.
struct LaunchHistory;

/// A launch: decides at its begin whether it is recorded, and learns from it at its end.
class Repetition {
 public:
  /// Sets launch.unrecorded and launch.summary. Both arguments must outlive the object.
  Repetition(simt::Launch& launch, const Closure& closure);
  Repetition(const Repetition&) = delete;
  Repetition& operator=(const Repetition&) = delete;
  /// Registers a failed launch, so that the next launches of its kernel are recorded.
  ~Repetition();
  /// Registers a completed launch. `kernel`: its name for the report.
  void ended_well(const std::string& kernel);

 private:
  /// Returns the words that describe the launch.
  std::vector<std::uint64_t> describe(const Closure& closure);
  /// Learns which memory the kernel writes.
  void learn(LaunchHistory& history) const;

  simt::Launch& launch_;
  bool follows_ = false;  // the session counts or checks, and launches may go unrecorded
  bool ended_ = false;
  struct Pointer {
    std::size_t word;    // index into the launch's description
    const void* memory;  // base of the target memory
  };
  std::vector<Pointer> pointers_;  // arguments that point to registered memory
  simt::LaunchSummary summary_;
};

/// Selects the launches recorded from now on, in the syntax of --checks.
void set_recorded_launches(const std::string& launches);

/// Returns the kernels with unrecorded launches, in order of the first of these.
std::vector<simt::record::PartlyRecorded> partly_recorded();

}  // namespace rung::cuda

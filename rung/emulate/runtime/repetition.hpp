// SPDX-License-Identifier: Apache-2.0
// Repeated launches. If a kernel is launched many times without findings, its first launches and
// few of the later ones are recorded: an unrecorded launch is several times as fast
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

/// Data about a kernel's launches.
struct LaunchHistory;

/// A launch of a kernel: decides at its start whether it is recorded, and evaluates it at its end.
class Repetition {
 public:
  /// Sets launch.unrecorded and launch.summary. Both arguments must outlive this object.
  Repetition(simt::Launch& launch, const Closure& closure);
  Repetition(const Repetition&) = delete;
  Repetition& operator=(const Repetition&) = delete;
  /// Handles a failed launch: the next launches of the kernel will be recorded.
  ~Repetition();
  /// Handles a successful launch. `kernel`: name for the report.
  void ended_well(const std::string& kernel);

 private:
  /// Returns the launch's description as a sequence of words.
  std::vector<std::uint64_t> describe(const Closure& closure);
  /// Records the memory that the kernel has written to.
  void learn(LaunchHistory& history) const;

  simt::Launch& launch_;
  bool follows_ = false;  // the session counts or checks, and may skip launches
  bool ended_ = false;
  struct Pointer {
    std::size_t word;    // index into the launch's description
    const void* memory;  // base address of the memory to which it points
  };
  std::vector<Pointer> pointers_;  // pointer arguments into registered memory
  simt::LaunchSummary summary_;
};

/// Selects the launches that are recorded from now on, with all their blocks. `launches`: in the
/// syntax of --checks.
void set_recorded_launches(const std::string& launches);

/// Returns the kernels with unrecorded launches, in the order of their first unrecorded launches.
std::vector<simt::record::PartlyRecorded> partly_recorded();

}  // namespace rung::cuda

// SPDX-License-Identifier: Apache-2.0
// Child processes, and a temporary folder that is removed even on signals.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace rung::emulate {

/// Result of a program's run.
struct Ending {
  int exit_code = 0;
  int signal = 0;          // signal that killed it; 0: none
  bool timed_out = false;  // killed at the time limit
};

/// Defers signals that would end the process (Ctrl-C, SIGTERM, a closed terminal or pipe) during
/// the object's lifetime: they are only recorded (interrupted()), so that destructors run. Child
/// processes are unaffected.
class HeldSignals {
 public:
  HeldSignals();
  ~HeldSignals();
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;
};

/// Runs a program with this command line and our standard streams, and waits for its exit. Fatal
/// signals are forwarded to the program; after such a signal, no further program is started.
/// `variables` are added to its environment. It is killed after `seconds` (0: no limit). Its
/// standard error goes to the file `errors`; "": to our own.
Ending run_program(const std::vector<std::string>& command,
                   const std::vector<std::pair<std::string, std::string>>& variables = {},
                   double seconds = 0, const std::string& errors = "");
/// Returns the fatal signal that was received; 0: none.
int interrupted();

/// A new temporary folder, removed with its contents on any exit except SIGKILL.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  HeldSignals held_;  // outlives the folder
  std::string path_;
};

}  // namespace rung::emulate

// SPDX-License-Identifier: Apache-2.0
// Running other programs, and a temporary folder that signals do not leave behind.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace rung::emulate {

/// How a program ended.
struct Ending {
  int exit_code = 0;
  int signal = 0;          // that killed it; 0: none
  bool timed_out = false;  // and was killed for it
};

/// While one lives, the signals that would end us - Ctrl-C, SIGTERM, a closed terminal or pipe -
/// are only remembered (interrupted()), so that destructors run. Programs started meanwhile do not
/// inherit this.
class HeldSignals {
 public:
  HeldSignals();
  ~HeldSignals();
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;
};

/// Runs a program with this command line, its streams being ours, and waits. Signals that would end
/// us are passed on to it; once one has come, no further program is started. `variables` are added
/// to the environment. After `seconds` it is killed; 0: never. What it writes to standard error
/// goes to the file `errors`; "": to ours.
Ending run_program(const std::vector<std::string>& command,
                   const std::vector<std::pair<std::string, std::string>>& variables = {},
                   double seconds = 0, const std::string& errors = "");
/// The signal that asked us to end; 0: none has.
int interrupted();

/// A new folder for temporary files; removed with all that it holds, whatever ends us but SIGKILL.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  HeldSignals held_;  // from before the folder is there until it is gone
  std::string path_;
};

}  // namespace rung::emulate

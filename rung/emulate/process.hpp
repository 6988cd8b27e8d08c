// SPDX-License-Identifier: Apache-2.0
// Running other programs, and a folder that is gone afterwards whatever happens.
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

/// Runs a program with this command line, its streams being ours, and waits. Signals that would end
/// us - Ctrl-C, a closed terminal - are passed on to it and remembered (interrupted()). `variables`
/// are added to the environment. After `seconds` it is killed; 0: never. What it writes to standard
/// error goes to the file `errors`; "": to ours.
Ending run_program(const std::vector<std::string>& command,
                   const std::vector<std::pair<std::string, std::string>>& variables = {},
                   double seconds = 0, const std::string& errors = "");
/// The signal that asked us to end; 0: none has.
int interrupted();

/// A new folder for temporary files; removed with all that it holds.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace rung::emulate

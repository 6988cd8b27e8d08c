// SPDX-License-Identifier: Apache-2.0
// Options of programs run without `rung emulate`, from the environment variable RUNG_EMULATE.
#pragma once

#include <string>

namespace rung::cuda {

struct ProgramOptions {
  std::string json;            // file for findings and counters; "": none
  int exit_code = 0;           // exit code if there are findings; 0: unchanged
  bool under_emulate = false;  // run by `rung emulate`, which has set all options
};

/// Returns the options. Also sets the environment variables that other parts of the runtime read.
const ProgramOptions& program_options();

}  // namespace rung::cuda

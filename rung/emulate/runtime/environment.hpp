// SPDX-License-Identifier: Apache-2.0
// Options of stand-alone programs, in the environment variable RUNG_EMULATE.
#pragma once

#include <string>

namespace rung::cuda {

struct ProgramOptions {
  std::string json;            // file for findings and counters; "": none
  int exit_code = 0;           // exit code of a program with findings; 0: its own
  bool under_emulate = false;  // run by `rung emulate`, which has set everything
};

/// Returns the options. Also sets the environment variables that other parts of the runtime read.
const ProgramOptions& program_options();

}  // namespace rung::cuda

// SPDX-License-Identifier: Apache-2.0
// Error: the exception of every public function. The message names the argument, its value and the
// accepted values; the code is for programs to branch on (and the C API returns it).
#pragma once

#include <stdexcept>
#include <string>

#include "rung/core/export.hpp"

namespace rung {

enum class ErrorCode {
  invalid_argument = 1,  // the call is invalid on every machine
  unsupported = 2,       // a valid call that no rung implements
  not_available = 3,     // needs a device, driver or library that this machine lacks
  out_of_memory = 4,
  io = 5,        // a file is missing, malformed or truncated
  device = 6,    // the GPU or the simulated GPU reported a failure
  internal = 7,  // a bug in rung
};

RUNG_API const char* to_string(ErrorCode code) noexcept;

class RUNG_API Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  [[nodiscard]] ErrorCode code() const noexcept { return code_; }

 private:
  ErrorCode code_;
};

}  // namespace rung

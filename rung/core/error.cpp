// SPDX-License-Identifier: Apache-2.0
// Names of error codes, as printed by the C API and the workbench.
#include "rung/core/error.hpp"

namespace rung {

const char* to_string(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::invalid_argument:
      return "invalid argument";
    case ErrorCode::unsupported:
      return "unsupported";
    case ErrorCode::not_available:
      return "not available";
    case ErrorCode::out_of_memory:
      return "out of memory";
    case ErrorCode::io:
      return "input/output error";
    case ErrorCode::device:
      return "device failure";
    case ErrorCode::internal:
      return "internal error";
  }
  return "unknown error";
}

}  // namespace rung

// SPDX-License-Identifier: Apache-2.0
// When a kernel under test brings the whole program down, its user should learn which one it was.
#pragma once

#include <string>

namespace rung::workbench {

/// Prints `command` to standard error on a fatal signal during its lifetime, before the program
/// ends with exit code 1. At most one object exists at a time.
class CrashNote {
 public:
  explicit CrashNote(const std::string& command);
  ~CrashNote();
  CrashNote(const CrashNote&) = delete;
  CrashNote& operator=(const CrashNote&) = delete;
};

}  // namespace rung::workbench

// SPDX-License-Identifier: Apache-2.0
// Names the kernel under test if it crashes the program.
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

// SPDX-License-Identifier: Apache-2.0
// When a kernel under test brings the whole program down, its user should learn which one it was.
#pragma once

#include <string>

namespace rung::workbench {

/// While it lives, a fatal signal prints `command` to standard error before the program ends with
/// exit code 1. One at a time.
class CrashNote {
 public:
  explicit CrashNote(const std::string& command);
  ~CrashNote();
  CrashNote(const CrashNote&) = delete;
  CrashNote& operator=(const CrashNote&) = delete;
};

}  // namespace rung::workbench

// SPDX-License-Identifier: Apache-2.0
// Final check of standard output at the end of a program.
#pragma once

namespace rung::workbench {

/// Returns the exit code of a program whose result is `code`: truncated output (a full disk) is a
/// failure, reported once.
int end_output(int code);

}  // namespace rung::workbench

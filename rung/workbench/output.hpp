// SPDX-License-Identifier: Apache-2.0
// The end of a program that writes to standard output.
#pragma once

namespace rung::workbench {

/// Returns the exit code of a program that returned `code`: truncated output (a full disk) is a
/// failure, which is reported once.
int end_output(int code);

}  // namespace rung::workbench

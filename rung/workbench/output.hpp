// SPDX-License-Identifier: Apache-2.0
// The end of a program that writes to standard output.
#pragma once

namespace rung::workbench {

/// What a program that returned `code` ends with: output that a full disk cut short is no success,
/// whatever was computed, and is told of, once.
int end_output(int code);

}  // namespace rung::workbench

// SPDX-License-Identifier: Apache-2.0
// Whole text files, read and written with errors that say what went wrong.
#pragma once

#include <string>

namespace rung::workbench {

/// Throws Error(io) when the file cannot be read.
std::string read_text_file(const std::string& path);
/// Writes aside and renames: the file is either the old one or the new one, never half of it. Makes
/// missing folders. Throws Error(io).
void write_text_file(const std::string& path, const std::string& text);

}  // namespace rung::workbench

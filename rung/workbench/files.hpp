// SPDX-License-Identifier: Apache-2.0
// Whole text files, read and written with errors that say what went wrong.
#pragma once

#include <string>
#include <string_view>

namespace rung::workbench {

/// Throws Error(io) when the file cannot be read.
std::string read_text_file(const std::string& path);
/// Throws Error(invalid_argument) for "-", which means standard output to other programs.
void refuse_dash(std::string_view option, const std::string& path);
/// Throws Error(io) that names `option` and the folder of `path` unless that folder exists, and
/// refuses "-".
void expect_folder_of(std::string_view option, const std::string& path);
/// Writes aside and renames: the file is either the old one or the new one, never half of it. Its
/// folder must exist. Throws Error(io).
void write_text_file(const std::string& path, const std::string& text);

}  // namespace rung::workbench

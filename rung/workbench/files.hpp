// SPDX-License-Identifier: Apache-2.0
// Reads and writes whole text files; errors state the cause.
#pragma once

#include <string>
#include <string_view>

namespace rung::workbench {

/// Returns the content of a file. Throws Error(io) if it cannot be read.
std::string read_text_file(const std::string& path);
/// Throws Error(invalid_argument) for "-", which means standard output in other programs.
void refuse_dash(std::string_view option, const std::string& path);
/// Throws Error(io) that names `option` and the folder of `path` if the folder does not exist;
/// throws for "-".
void expect_folder_of(std::string_view option, const std::string& path);
/// Replaces a file atomically, by writing a temporary file and renaming it. The folder must exist.
/// Throws Error(io).
void write_text_file(const std::string& path, const std::string& text);

}  // namespace rung::workbench

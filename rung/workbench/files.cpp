// SPDX-License-Identifier: Apache-2.0
// Reads and writes whole text files.
#include "rung/workbench/files.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

#include "rung/core/error.hpp"
#include "rung/harness/file_writer.hpp"

namespace rung::workbench {
namespace fs = std::filesystem;

std::string read_text_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  // Opening a folder succeeds; only reading fails. peek() reads.
  if (file && (file.peek() == EOF ? !file.bad() : static_cast<bool>(text << file.rdbuf()))) {
    return text.str();
  }
  throw Error(ErrorCode::io, fmt::format("{}: cannot be read: {}", path, std::strerror(errno)));
}

void refuse_dash(std::string_view option, const std::string& path) {
  if (path != "-") return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{}: '-' given; accepted: a file, ./- for one of that name, or "
                          "/dev/stdout",
                          option));
}

void expect_folder_of(std::string_view option, const std::string& path) {
  refuse_dash(option, path);
  std::error_code failed;
  const fs::path folder = fs::path(path).parent_path();
  if (folder.empty() || fs::is_directory(folder, failed)) return;
  throw Error(ErrorCode::io,
              fmt::format("{}: '{}' given, but there is no folder '{}'; accepted: a file in a "
                          "folder that exists",
                          option, path, folder.string()));
}

void write_text_file(const std::string& path, const std::string& text) { write_file(path, text); }

}  // namespace rung::workbench

// SPDX-License-Identifier: Apache-2.0
// Reading and writing whole text files.
#include "rung/workbench/files.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "rung/core/error.hpp"
#include "rung/core/file_writer.hpp"

namespace rung::workbench {
namespace fs = std::filesystem;

std::string read_text_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  // A folder opens like a file and fails only when it is read; peek() reads.
  if (file && (file.peek() == EOF ? !file.bad() : static_cast<bool>(text << file.rdbuf()))) {
    return text.str();
  }
  throw Error(ErrorCode::io, fmt::format("{}: cannot be read: {}", path, std::strerror(errno)));
}

void write_text_file(const std::string& path, const std::string& text) {
  std::error_code failed;
  if (const fs::path folder = fs::path(path).parent_path(); !folder.empty()) {
    fs::create_directories(folder, failed);
  }
  write_file(path, text);
}

}  // namespace rung::workbench

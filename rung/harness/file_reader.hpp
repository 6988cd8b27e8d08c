// SPDX-License-Identifier: Apache-2.0
// FileReader: reads tensor files. Only regular files are accepted: their size bounds the memory
// that is allocated for their claimed content.
#pragma once

#include <cstddef>
#include <string>

#include "rung/core/export.hpp"

namespace rung {

/// Throws Error(io) with the message "PATH: WHAT".
[[noreturn]] void fail_file(const std::string& path, const std::string& what);

class RUNG_API FileReader {
 public:
  /// Opens a file for reading. All functions throw Error(io) that names the file.
  explicit FileReader(std::string path);
  FileReader(const FileReader&) = delete;
  FileReader& operator=(const FileReader&) = delete;
  ~FileReader();

  /// Returns the size in bytes; throws if it is not a regular file.
  [[nodiscard]] std::size_t size() const;
  /// Reads the next `bytes` bytes; throws "truncated" if there are fewer.
  void read(void* to, std::size_t bytes);

 private:
  std::string path_;
  int descriptor_;
};

}  // namespace rung

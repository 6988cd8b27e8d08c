// SPDX-License-Identifier: Apache-2.0
// FileReader: how the files that tensors come from are read: regular ones, whose size is known
// before anything is allocated for what they claim to hold.
#pragma once

#include <cstddef>
#include <string>

#include "rung/core/export.hpp"

namespace rung {

/// Throws Error(io): "PATH: WHAT".
[[noreturn]] void fail_file(const std::string& path, const std::string& what);

class RUNG_API FileReader {
 public:
  /// Throws Error(io) that names the file, here and below.
  explicit FileReader(std::string path);
  FileReader(const FileReader&) = delete;
  FileReader& operator=(const FileReader&) = delete;
  ~FileReader();

  /// Returns the size in bytes; throws if it is not a regular file.
  [[nodiscard]] std::size_t size() const;
  /// The next `bytes`; where there are fewer, the file is truncated.
  void read(void* to, std::size_t bytes);

 private:
  std::string path_;
  int descriptor_;
};

}  // namespace rung

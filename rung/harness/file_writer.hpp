// SPDX-License-Identifier: Apache-2.0
// FileWriter: atomic replacement of output files. A reader sees the old content or the new content,
// never a part, even if the process is killed.
//
// The content is written to an unnamed file (O_TMPFILE) in the target's folder; commit() names it
// and renames it over the target. On file systems without O_TMPFILE, a file ".rung-..." with an
// unpredictable name is used instead; only a fatal signal can leave it behind.
//
// A replaced file keeps its mode and owner, and a symbolic link is followed, not replaced. Devices,
// FIFOs, sockets and open descriptors (/dev/stdout) are written directly, from the first write on.
// If the owner cannot be kept (a writable file of another user), the target is rewritten in place,
// which is not atomic.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "rung/core/export.hpp"

namespace rung {

class RUNG_API FileWriter {
 public:
  /// Throws Error(io) if `path` cannot be written: no such folder, a folder itself, no permission.
  explicit FileWriter(std::string path);
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;
  /// Discards the new contents unless commit() was called: the target is unchanged.
  ~FileWriter();

  void write(const void* from, std::size_t bytes);
  void write(std::string_view text) { write(text.data(), text.size()); }
  /// Makes the content durable (fsync) and puts it in place; throws Error(io) if either fails.
  void commit();

 private:
  void open_aside(const std::string& folder);
  void keep_attributes();
  void put_in_place();

  std::string path_;       // as given by the caller, for messages
  std::string target_;     // with symbolic links resolved
  std::string temporary_;  // name of the temporary file; "" if it is unnamed
  int descriptor_ = -1;
  bool nameless_ = false;
  bool direct_ = false;    // special file, written directly
  bool in_place_ = false;  // rewrite the target itself
};

/// Replaces or creates a whole file.
RUNG_API void write_file(const std::string& path, std::string_view content);

}  // namespace rung

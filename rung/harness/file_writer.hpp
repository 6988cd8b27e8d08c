// SPDX-License-Identifier: Apache-2.0
// FileWriter: how every output file of rung is written. A reader sees the old content or the new
// one, never a part, whatever ends the process.
//
// The content goes into a file without a name (O_TMPFILE) in the target's folder; commit() names it
// and renames it over the target. Where the file system has no nameless files, a file ".rung-..."
// with an unpredictable name takes its place; only a signal that kills the process can leave that
// one behind.
//
// Replacing keeps mode and owner of an existing file and replaces what a symbolic link points to,
// not the link. Devices, FIFOs, sockets and open descriptors (/dev/stdout) are written to as they
// are, from the first write on. Where the owner cannot be kept (a file of somebody else's that may
// be written), it is rewritten in place, which is not atomic.
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

  std::string path_;       // as the caller names it: for messages
  std::string target_;     // with symbolic links resolved
  std::string temporary_;  // the name of the file aside while it has one
  int descriptor_ = -1;
  bool nameless_ = false;
  bool direct_ = false;    // special files: nothing to put in place
  bool in_place_ = false;  // rewrite the target itself
};

/// Replaces or creates a whole file.
RUNG_API void write_file(const std::string& path, std::string_view content);

}  // namespace rung

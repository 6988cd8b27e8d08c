// SPDX-License-Identifier: Apache-2.0
// File of measured choices: one line of JSON per choice, appended under a lock, so that processes
// can share it. Of several lines with the same key the last one counts. Internal to core.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "rung/core/tuning.hpp"

namespace rung::detail {

/// Identity of a call across programs and machines.
struct TuningKey {
  std::string version, device, op, problem, layout;
  int threads = 0;  // of a CPU context; 0: any number
  auto operator<=>(const TuningKey&) const = default;
};

class TuningFile {
 public:
  explicit TuningFile(std::string path) : path_(std::move(path)) {}

  /// Returns the choice for a key, from this process or read from the file; an empty rung if there
  /// is none.
  Tuned find(const TuningKey& key);
  /// Records a choice in this process, and in the file if it can be written. Returns the valid
  /// choice: another process's, if it was written in the meantime and `replaces` is false.
  Tuned add(const TuningKey& key, const Tuned& choice, bool replaces);
  [[nodiscard]] std::string trouble();
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  void read_new_lines();
  Tuned append(const TuningKey& key, const Tuned& choice, bool replaces);

  std::mutex guard_;
  std::string path_;
  std::map<TuningKey, Tuned> choices_;
  std::string trouble_;
  // Inode of the file that was read, and the number of bytes read.
  unsigned long long file_ = 0;
  long long read_ = 0;
  double looked_ = -1;  // time of the last read, in seconds of a steady clock
};

}  // namespace rung::detail

// SPDX-License-Identifier: Apache-2.0
// The file of measured choices: a line of JSON per choice, appended under a lock, so that processes
// share it; of two lines with one key the later one holds. Internal to core.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "rung/core/tuning.hpp"

namespace rung::detail {

/// Identity of a call among those of all programs and machines.
struct TuningKey {
  std::string version, device, op, problem, layout;
  int threads = 0;  // of a CPU; 0: whatever their number
  auto operator<=>(const TuningKey&) const = default;
};

class TuningFile {
 public:
  explicit TuningFile(std::string path) : path_(std::move(path)) {}

  /// Returns the choice for a key, from this process or, read now, from another; no rung: none.
  Tuned find(const TuningKey& key);
  /// Keeps a choice in this process, and in the file if that can be written. Returns the choice
  /// that holds: unless it `replaces`, one that another process wrote meanwhile.
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
  // Inode of the file that has been read, and how many bytes of it.
  unsigned long long file_ = 0;
  long long read_ = 0;
  double looked_ = -1;  // when, in seconds of a steady clock
};

}  // namespace rung::detail

// SPDX-License-Identifier: Apache-2.0
// What `rung check` counts and reports.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "rung/harness/any_operator.hpp"
#include "rung/workbench/verify.hpp"

namespace rung::workbench {

/// One case: a rung (or the public call) on one problem, variant and seed.
struct Case {
  std::string op;
  std::string rung;
  Backend backend = Backend::cpu;
  std::string problem;
  std::string variant;
  std::uint64_t seed = 1;  // 0: not one case but every problem
  int threads = 1;
  int device = 0;

  /// The command line that repeats this case alone.
  [[nodiscard]] std::string command() const;
};

struct Failure {
  Case where;
  std::string message;
};

/// A problem that an output of zeros passes, too.
struct Mistrusted {
  std::string op;
  std::string problem;
  std::vector<std::string> variants;
};

/// Counts of one rung.
struct RungTally {
  std::int64_t passed = 0;
  std::int64_t failed = 0;
  std::int64_t skipped = 0;
  std::int64_t mistrusted = 0;  // of those that passed: zeros would have passed, too
  double seconds = 0;
  std::map<std::string, std::int64_t> reasons;  // why cases were skipped
};

class CheckReport {
 public:
  void add(const Case& where, const Verdict& verdict, double seconds);
  /// Returns the counts of the case's rung so far.
  [[nodiscard]] RungTally& tally(const Case& where);
  [[nodiscard]] RungTally total() const;
  [[nodiscard]] bool good() const { return failures_.empty(); }

  /// Notes on which device a backend's cases run.
  void note_device(const Context& context);

  void print_text() const;
  /// `complete`: no case is missing, as some are after a Ctrl-C.
  void print_json(const std::vector<std::string>& missing, bool complete) const;

 private:
  struct Key {
    std::string op;
    Backend backend;
    std::string rung;
    auto operator<=>(const Key&) const = default;
  };

  std::map<Key, RungTally> rungs_;
  std::vector<Key> order_;  // as the cases came: the ladder's
  std::vector<Failure> failures_;
  std::vector<Mistrusted> mistrusted_;
  std::map<Backend, std::string> devices_;  // names of those that are not the CPU

  void add_mistrusted(const Case& where);
  void print_mistrusted() const;
};

}  // namespace rung::workbench

// SPDX-License-Identifier: Apache-2.0
// Counters and report of `rung check`.
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
  std::uint64_t seed = 1;  // 0: not one case, but a rung that never ran
  int threads = 1;
  int device = 0;

  /// Returns the command line that repeats this case alone.
  [[nodiscard]] std::string command() const;
};

struct Failure {
  Case where;
  std::string message;
};

/// A problem on which an all-zero output would pass as well.
struct Mistrusted {
  std::string op;
  std::string problem;
  std::vector<std::string> variants;
};

/// Counters of one rung.
struct RungTally {
  std::int64_t passed = 0;
  std::int64_t failed = 0;
  std::int64_t skipped = 0;
  std::int64_t mistrusted = 0;  // passed cases that zeros would have passed as well
  double seconds = 0;
  std::map<std::string, std::int64_t> reasons;  // reasons of skipped cases, with counts
};

class CheckReport {
 public:
  void add(const Case& where, const Verdict& verdict, double seconds);
  /// Returns the counters of the case's rung.
  [[nodiscard]] RungTally& tally(const Case& where);
  [[nodiscard]] RungTally total() const;
  [[nodiscard]] bool good() const { return failures_.empty(); }

  /// Records the device on which a backend's cases run.
  void note_device(const Context& context);

  void print_text() const;
  /// Prints the report as JSON. `complete`: false if a Ctrl-C left out cases.
  void print_json(const std::vector<std::string>& missing, bool complete) const;

 private:
  struct Key {
    std::string op;
    Backend backend;
    std::string rung;
    auto operator<=>(const Key&) const = default;
  };

  std::map<Key, RungTally> rungs_;
  std::vector<Key> order_;  // in order of the cases, the ladder's order
  std::vector<Failure> failures_;
  std::vector<Mistrusted> mistrusted_;
  std::map<Backend, std::string> devices_;  // device names, except the CPU

  void add_mistrusted(const Case& where);
  void print_mistrusted() const;
};

}  // namespace rung::workbench

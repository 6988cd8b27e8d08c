// SPDX-License-Identifier: Apache-2.0
// Finds a location in the source for a barrier that orders the two sides of a race.
#pragma once

#include <string>

#include "rung/emulate/runtime/source_tree.hpp"
#include "rung/simt/record.hpp"

namespace rung::cuda {

/// The two sides of a race within a function, in source order.
struct Pair {
  const SourceTree* tree = nullptr;
  const Function* function = nullptr;
  const Statement* first = nullptr;
  const Statement* second = nullptr;
};

/// Formats the location: "between line 3 and line 5"; for a single line, the text of the
/// statements.
std::string between(const Pair& pair);

/// Advises the missing fence if a lock guards both sides of the race. Returns false if there is no
/// such lock.
bool advise_lock(simt::record::Finding& race, const Pair& pair);

/// Advises to let all threads of the block reach the barrier at this token, if it is in a divergent
/// branch; otherwise returns false.
bool advise_whole_barrier(simt::record::Finding& finding, const SourceTree& tree,
                          const Function& function, std::size_t barrier);

/// Advises a barrier between two calls of the racing function: a barrier separates the two sides,
/// but the next call overwrites data that threads still read. Returns false if there is no such
/// call.
bool advise_between_calls(simt::record::Finding& race, const Pair& pair);

/// Search for a barrier of the block or the warp between the sides of a race.
class BarrierAdvice {
 public:
  BarrierAdvice(simt::record::Finding& race, const Pair& pair, bool warp)
      : race_(race), pair_(pair), tree_(*pair.tree), warp_(warp) {}

  /// Sets advice and fixes of the race. Returns true if there is a location between its sides that
  /// all threads reach.
  bool find();
  /// Returns true if a barrier that no thread skips is between the sides.
  [[nodiscard]] bool ordered_within() const {
    return has_barrier(pair_.first->end, pair_.second->begin);
  }
  [[nodiscard]] const char* call() const { return warp_ ? "__syncwarp()" : "__syncthreads()"; }

 private:
  [[nodiscard]] bool all_come_by(const Statement* one) const;
  [[nodiscard]] bool has_barrier(std::size_t begin, std::size_t end) const;
  /// Returns the first barrier between these tokens in a branch that some threads do not take;
  /// `end` if there is none. `around`: also in a branch around both sides of the race.
  [[nodiscard]] std::size_t partial_barrier(std::size_t begin, std::size_t end, bool around) const;
  /// If the tokens contain a partial barrier, advises to let all threads reach it and returns true:
  /// its location is assumed to be right.
  bool advise_partial(std::size_t begin, std::size_t end, bool around = false);
  [[nodiscard]] bool skipped(std::size_t token) const;
  [[nodiscard]] int last_line(const Statement& loop) const;
  void add(int line, std::string from, std::string text);
  void insert_before(const Statement& one);
  void insert_at_end(const Statement& loop);

  simt::record::Finding& race_;
  const Pair& pair_;
  const SourceTree& tree_;
  bool warp_;
  std::string words_;
  std::string partial_;  // advice on a barrier that some threads do not reach
};

}  // namespace rung::cuda

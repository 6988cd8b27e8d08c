// SPDX-License-Identifier: Apache-2.0
// Finds the place in the source for a barrier that orders the two sides of a race.
#pragma once

#include <string>

#include "rung/emulate/runtime/source_tree.hpp"
#include "rung/simt/record.hpp"

namespace rung::cuda {

/// The two sides of a race within one function, in the order of the source.
struct Pair {
  const SourceTree* tree = nullptr;
  const Function* function = nullptr;
  const Statement* first = nullptr;
  const Statement* second = nullptr;
};

/// Returns "between line 3 and line 5"; for one line, the statements' text.
std::string between(const Pair& pair);

/// Advises the fence that holders of a lock leave out, where a lock guards both sides of the race.
/// Returns false if there is no such lock.
bool advise_lock(simt::record::Finding& race, const Pair& pair);

/// Advises to let all threads of the block reach the barrier at this token, of which a branch
/// around it keeps some. Returns false if there is no such branch.
bool advise_whole_barrier(simt::record::Finding& finding, const SourceTree& tree,
                          const Function& function, std::size_t barrier);

/// Advises a barrier between one call of the function that races and its next: a barrier stands
/// between the sides, and the next call overwrites what threads still read. Returns false if there
/// is no such call.
bool advise_between_calls(simt::record::Finding& race, const Pair& pair);

/// A barrier of the block, or of the warp, between the sides of a race.
class BarrierAdvice {
 public:
  BarrierAdvice(simt::record::Finding& race, const Pair& pair, bool warp)
      : race_(race), pair_(pair), tree_(*pair.tree), warp_(warp) {}

  /// Sets the advice and the fixes of the race. Returns whether all threads reach some place
  /// between its sides.
  bool find();
  /// Returns whether a barrier stands between the sides that no thread skips.
  [[nodiscard]] bool ordered_within() const {
    return has_barrier(pair_.first->end, pair_.second->begin);
  }
  [[nodiscard]] const char* call() const { return warp_ ? "__syncwarp()" : "__syncthreads()"; }

 private:
  [[nodiscard]] bool all_come_by(const Statement* one) const;
  [[nodiscard]] bool has_barrier(std::size_t begin, std::size_t end) const;
  /// Returns the first barrier between these tokens that stands in a branch which some threads do
  /// not take; `end`: there is none. `around`: also in a branch around both sides of the race.
  [[nodiscard]] std::size_t partial_barrier(std::size_t begin, std::size_t end, bool around) const;
  /// Advises to let all threads reach the barrier, if one is partial there. Its place is then
  /// taken as right.
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
  std::string partial_;  // advice about a barrier that some threads do not reach
};

}  // namespace rung::cuda

// SPDX-License-Identifier: Apache-2.0
// Finds a place in the source for a barrier that orders the two sides of a race.
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

/// Describes the place for a barrier: "between line 3 and line 5"; within one line, by the text of
/// the statements.
std::string between(const Pair& pair);

/// Advises on a missing fence if a lock guards the two sides of the race. Returns false if there is
/// no such lock.
bool advise_lock(simt::record::Finding& race, const Pair& pair);

/// Advises letting all threads of the block reach the barrier at token `barrier`. Returns false if
/// the barrier is not in a divergent branch.
bool advise_whole_barrier(simt::record::Finding& finding, const SourceTree& tree,
                          const Function& function, std::size_t barrier);

/// Advises a barrier between two calls of the racing function, if a barrier separates the two sides
/// but the next call overwrites data that threads still read. Returns false if there is no such
/// call.
bool advise_between_calls(simt::record::Finding& race, const Pair& pair);

/// Search for a place for a block or warp barrier between the sides of a race.
class BarrierAdvice {
 public:
  BarrierAdvice(simt::record::Finding& race, const Pair& pair, bool warp)
      : race_(race), pair_(pair), tree_(*pair.tree), warp_(warp) {}

  /// Sets advice and fixes of the race. Returns true if all threads reach some place between the
  /// sides.
  bool find();
  /// Returns true if there is a barrier between the sides that no thread skips.
  [[nodiscard]] bool ordered_within() const {
    return has_barrier(pair_.first->end, pair_.second->begin);
  }
  [[nodiscard]] const char* call() const { return warp_ ? "__syncwarp()" : "__syncthreads()"; }

 private:
  [[nodiscard]] bool all_come_by(const Statement* one) const;
  [[nodiscard]] bool has_barrier(std::size_t begin, std::size_t end) const;
  /// Returns the first barrier between these tokens in a branch that some threads do not take;
  /// `end` if there is none. `around`: includes branches around the whole race.
  [[nodiscard]] std::size_t partial_barrier(std::size_t begin, std::size_t end, bool around) const;
  /// Advises letting all threads reach a partial barrier among these tokens; its place in the
  /// source is assumed to be right. Returns false if there is none.
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

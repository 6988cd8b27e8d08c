// SPDX-License-Identifier: Apache-2.0
// Advice on races between threads that pass data through a lock, a semaphore, a flag or a ticket: a
// missing fence before the release, or a missing barrier between the writes of all threads and the
// release by one thread.
#include <utility>
#include <vector>

#include "rung/emulate/runtime/advise.hpp"
#include "rung/emulate/runtime/array_uses.hpp"
#include "rung/emulate/runtime/barrier_advice.hpp"
#include "rung/emulate/runtime/signals.hpp"

namespace rung::cuda {
namespace {

using emulate::TokenStream;

class OrderAdvice {
 public:
  OrderAdvice(simt::record::Finding& race, const Pair& pair)
      : race_(race), tree_(*pair.tree), tokens_(tree_.tokens()), function_(*pair.function) {}

  /// Advises on data that statement `writer` writes and statement `reader` reads or writes.
  bool find(const Statement& writer, const Statement& reader) {
    const std::vector<Signal> signals = signals_of(tree_, function_);
    std::vector<const Signal*> acquires;
    const std::size_t target =
        reader.kind == Statement::Kind::simple ? reader.begin : reader.header_begin;
    for (const Signal& one : signals) {
      if (one.used && one.token < target) acquires.push_back(&one);
    }
    for (const Signal& release : signals) {
      if (!release.writes || release.token < writer.end) continue;
      for (auto acquire = acquires.rbegin(); acquire != acquires.rend(); ++acquire) {
        if ((*acquire)->object != release.object) continue;
        const bool released = before_release(writer, release, **acquire);
        const std::string advice = released ? race_.advice + "; and " : "";
        const bool acquired = behind_acquire(**acquire, reader);
        if (acquired) race_.advice.insert(0, advice);
        return released || acquired;
      }
    }
    return false;
  }

 private:
  [[nodiscard]] bool has_fence(std::size_t begin, std::size_t end) const {
    for (std::size_t i = begin; i < end; ++i) {
      if (is_fence(tokens_[i])) return true;
    }
    return false;
  }
  [[nodiscard]] bool has_barrier(std::size_t begin, std::size_t end) const {
    for (std::size_t i = begin; i < end; ++i) {
      if (tree_.is_barrier(i, false)) return true;
    }
    return false;
  }
  /// Returns the outermost divergent branch around the token that does not contain `other`.
  [[nodiscard]] const Statement* varying_branch(std::size_t token, const Statement& other) const {
    const Statement* found = nullptr;
    for (const Statement* one = &SourceTree::statement_at(function_, token); one != nullptr;
         one = one->parent) {
      if (one->contains(other)) break;
      if (one->kind == Statement::Kind::branch && !tree_.uniform(function_, *one, false)) {
        found = one;
      }
    }
    return found;
  }

  bool before_release(const Statement& writer, const Signal& release, const Signal& acquire) {
    const Statement* const branch = varying_branch(release.token, writer);
    const bool one_thread = race_.block_extent.x * race_.block_extent.y * race_.block_extent.z == 1;
    const bool waits = branch == nullptr || one_thread || has_barrier(writer.end, branch->begin);
    const bool fenced = release.fenced || has_fence(writer.end, release.token);
    if (waits && fenced) return false;
    if (!waits) {
      const std::string line = std::to_string(tree_.line(branch->begin));
      race_.advice = joined({"put ", fenced ? "" : "__threadfence() and ",
                             "__syncthreads() before line ", line, ", where one thread updates ",
                             release.object, " for all: the others may not have written yet"});
      insert_before(*branch, fenced ? "__syncthreads();" : "__threadfence(); __syncthreads();");
      return true;
    }
    const Statement* statement = &SourceTree::statement_at(*release.function, release.inner);
    const std::string line = std::to_string(tree_.line(statement->begin));
    const std::string written = std::to_string(tree_.line(writer.begin));
    const auto swaps = [&](const Signal& one) {
      return tokens_[one.inner].is("atomicExch") || tokens_[one.inner].is("atomicCAS");
    };
    const bool held = swaps(release) && !release.used && swaps(acquire);
    race_.advice = joined({"put __threadfence() before line ", line,
                           held ? ", which frees the lock" : ", which updates " + release.object,
                           held ? ": without it the next holder may not see what this one wrote"
                                : ": without it those who see that may not see what line " +
                                      written + " has written"});
    insert_before(*statement, "__threadfence();");
    return true;
  }

  bool behind_acquire(const Signal& acquire, const Statement& reader) {
    const std::size_t target =
        reader.kind == Statement::Kind::simple ? reader.begin : reader.header_begin;
    const Statement* const branch = varying_branch(acquire.token, reader);
    const bool waits = branch == nullptr || has_barrier(branch->end, target);
    const bool fenced = !acquire.is_volatile || has_fence(acquire.token, target);
    if (waits && fenced) return false;
    const Statement* waiting = &SourceTree::statement_at(function_, acquire.token);
    if (!waits) waiting = branch;
    const std::string line = std::to_string(tree_.line(waiting->begin));
    const char* const call = waits    ? "__threadfence()"
                             : fenced ? "__syncthreads()"
                                      : "__threadfence() and __syncthreads()";
    race_.advice =
        joined({"put ", call, " behind line ", line, ", which waits for ", acquire.object, ": ",
                waits ? "what is read behind it may be older"
                      : "only the threads that wait know of the data"});
    insert_behind(*waiting, waits    ? "__threadfence();"
                            : fenced ? "__syncthreads();"
                                     : "__threadfence(); __syncthreads();");
    return true;
  }

  void insert_behind(const Statement& one, const std::string& text) {
    const Statement* const block = one.parent;
    const bool in_block = block != nullptr && block->kind == Statement::Kind::block;
    const std::size_t next = one.end;
    if (in_block && tree_.begins_line(next)) {
      race_.fixes.push_back({"fence", tree_.file(), tree_.line(next), "", text});
    } else {
      const std::string both = tree_.text(one) + " " + text;
      race_.fixes.push_back(replacement(tree_, "fence", one, in_block ? both : "{ " + both + " }"));
    }
  }
  void insert_before(const Statement& one, const std::string& text) {
    const bool in_block = one.parent != nullptr && one.parent->kind == Statement::Kind::block;
    if (tree_.begins_line(one.begin) && in_block) {
      race_.fixes.push_back({"fence", tree_.file(), tree_.line(one.begin), "", text});
    } else if (in_block) {
      race_.fixes.push_back(replacement(tree_, "fence", one, text + " " + tree_.text(one)));
    } else {
      race_.fixes.push_back(
          replacement(tree_, "fence", one, "{ " + text + " " + tree_.text(one) + " }"));
    }
  }

  simt::record::Finding& race_;
  const SourceTree& tree_;
  const TokenStream& tokens_;
  const Function& function_;
};

}  // namespace

bool advise_lock(simt::record::Finding& race, const Pair& pair) {
  if (!race.racers.across_blocks && !race.racers.across_warps) return false;
  const std::string& array = race.object.name;
  for (const bool forward : {true, false}) {
    const Statement& writer = forward ? *pair.first : *pair.second;
    const Statement& reader = forward ? *pair.second : *pair.first;
    const bool known = !array.empty() && !race.racers.both_write && pair.first != pair.second &&
                       writes_array(*pair.tree, *pair.first, array) !=
                           writes_array(*pair.tree, *pair.second, array);
    if (known && !writes_array(*pair.tree, writer, array)) continue;
    if (OrderAdvice(race, pair).find(writer, reader)) return true;
    if (pair.first == pair.second) break;
  }
  return false;
}

}  // namespace rung::cuda

// SPDX-License-Identifier: Apache-2.0
// Finds a place in the source for a barrier that orders the two sides of a race.
#include "rung/emulate/runtime/barrier_advice.hpp"

#include <utility>

#include "rung/emulate/runtime/advise.hpp"
#include "rung/emulate/runtime/thread_values.hpp"

namespace rung::cuda {
namespace {

const Statement* part_of(const Statement& block, const Statement& inner) {
  for (const auto& part : block.parts) {
    if (part->contains(inner)) return part.get();
  }
  return nullptr;
}

}  // namespace

std::string between(const Pair& pair) {
  const SourceTree& tree = *pair.tree;
  const int first = tree.line(pair.first->begin), second = tree.line(pair.second->begin);
  if (first != second || pair.first == pair.second) {
    return "between line " + std::to_string(first) + " and line " + std::to_string(second);
  }
  return "between `" + tree.text(*pair.first) + "` and `" + tree.text(*pair.second) + "` in line " +
         std::to_string(first);
}

bool BarrierAdvice::find() {
  const Statement* common = pair_.first;
  while (common != nullptr && !common->contains(*pair_.second)) common = common->parent;
  const Statement* from = pair_.first;
  if (common == from && from->kind == Statement::Kind::loop) {
    common = from->parts.front().get();  // common part: the statement from its header to its body
  }
  const bool same = pair_.first == pair_.second;
  while (common != nullptr && common->kind == Statement::Kind::simple) common = common->parent;
  if (common == nullptr) return false;
  const bool in_head = !same && from->contains(*pair_.second);
  const bool between = has_barrier(in_head ? from->header_end : from->end, pair_.second->begin);
  const Statement* const before = same ? nullptr : part_of(*common, *pair_.second);
  bool placed = false;
  const std::size_t begin = in_head ? from->header_end : from->end;
  if (!same && !between && advise_partial(begin, pair_.second->begin)) {
    placed = true;
  } else if (!between && before != nullptr && common->kind == Statement::Kind::block &&
             all_come_by(common)) {
    insert_before(in_head ? *common->parts.front() : *before);
    words_ = rung::cuda::between(pair_);
    placed = true;
  }
  // The race is between iterations of this loop.
  for (const Statement* loop = common; loop != nullptr; loop = loop->parent) {
    if (loop->kind != Statement::Kind::loop || !all_come_by(loop)) continue;
    const bool known = has_barrier(loop->header_end + 1, pair_.first->begin) ||
                       has_barrier(pair_.second->end, loop->end);
    if (known) break;
    if (advise_partial(pair_.second->end, loop->end) ||
        advise_partial(loop->header_end + 1, pair_.first->begin)) {
      placed = true;
      break;
    }
    insert_at_end(*loop);
    const bool one_line = last_line(*loop) == tree_.line(loop->begin);
    words_ += (words_.empty() ? "" : " and ") + std::string("at the end of the loop body, ") +
              (one_line ? "in line " : "after line ") + std::to_string(last_line(*loop));
    placed = true;
    break;
  }
  if (!placed && !advise_partial(pair_.first->begin, pair_.second->end, true)) return false;
  race_.advice = words_.empty() ? "" : std::string("put ") + call() + " " + words_;
  if (!partial_.empty()) race_.advice += (words_.empty() ? "" : "; ") + partial_;
  return true;
}

std::size_t BarrierAdvice::partial_barrier(std::size_t begin, std::size_t end, bool around) const {
  for (std::size_t i = begin; i < end; ++i) {
    if (!tree_.is_barrier(i, false) || tree_.is_barrier(i - 1, false)) continue;
    const Statement& one = SourceTree::statement_at(*pair_.function, i);
    for (const Statement* outer = one.parent; outer != nullptr; outer = outer->parent) {
      if (!around && outer->contains(*pair_.first) && outer->contains(*pair_.second)) break;
      if (!tree_.uniform(*pair_.function, *outer, false)) return i;
    }
  }
  return end;
}

bool BarrierAdvice::advise_partial(std::size_t begin, std::size_t end, bool around) {
  const std::size_t barrier = partial_barrier(begin, end, around);
  if (warp_ || barrier == end || !partial_.empty()) return false;
  simt::record::Finding advised = race_;
  advised.fixes.clear();
  if (!advise_whole_barrier(advised, tree_, *pair_.function, barrier)) return false;
  partial_ = advised.advice;
  race_.fixes.insert(race_.fixes.end(), advised.fixes.begin(), advised.fixes.end());
  return true;
}

namespace {

/// Returns the number of threads in the finding's block that may take the branch.
std::int64_t count_reaching(const simt::record::Finding& finding, const SourceTree& tree,
                            const Function& function, const Statement& branch, bool first_part) {
  simt::record::Finding other = finding;
  std::int64_t count = 0;
  const auto& block = finding.block_extent;
  for (unsigned z = 0; z < block.z; ++z) {
    for (unsigned y = 0; y < block.y; ++y) {
      for (unsigned x = 0; x < block.x; ++x) {
        other.thread = {x, y, z};
        const auto truth =
            ThreadValues(tree, function, other).truth({branch.header_begin, branch.header_end});
        count += truth.value_or(first_part) == first_part ? 1 : 0;
      }
    }
  }
  return count;
}

/// Moves a barrier out of the branch if it is the first or last statement in it; otherwise splits
/// the branch at the barrier.
void take_out(simt::record::Finding& finding, const SourceTree& tree, const Statement& branch,
              const Statement& barrier) {
  const std::string call = tree.text(barrier);
  const Statement& body = *barrier.parent;
  const auto fix = [&](const Statement& one, std::string text) {
    finding.fixes.push_back(replacement(tree, "barrier", one, std::move(text)));
  };
  const bool alone = &body == &branch || body.parts.size() == 1;
  if (&body != &branch && body.parent != &branch) return;
  const bool other_part = branch.parts.size() != 1;
  if (alone && !other_part) {
    fix(branch, call);
    return;
  }
  if (&body == &branch) return;
  const bool first = body.parts.front().get() == &barrier;
  const bool last = body.parts.back().get() == &barrier;
  const std::size_t next = first && !last ? branch.begin : branch.end;
  const bool in_block = branch.parent != nullptr && branch.parent->kind == Statement::Kind::block;
  if ((first || last) && in_block && tree.begins_line(next)) {
    fix(barrier, "");
    const int line = first && !last ? tree.line(next) : tree.line(branch.end - 1) + 1;
    finding.fixes.push_back({"barrier", tree.file(), line, "", call});
    return;
  }
  if (other_part) return;
  for (std::size_t i = body.begin + 1; i < barrier.begin; ++i) {
    const bool declares = tree.tokens()[i].is_identifier() && tree.tokens()[i + 1].is_identifier();
    if (declares) return;  // later statements may use the declaration
  }
  const std::string condition = tree.text(branch.header_begin, branch.header_end);
  fix(barrier, joined({"} ", call, " if (", condition, ") {"}));
}

}  // namespace

bool advise_whole_barrier(simt::record::Finding& finding, const SourceTree& tree,
                          const Function& function, std::size_t barrier) {
  const Statement& call = SourceTree::statement_at(function, barrier);
  const Statement* branch = nullptr;
  for (const Statement* one = call.parent; one != nullptr; one = one->parent) {
    if (one->kind == Statement::Kind::branch && !tree.uniform(function, *one, false)) branch = one;
    if (one->kind == Statement::Kind::loop && !tree.uniform(function, *one, false)) return false;
  }
  if (branch == nullptr || call.kind != Statement::Kind::simple) return false;
  for (const auto& part : branch->parts) {  // two branches may contain a barrier
    bool has = false;
    for (std::size_t i = part->begin; i < part->end; ++i) has |= tree.is_barrier(i, false);
    if (!has && branch->parts.size() == 2) break;
    if (part == branch->parts.back() && branch->parts.size() == 2) return false;
  }
  const auto& block = finding.block_extent;
  const std::int64_t threads = std::int64_t{1} * block.x * block.y * block.z;
  const std::int64_t reaching =
      count_reaching(finding, tree, function, *branch, branch->parts.front()->contains(call));
  const std::string line = std::to_string(tree.line(barrier));
  const std::string whom = 0 < reaching && reaching < threads
                               ? std::to_string(reaching) + " of " + std::to_string(threads)
                               : "only some";
  const std::string condition = tree.text(branch->header_begin, branch->header_end);
  finding.advice = joined({"the barrier of line ", line, " is reached by ", whom,
                           " threads of the block: take it out of `if (", condition,
                           ")`, so that all reach it"});
  take_out(finding, tree, *branch, call);
  return true;
}

bool advise_between_calls(simt::record::Finding& race, const Pair& pair) {
  const SourceTree& tree = *pair.tree;
  if (pair.function->kernel || race.racers.across_blocks) return false;
  if (!BarrierAdvice(race, pair, false).ordered_within()) return false;
  const std::string left = joined({": the next call of ", pair.function->name, " writes ",
                                   race.object.name.empty() ? "there" : race.object.name,
                                   " while threads still use what this one has left"});
  const Function* called = pair.function;
  for (int depth = 0; depth < 4; ++depth) {
    const Function* caller = nullptr;
    const Statement* call = nullptr;
    int calls = 0;
    for (const auto& one : tree.functions()) {
      if (one.get() == called) continue;
      for (std::size_t i = one->body.begin; i < one->body.end; ++i) {
        if (tree.called_at(i) != called) continue;
        ++calls;
        caller = one.get();
        call = &SourceTree::statement_at(*one, i);
      }
    }
    if (calls != 1) break;
    const Pair again{&tree, caller, call, call};
    if (BarrierAdvice(race, again, false).find()) {
      race.advice += left;
      return true;
    }
    called = caller;
  }
  const auto& parts = pair.function->body.parts;
  if (parts.empty()) return false;
  const Statement& first = *parts.front();
  const std::string line = std::to_string(tree.line(first.begin));
  race.advice = joined({"put __syncthreads() at the beginning of ", pair.function->name,
                        ", before line ", line, left});
  if (tree.begins_line(first.begin)) {
    race.fixes.push_back({"barrier", tree.file(), tree.line(first.begin), "", "__syncthreads();"});
  } else {
    race.fixes.push_back(
        replacement(tree, "barrier", first, "__syncthreads(); " + tree.text(first)));
  }
  return true;
}

/// Returns true if all threads of the block (of the warp for a warp barrier) execute the body of
/// the statement.
bool BarrierAdvice::all_come_by(const Statement* one) const {
  for (; one != nullptr; one = one->parent) {
    if (!tree_.uniform(*pair_.function, *one, warp_)) return false;
  }
  return true;
}
/// Returns true if these tokens contain a barrier that no thread of the race skips.
bool BarrierAdvice::has_barrier(std::size_t begin, std::size_t end) const {
  for (std::size_t i = begin; i < end; ++i) {
    if (tree_.is_barrier(i, warp_) && !skipped(i)) return true;
  }
  return false;
}
bool BarrierAdvice::skipped(std::size_t token) const {
  const Statement* one = &pair_.function->body;
  while (one != nullptr) {
    if (one->kind == Statement::Kind::branch) {
      const bool first = one->contains(*pair_.first), second = one->contains(*pair_.second);
      if (!first && !second) return true;
      // The branch contains only one side of the race: threads of the other side may skip it.
      if (first != second && !tree_.uniform(*pair_.function, *one, false)) return true;
    }
    const Statement* inner = nullptr;
    for (const auto& part : one->parts) {
      if (part->begin <= token && token < part->end) inner = part.get();
    }
    one = inner;
  }
  return false;
}
int BarrierAdvice::last_line(const Statement& loop) const {
  const Statement& body = *loop.parts.front();
  const bool block = body.kind == Statement::Kind::block && !body.parts.empty();
  return tree_.line((block ? body.parts.back()->end : body.end) - 1);
}
void BarrierAdvice::add(int line, std::string from, std::string text) {
  race_.fixes.push_back({"barrier", tree_.file(), line, std::move(from), std::move(text)});
}
void BarrierAdvice::insert_before(const Statement& one) {
  const std::string barrier = std::string(call()) + ";";
  const int line = tree_.line(one.begin);
  if (tree_.begins_line(one.begin)) {
    add(line, "", barrier);
  } else {
    add(line, tree_.text(one), barrier + " " + tree_.text(one));
  }
}
void BarrierAdvice::insert_at_end(const Statement& loop) {
  const Statement& body = *loop.parts.front();
  const std::string barrier = std::string(call()) + ";";
  if (body.kind != Statement::Kind::block) {
    add(tree_.line(body.begin), tree_.text(body), "{ " + tree_.text(body) + " " + barrier + " }");
  } else if (tree_.begins_line(body.end - 1)) {
    add(tree_.line(body.end - 1), "", barrier);
  } else {
    const std::string text = tree_.text(body);
    add(tree_.line(body.begin), text, text.substr(0, text.size() - 1) + barrier + " }");
  }
}

}  // namespace rung::cuda

// SPDX-License-Identifier: Apache-2.0
// Finds the place in the source for a barrier that orders the two sides of a race.
#include "rung/emulate/runtime/barrier_advice.hpp"

#include <utility>

namespace rung::cuda {
namespace {

const Statement* part_of(const Statement& block, const Statement& inner) {
  for (const auto& part : block.parts) {
    if (part->contains(inner)) return part.get();
  }
  return nullptr;
}

/// Returns the statement that the token stands in.
const Statement* innermost(const Statement& from, std::size_t token) {
  for (const auto& part : from.parts) {
    if (part->begin <= token && token < part->end) return innermost(*part, token);
  }
  return &from;
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
    common = from->parts.front().get();  // from its head to what stands in it
  }
  const bool same = pair_.first == pair_.second;
  while (common != nullptr && common->kind == Statement::Kind::simple) common = common->parent;
  if (common == nullptr) return false;
  const bool in_head = !same && from->contains(*pair_.second);
  const bool between = has_barrier(in_head ? from->header_end : from->end, pair_.second->begin);
  const Statement* const before = same ? nullptr : part_of(*common, *pair_.second);
  bool placed = false;
  if (!between && before != nullptr && common->kind == Statement::Kind::block &&
      all_come_by(common)) {
    insert_before(in_head ? *common->parts.front() : *before);
    words_ = rung::cuda::between(pair_);
    placed = true;
  }
  // The race is between one iteration of a loop and the next.
  for (const Statement* loop = common; loop != nullptr; loop = loop->parent) {
    if (loop->kind != Statement::Kind::loop || !all_come_by(loop)) continue;
    const bool known = has_barrier(loop->header_end + 1, pair_.first->begin) ||
                       has_barrier(pair_.second->end, loop->end);
    if (known) break;
    insert_at_end(*loop);
    const bool one_line = last_line(*loop) == tree_.line(loop->begin);
    words_ += (placed ? " and " : "") + std::string("at the end of the loop body, ") +
              (one_line ? "in line " : "after line ") + std::to_string(last_line(*loop));
    placed = true;
    break;
  }
  if (!placed) return false;
  race_.advice = std::string("put ") + call() + " " + words_;
  const std::size_t end = pair_.second->end;
  std::string lines = skipped_lines(pair_.first->begin, end);
  for (const Statement* loop = common; loop != nullptr && lines.empty(); loop = loop->parent) {
    if (loop->kind == Statement::Kind::loop) lines = skipped_lines(loop->begin, loop->end);
  }
  if (!lines.empty()) {
    race_.advice += "; the one in line " + lines +
                    " stands in a branch that some threads do not take, and orders nothing for "
                    "them: move it out";
  }
  return true;
}

/// Returns whether all threads execute the body of this statement.
bool BarrierAdvice::all_come_by(const Statement* one) const {
  for (; one != nullptr; one = one->parent) {
    if (!tree_.uniform(*pair_.function, *one, warp_)) return false;
  }
  return true;
}
/// Returns whether a barrier exists that no branch around it alone skips.
bool BarrierAdvice::has_barrier(std::size_t begin, std::size_t end) const {
  for (std::size_t i = begin; i < end; ++i) {
    if (tree_.is_barrier(i, warp_) && !skipped(i)) return true;
  }
  return false;
}
std::string BarrierAdvice::skipped_lines(std::size_t begin, std::size_t end) const {
  std::string lines;
  for (std::size_t i = begin; i < end; ++i) {
    if (!tree_.is_barrier(i, warp_)) continue;
    // Any branch around the barrier counts, even one that encloses the accesses as well.
    bool uniform = true;
    for (const Statement* one = innermost(pair_.function->body, i); one != nullptr;
         one = one->parent) {
      uniform = uniform && tree_.uniform(*pair_.function, *one, warp_);
    }
    if (!uniform) lines += (lines.empty() ? "" : " and ") + std::to_string(tree_.line(i));
  }
  return lines;
}
bool BarrierAdvice::skipped(std::size_t token) const {
  const Statement* one = &pair_.function->body;
  while (one != nullptr) {
    const bool branch = one->kind == Statement::Kind::branch;
    if (branch && !one->contains(*pair_.first) && !one->contains(*pair_.second)) return true;
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
bool BarrierAdvice::begins_line(std::size_t token) const {
  return token > 0 && tree_.tokens()[token].space.find('\n') != std::string_view::npos;
}
void BarrierAdvice::add(int line, std::string from, std::string text) {
  race_.fixes.push_back({"barrier", tree_.file(), line, std::move(from), std::move(text)});
}
void BarrierAdvice::insert_before(const Statement& one) {
  const std::string barrier = std::string(call()) + ";";
  const int line = tree_.line(one.begin);
  if (begins_line(one.begin)) {
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
  } else if (begins_line(body.end - 1)) {
    add(tree_.line(body.end - 1), "", barrier);
  } else {
    const std::string text = tree_.text(body);
    add(tree_.line(body.begin), text, text.substr(0, text.size() - 1) + barrier + " }");
  }
}

}  // namespace rung::cuda

// SPDX-License-Identifier: Apache-2.0
// Advice on races: a barrier and its place, an atomic function, or another index.
#include <utility>

#include "rung/emulate/runtime/advise.hpp"
#include "rung/emulate/runtime/array_uses.hpp"
#include "rung/emulate/runtime/barrier_advice.hpp"

namespace rung::cuda {
namespace {

namespace record = simt::record;
using record::Finding;

/// Returns the statement of `function` that calls `callee` directly or indirectly; null if there is
/// none.
const Statement* call_in(const SourceTree& tree, const Function& function, const Function& callee,
                         int depth = 0) {
  constexpr int deepest = 4;
  for (std::size_t i = function.body.begin; i < function.body.end; ++i) {
    const Function* const called = tree.called_at(i);
    if (called == nullptr || called == &function) continue;
    if (called == &callee ||
        (depth < deepest && call_in(tree, *called, callee, depth + 1) != nullptr)) {
      return &SourceTree::statement_at(function, i);
    }
  }
  return nullptr;
}

/// Determines the two racing statements if a line contains several that use the array.
void find_in_line(const SourceTree& tree, const Finding& race, SourceTree::Spot& here,
                  SourceTree::Spot& there) {
  const std::string& array = race.object.name;
  const std::vector<SourceTree::Spot> uses = uses_of(tree, race.line, array);
  if (uses.size() < 2 || array.empty()) return;
  const SourceTree::Spot* writer = nullptr;
  for (const SourceTree::Spot& one : uses) {
    if (writer == nullptr && writes_array(tree, *one.statement, array)) writer = &one;
  }
  if (writer == nullptr) return;
  for (const SourceTree::Spot& one : uses) {
    const bool other =
        &one != writer && (race.racers.both_write ? writes_array(tree, *one.statement, array)
                                                  : reads_array(tree, *one.statement, array));
    if (!other) continue;
    here = *writer;
    there = one;
    return;
  }
  here = there = *writer;
}

Pair find_pair(const Finding& race) {
  const SourceTree* const tree = source_tree(race.file);
  const bool one_known = race.other_line == 0;
  if (tree == nullptr || (race.file != race.other_file && !one_known)) return {};
  SourceTree::Spot here = tree->find(race.line, race.object.name);
  SourceTree::Spot there = one_known ? here : tree->find(race.other_line, race.object.name);
  if (here.statement == nullptr || there.statement == nullptr) return {};
  if (race.line == race.other_line || one_known) find_in_line(*tree, race, here, there);
  if (here.function != there.function) {
    const Function* const kernel = kernel_of(*tree, race);
    if (kernel == nullptr) return {};
    for (SourceTree::Spot* one : {&here, &there}) {
      if (one->function != kernel) *one = {kernel, call_in(*tree, *kernel, *one->function)};
      if (one->statement == nullptr) return {};
    }
  }
  if (there.statement->begin < here.statement->begin) std::swap(here, there);
  return {tree, here.function, here.statement, there.statement};
}

/// Returns the reason why an atomic function cannot perform the update; "" if it can.
std::string unfit(const Update& update, const std::string& type) {
  const bool floating = type == "float" || type == "double";
  const bool extreme = update.operation == "Max" || update.operation == "Min";
  if (update.operation.empty()) return "no atomic function does that: use a loop of atomicCAS";
  if (floating && extreme) {
    return "there is no atomic" + update.operation + " of " + type +
           ": reduce within the block, or use atomicCAS";
  }
  for (const char* narrow : {"char", "short", "bool", "signed char", "unsigned char"}) {
    if (type == narrow) return "atomic functions need elements of 32 or 64 bits, not " + type;
  }
  return "";
}

void advise_atomic(Finding& race, const SourceTree& tree, const Update& update) {
  const std::string& type = race.object.type;
  if (const std::string why = unfit(update, type); !why.empty()) {
    race.advice = "several threads read, change and write " + update.target + "; " + why;
    return;
  }
  const bool negative = update.operation == "Sub" && (type == "float" || type == "double");
  const bool pointed = update.target.starts_with('*');
  const std::string address = pointed ? update.target.substr(1) : "&" + update.target;
  const std::string call = "atomic" + (negative ? std::string("Add") : update.operation) + "(" +
                           address + ", " +
                           (negative ? "-(" + update.operand + ")" : update.operand) + ")";
  race.advice = "use " + call + ": several threads read, change and write the same element";
  race.fixes.push_back(replacement(tree, "atomic", *update.statement, call + ";"));
  if (update.load != nullptr) {
    race.fixes.push_back(replacement(tree, "atomic", *update.load, ""));
  }
}

/// Advises an index that depends on the block, if threads with equal indices in several blocks
/// write the same element.
bool advise_index(Finding& race, const Pair& pair) {
  const record::Racers& r = race.racers;
  if (!r.both_write || !r.across_blocks || r.across_warps || r.within_warp || !r.same_thread) {
    return false;
  }
  race.advice =
      "every block writes the same elements: let the index depend on blockIdx, as in "
      "blockIdx.x * blockDim.x + threadIdx.x";
  const emulate::TokenStream& tokens = pair.tree->tokens();
  const Statement& body = pair.function->body;
  for (std::size_t i = body.begin + 1; i + 4 < body.end; ++i) {  // i = threadIdx.x;
    const bool whole = tokens[i].is("=") && tokens[i + 1].is("threadIdx") &&
                       tokens[i + 3].is("x") && (tokens[i + 4].is(";") || tokens[i + 4].is(","));
    const bool used = pair.tree->mentions(pair.first->begin, pair.first->end, tokens[i - 1].text);
    if (!whole || !used) continue;
    race.fixes.push_back({"index", pair.tree->file(), pair.tree->line(i + 1), "threadIdx.x",
                          "blockIdx.x * blockDim.x + threadIdx.x"});
    break;
  }
  return true;
}

/// Advises on one statement in which a thread reads an element that another thread writes: first
/// read, then a barrier, then write.
void advise_reading_first(Finding& race, const Pair& pair, const char* barrier, bool warp) {
  const SourceTree& tree = *pair.tree;
  race.advice = std::string("read into a variable, then ") + barrier +
                ", then write: within one statement threads read what others write";
  const Statement& one = *pair.first;
  if (one.kind != Statement::Kind::simple || race.object.type.empty()) return;
  std::size_t equals = one.begin;
  while (equals < one.end && !tree.tokens()[equals].is("=")) {
    equals = tree.tokens()[equals].is("[") ? tree.tokens().closing(equals) + 1 : equals + 1;
  }
  if (equals >= one.end) return;
  // Threads that skip the statement must also reach the barrier.
  const Statement* whole = &one;
  const Statement* branch = one.parent;
  if (branch != nullptr && branch->kind == Statement::Kind::block && branch->parts.size() == 1) {
    branch = branch->parent;
  }
  std::string condition;
  if (branch != nullptr && branch->kind == Statement::Kind::branch && branch->parts.size() == 1 &&
      !tree.uniform(*pair.function, *branch, warp)) {
    condition = "if (" + tree.text(branch->header_begin, branch->header_end) + ") ";
    whole = branch;
  }
  for (const Statement* outer = whole->parent; outer != nullptr; outer = outer->parent) {
    if (!tree.uniform(*pair.function, *outer, warp)) return;
  }
  const std::string value = tree.text(equals + 1, one.end - 1);
  race.fixes.push_back(replacement(tree, "read_first", *whole,
                                   "{ " + race.object.type + " value{}; " + condition +
                                       "value = " + value + "; " + barrier + "; " + condition +
                                       tree.text(one.begin, equals) + "= value; }"));
}

/// Returns true if any index of the element depends on the thread.
bool varies(const Pair& pair, const std::string& array) {
  const emulate::TokenStream& tokens = pair.tree->tokens();
  for (std::size_t i = pair.first->begin; i + 1 < pair.first->end; ++i) {
    if (!tokens[i].is(array) || !tokens[i + 1].is("[")) continue;
    if (pair.tree->mentions_any(i + 2, tokens.closing(i + 1), pair.function->varying)) return true;
  }
  return false;
}

/// Advises waiting until a bulk store has read its source before the source is refilled: the
/// function's cp.async.bulk.wait_group.read, which leaves stores in flight, should leave none.
void advise_refill(Finding& race, const SourceTree& tree) {
  const emulate::TokenStream& tokens = tree.tokens();
  const Function* const function = tree.find(race.other_line, "").function;
  const Function* const stores = tree.find(race.line, "").function;
  constexpr std::string_view word = "cp.async.bulk.wait_group.read ";
  for (const Function* one : {stores, function}) {
    if (one == nullptr) continue;
    for (std::size_t i = one->body.begin; i < one->body.end; ++i) {
      const std::string text(tokens[i].text);
      const std::size_t at = text.find(word);
      if (at == std::string::npos) continue;
      const std::size_t digit = at + word.size();
      const std::size_t end = text.find_first_not_of("0123456789", digit);
      const std::string count = text.substr(digit, end - digit);
      if (count.empty() || count == "0") continue;
      const std::string line = std::to_string(tree.line(i));
      race.advice = joined({"wait for the store before its memory is refilled: ", word,
                            "0 in line ", line, ", where ", count, " leaves as many stores in ",
                            "flight; or shorten the prefetch distance by as many stages"});
      const std::string from = text.substr(at, word.size() + count.size());
      race.fixes.push_back({"wait", tree.file(), tree.line(i), from, std::string(word) + "0"});
      return;
    }
  }
}

void advise_across_blocks(Finding& race, bool same) {
  const std::string& message = race.message;
  const std::size_t atomic = message.find("updates atomically");
  std::string what = "make two kernels of it, or set a flag behind __threadfence()";
  if (atomic != std::string::npos) {
    const bool both = message.find("updates atomically", atomic + 1) != std::string::npos;
    what = both ? "use operations that are atomic for the device, not for the block alone (_block)"
                : "set it before the launch (cudaMemset) and read it after, or use atomics alone";
  } else if (race.racers.both_write) {
    what = "give each its own element (" + race.object.name + "[blockIdx.x]), or use atomics";
  } else if (same) {
    what = "write to another array than you read";
  }
  race.advice = "blocks run in any order: " + what;
}

}  // namespace

void advise_race(Finding& race) {
  const Pair pair = find_pair(race);
  if (pair.tree == nullptr) return;
  if (race.advice.starts_with("wait for the store")) advise_refill(race, *pair.tree);
  if (race.advice.starts_with("wait for the ") || race.advice.starts_with("fence")) return;
  if (advise_lock(race, pair)) return;
  const record::Racers& racers = race.racers;
  const bool same = pair.first == pair.second;
  const bool atomic = race.message.find("updates atomically") != std::string::npos;
  // The recorder keeps only one of many readers, which may not be the racing reader.
  const bool seen = racers.both_write || racers.across_blocks || knows_both(race);
  const auto updates = [&](const Statement& one) {
    return update_of(*pair.tree, one, race.object.name, false);
  };
  const bool both = racers.both_write && updates(*pair.first) && updates(*pair.second);
  for (const Statement* one : {pair.first, pair.second}) {
    const auto update = updates(*one);
    const bool loads = update.has_value() && update->load == pair.first;
    const bool tests = update.has_value() && update->statement == pair.first;
    if (!seen || !update.has_value() ||
        !(same || loads || tests || both || (atomic && racers.across_blocks))) {
      continue;
    }
    advise_atomic(race, *pair.tree, *update);
    return;
  }
  if (advise_index(race, pair)) return;
  if (racers.across_blocks && race.space == record::Space::shared && !same) {
    race.advice = "put cluster.sync() (barrier.cluster.arrive and .wait) " + between(pair) +
                  ": a barrier of the block does not order the blocks of its cluster";
    return;
  }
  if (racers.across_blocks) {
    advise_across_blocks(race, same);
    return;
  }
  const bool one_warp = !racers.across_warps;
  // If all threads write the same element, they conflict within each iteration, with or without a
  // barrier between iterations.
  const bool one_element = same && racers.both_write && !varies(pair, race.object.name);
  BarrierAdvice of_warp(race, pair, true);
  BarrierAdvice of_block(race, pair, false);
  if (!one_element && one_warp && !racers.one_warp && of_warp.find()) return;
  if (!one_element && (of_block.find() || advise_between_calls(race, pair))) return;
  if (!one_element && one_warp && of_warp.find()) return;
  if (same && racers.both_write) {
    const auto update = update_of(*pair.tree, *pair.first, race.object.name, true);
    if (update.has_value()) {
      advise_atomic(race, *pair.tree, *update);
      return;
    }
    race.advice = "let one thread write it, or use an atomic function: whose value stays is open";
    return;
  }
  const char* const barrier = one_warp && !racers.one_warp ? of_warp.call() : of_block.call();
  if (same) {
    advise_reading_first(race, pair, barrier, barrier == std::string_view(of_warp.call()));
    return;
  }
  if (race.message.find(" copy to ") != std::string::npos) {
    race.advice = joined(
        {"let the other threads arrive behind line ", std::to_string(race.other_line),
         " (an mbarrier's arrive, a pipeline's consumer_release()), and wait for them before line ",
         std::to_string(race.line), " starts the copy"});
    return;
  }
  race.advice = std::string("put ") + barrier + " " + between(pair) +
                ", where every thread of the " + (one_warp ? "warp" : "block") +
                " comes by: in no branch that some do not take";
}

}  // namespace rung::cuda

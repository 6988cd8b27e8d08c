// SPDX-License-Identifier: Apache-2.0
// Advice on deadlocks: a hand-written barrier that is reset too early, a lock that is never
// released, a barrier that some threads do not reach.
#include <algorithm>
#include <cstdio>
#include <string>

#include "rung/emulate/runtime/advise.hpp"
#include "rung/emulate/runtime/barrier_advice.hpp"
#include "rung/emulate/runtime/signals.hpp"

namespace rung::cuda {
namespace {

using emulate::TokenStream;
using simt::record::Finding;

constexpr const char* grid_barrier_words =
    "cooperative groups' this_grid().sync() with cudaLaunchCooperativeKernel";

/// Returns true if the access resets the flag to 0, as atomicExch(count, 0) and *count = 0 do.
bool resets(const SourceTree& tree, const Signal& signal) {
  const TokenStream& tokens = tree.tokens();
  if (signal.is_volatile) {
    if (!signal.writes) return false;
    std::size_t equals = signal.token;
    while (!tokens[equals].is("=") && !tokens[equals].is(";")) ++equals;
    return tokens[equals].is("=") && tokens[equals + 1].is("0");
  }
  const std::size_t close = tokens.closing(signal.inner + 1);
  const bool stores = tokens[signal.inner].is("atomicExch") ||
                      tokens[signal.inner].is("atomicCAS") || tokens[signal.inner].is("atomicAnd");
  return stores && tokens[close - 1].is("0") && tokens[close - 2].is(",");
}

bool is_call_of(const SourceTree& tree, const Signal& signal, std::string_view name) {
  return tree.tokens()[signal.inner].is(name);
}

/// Returns the innermost loop that contains the token; null if there is none.
const Statement* loop_around(const Function& function, std::size_t token) {
  const Statement* one = &SourceTree::statement_at(function, token);
  while (one != nullptr && one->kind != Statement::Kind::loop) one = one->parent;
  return one;
}

/// Returns true if some blocks of the launch have not started, according to the simulator's
/// message: "block (0, 0, 0) of 4x1x1, thread (0, 0, 0) of 32x1x1", "0 of 128 threads have exited".
bool lacks_blocks(const std::string& details, const simt::dialect::dim3& block) {
  unsigned x = 0, y = 0, z = 0;
  unsigned long long gone = 0, begun = 0;
  const std::size_t grid = details.find(") of ", details.find("\n  block ("));
  const std::size_t exited = details.rfind("\n  ", details.find(" threads have exited"));
  if (grid == std::string::npos || exited == std::string::npos ||
      std::sscanf(details.c_str() + grid, ") of %ux%ux%u", &x, &y, &z) != 3 ||
      std::sscanf(details.c_str() + exited, "\n  %llu of %llu", &gone, &begun) != 2) {
    return false;
  }
  return 1ull * x * y * z * block.x * block.y * block.z > begun;
}

/// Advises on a loop that waits for a flag that no thread will change.
bool advise_spin(Finding& finding, const SourceTree& tree, const std::string& details) {
  const Function* const function = tree.find(finding.line, "").function;
  if (function == nullptr) return false;
  const std::vector<Signal> signals = signals_of(tree, *function);
  const auto waits = [&](const Signal& one) {
    return tree.line(one.token) == finding.line && one.used &&
           loop_around(*function, one.token) != nullptr;
  };
  // Uses the last wait in the line: `if (atomicAdd(n, 1) == last) ... else while (atomicAdd(n, 0))
  // {}`.
  const auto found = std::find_if(signals.rbegin(), signals.rend(), waits);
  if (found == signals.rend()) return false;
  const Signal& wait = *found;
  const std::string line = std::to_string(finding.line);
  const Signal* reset = nullptr;
  bool counts = false, frees = false;
  for (const Signal& one : signals) {
    if (one.object != wait.object || one.inner == wait.inner) continue;
    // atomicInc() wraps to 0, which resets the flag.
    if (resets(tree, one) || is_call_of(tree, one, "atomicInc")) reset = &one;
    counts |= is_call_of(tree, one, "atomicAdd") || is_call_of(tree, one, "atomicInc") ||
              is_call_of(tree, one, "atomicSub") || is_call_of(tree, one, "atomicDec");
    frees |= one.writes;
  }
  if (lacks_blocks(details, finding.block_extent)) {
    constexpr const char* what =
        " waits for blocks that cannot begin before others end: launch no more blocks than are "
        "resident at once, as ";
    finding.advice = joined({"line ", line, what, grid_barrier_words, " makes sure"});
  } else if (reset != nullptr && counts) {
    finding.other_file = finding.file;
    finding.other_line = tree.line(reset->token);
    constexpr const char* fast =
        " back to 0, and a fast block counts it up again before slow ones have seen the 0 that "
        "line ";
    constexpr const char* instead =
        " waits for: wait for a generation counter instead, which the last block adds 1 to behind "
        "the reset and the others read before they arrive; or use ";
    finding.advice = joined({"line ", std::to_string(finding.other_line), " sets ", wait.object,
                             fast, line, instead, grid_barrier_words});
  } else if (is_call_of(tree, wait, "atomicCAS") && !frees) {
    finding.advice = joined({"free the lock behind what it guards: __threadfence(); atomicExch(",
                             wait.object, ", 0);"});
  } else {
    constexpr const char* arrive =
        " waits for: every thread or block that is counted there has to arrive, in no branch that "
        "some do not take; for a barrier of the whole grid use ";
    finding.advice = joined(
        {"let ", wait.object, " come to the value that line ", line, arrive, grid_barrier_words});
  }
  return true;
}

/// Advises on a wait for an mbarrier, according to the simulator's message: "for parity 0, which
/// lacks 1 of 2 arrivals and 512 bytes". Returns false if no thread waits for an mbarrier.
bool advise_mbarrier(Finding& finding, const std::string& details) {
  const std::size_t wait = details.find(" for parity ");
  if (wait == std::string::npos) return false;
  unsigned parity = 0;
  int pending = 0, expected = 0, bytes = 0;
  const char* const text = details.c_str() + wait;
  if (std::sscanf(text, " for parity %u, which lacks %d of %d arrivals and %d bytes", &parity,
                  &pending, &expected, &bytes) < 3) {
    return false;
  }
  const std::size_t end = details.find('\n', wait + 1);
  const std::string count = std::to_string(expected);
  if (details.substr(wait, end - wait).find("more than announced") != std::string::npos) {
    finding.advice =
        "announce (expect_tx) as many bytes as the copies bring that complete on the mbarrier, "
        "before they land";
  } else if (bytes > 0 && pending == 0) {
    finding.advice =
        joined({"announce (expect_tx) as many bytes as the copies bring that complete "
                "on the mbarrier: ",
                std::to_string(bytes), " bytes have been announced that none brings"});
  } else if (pending == expected) {
    finding.advice =
        joined({"wait for a phase that is still to be completed: no thread arrives "
                "any more. If more than the ",
                count,
                " arrivals come per phase for which mbarrier.init is called, phases "
                "run ahead of the waits, and the parity is of a later one"});
  } else {
    finding.advice =
        joined({"let ", count, " arrivals come in each phase, for which the mbarrier was ",
                "initialized, in no branch that some of these threads do not take; or initialize ",
                "it with the number that come"});
  }
  return true;
}

}  // namespace

void advise_deadlock(Finding& finding, const std::string& details) {
  if (!finding.advice.empty() || advise_mbarrier(finding, details)) return;
  const SourceTree* const tree = source_tree(finding.file);
  if (tree == nullptr) return;
  unsigned x = 0, y = 0, z = 0;
  const std::size_t thread = details.rfind(", thread (");
  const std::size_t of = details.find(") of ", thread);
  if (thread != std::string::npos && of != std::string::npos &&
      std::sscanf(details.c_str() + of, ") of %ux%ux%u", &x, &y, &z) == 3) {
    finding.block_extent = {x, y, z};
  }
  if (advise_spin(finding, *tree, details)) return;
  if (details.find("wait in __syncthreads") == std::string::npos) return;
  for (const SourceTree::Spot& spot : tree->spots(finding.line)) {
    for (std::size_t i = spot.statement->begin; i < spot.statement->end; ++i) {
      if (tree->line(i) != finding.line || !tree->is_barrier(i, false)) continue;
      if (advise_whole_barrier(finding, *tree, *spot.function, i)) return;
    }
  }
}

}  // namespace rung::cuda

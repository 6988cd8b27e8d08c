// SPDX-License-Identifier: Apache-2.0
// Derives the executed arithmetic from execution counts of basic blocks. Internal to simt/.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "rung/simt/record/disassembly.hpp"

namespace rung::simt::record {

/// Number of threads that entered each basic block, by the site (code address) of its hook.
using Visits = std::unordered_map<std::uintptr_t, std::uint64_t>;

/// Control-flow graph of the machine code around the hooks of some kernels.
class ControlFlow {
 public:
  /// Constructs the graph. `sites`: hooks of executed basic blocks, in any object of this process.
  explicit ControlFlow(std::vector<std::uintptr_t> sites);

  /// Returns false if objdump is missing or no code was compiled with hooks at basic blocks.
  [[nodiscard]] bool known() const { return !graphs_.empty(); }

  /// Arithmetic instructions at `address`, and how often threads executed them.
  struct Run {
    std::uintptr_t address = 0;
    std::uint64_t times = 0;
    Arithmetic once;
  };
  struct Result {
    std::vector<Run> runs;
    bool exact = true;  // false: the count is a guess, since some code has no hooks
  };
  [[nodiscard]] Result run(const Visits& visits) const;

 private:
  struct Edge {
    std::size_t from = 0, to = 0;
  };
  struct Piece {  // instructions of a basic block that belong to one hook
    std::uintptr_t site = 0;
    std::vector<Run> code;
  };
  struct Node {
    std::vector<Piece> pieces;
    std::vector<std::size_t> in, out;        // edges
    std::size_t fall_from = none;            // fall-through edge into the piece
    bool open_in = false, open_out = false;  // unknown further edges in or out
    [[nodiscard]] bool hooked() const { return pieces.front().site != 0; }
  };
  static constexpr std::size_t none = ~std::size_t{0};
  struct CodeGraph {  // contiguous code of one loaded object
    std::vector<Node> nodes;
    std::vector<Edge> edges;
  };
  static CodeGraph build(const std::vector<Instruction>& code, std::uintptr_t hook);
  static void run(const CodeGraph& graph, const Visits& visits, Result& result);

  std::vector<CodeGraph> graphs_;
};

}  // namespace rung::simt::record

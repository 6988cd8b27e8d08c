// SPDX-License-Identifier: Apache-2.0
// From visits of basic blocks to the arithmetic that was done in them. Internal to simt/.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "rung/simt/record/disassembly.hpp"

namespace rung::simt::record {

/// Threads that entered a basic block, by the site of its hook.
using Visits = std::unordered_map<std::uintptr_t, std::uint64_t>;

/// The machine code around the hooks of some kernels, as blocks that are entered at their first
/// instruction alone.
class ControlFlow {
 public:
  /// `sites`: of basic blocks that were entered, in any objects of this process.
  explicit ControlFlow(std::vector<std::uintptr_t> sites);

  /// False: there is no objdump, or nothing was compiled with hooks at basic blocks.
  [[nodiscard]] bool known() const { return !parts_.empty(); }

  /// Instructions that calculate, and how often threads ran them.
  struct Run {
    std::uintptr_t address = 0;
    std::uint64_t times = 0;
    Arithmetic once;
  };
  struct Result {
    std::vector<Run> runs;
    bool exact = true;  // false: some code has no hook, and its visits do not follow from others
  };
  [[nodiscard]] Result run(const Visits& visits) const;

 private:
  struct Edge {
    std::size_t from = 0, to = 0;
  };
  struct Piece {  // of a block: the instructions that go with one hook
    std::uintptr_t site = 0;
    std::vector<Run> code;
  };
  struct Node {
    std::vector<Piece> pieces;
    std::vector<std::size_t> in, out;        // edges
    std::size_t fall_from = none;            // the edge by which it is entered without a jump
    bool open_in = false, open_out = false;  // other ways in or out, which are not known
    [[nodiscard]] bool hooked() const { return pieces.front().site != 0; }
  };
  static constexpr std::size_t none = ~std::size_t{0};
  struct Part {  // adjacent code of one object
    std::vector<Node> nodes;
    std::vector<Edge> edges;
  };
  static Part build(const std::vector<Instruction>& code, std::uintptr_t hook);
  static void run(const Part& part, const Visits& visits, Result& result);

  std::vector<Part> parts_;
};

}  // namespace rung::simt::record

// SPDX-License-Identifier: Apache-2.0
// Execution counts of basic blocks. The compiler inserts hooks at the start of basic blocks before
// its later passes, which split blocks and add code without hooks. Flow conservation gives the
// counts of such code from its neighbors.
#include "rung/simt/record/arithmetic.hpp"

#include <algorithm>
#include <numeric>
#include <optional>

#include "rung/simt/record/operations.hpp"

namespace rung::simt::record {
namespace {

using Flow = Instruction::Flow;

/// Hooks at most `near` bytes apart share a disassembly, which extends `margin` bytes beyond the
/// outermost hooks.
constexpr std::uintptr_t near = 1 << 16;
constexpr std::uintptr_t margin = 1 << 14;

std::size_t index_of(const std::vector<Instruction>& code, std::uintptr_t address) {
  const auto at = std::lower_bound(
      code.begin(), code.end(), address,
      [](const Instruction& one, std::uintptr_t number) { return one.address < number; });
  const bool here = at != code.end() && at->address == address;
  return here ? static_cast<std::size_t>(at - code.begin()) : code.size();
}

/// Returns the target of the call instruction before this site, which is the hook function; 0 if
/// there is no call.
std::uintptr_t hook_at(const std::vector<Instruction>& code, std::uintptr_t site) {
  const std::size_t behind = index_of(code, site);
  if (behind == code.size() || behind == 0) return 0;
  const Instruction& call = code[behind - 1];
  return call.flow == Flow::call ? call.target : 0;
}

}  // namespace

ControlFlow::ControlFlow(std::vector<std::uintptr_t> sites) {
  std::erase_if(sites, [](std::uintptr_t site) { return (site & place_bit) != 0; });
  std::sort(sites.begin(), sites.end());
  for (std::size_t first = 0, behind = 0; first < sites.size(); first = behind) {
    for (behind = first + 1; behind < sites.size(); ++behind) {
      if (sites[behind] - sites[behind - 1] > near) break;
    }
    const std::vector<Instruction> code =
        disassemble(sites[first] - margin, sites[behind - 1] + margin);
    const std::uintptr_t hook = hook_at(code, sites[first]);
    if (hook != 0) graphs_.push_back(build(code, hook));
  }
}

ControlFlow::CodeGraph ControlFlow::build(const std::vector<Instruction>& code,
                                          std::uintptr_t hook) {
  std::vector<bool> leads(code.size() + 1, false);
  leads[0] = true;
  for (std::size_t i = 0; i < code.size(); ++i) {
    if (code[i].flow == Flow::next || code[i].flow == Flow::call) continue;
    leads[i + 1] = true;
    if (code[i].flow != Flow::end) leads[index_of(code, code[i].target)] = true;
  }
  // Call targets start blocks, since a function may follow a call that does not return.
  for (std::size_t i = 0; i < code.size(); ++i) {
    if (code[i].flow == Flow::call) leads[index_of(code, code[i].target)] = true;
  }
  CodeGraph graph;
  std::vector<std::size_t> node_of(code.size() + 1, none);
  for (std::size_t i = 0; i < code.size(); ++i) {
    if (leads[i]) {
      graph.nodes.emplace_back();
      graph.nodes.back().pieces.emplace_back();
    }
    node_of[i] = graph.nodes.size() - 1;
    Node& node = graph.nodes.back();
    if (code[i].flow == Flow::call && code[i].target == hook) {
      const std::uintptr_t site = i + 1 < code.size() ? code[i + 1].address : 0;
      // Code before a block's first hook gets the hook's count.
      if (node.hooked()) node.pieces.emplace_back();
      node.pieces.back().site = site;
    } else if (code[i].arithmetic.any()) {
      node.pieces.back().code.push_back({code[i].address, 0, code[i].arithmetic});
    }
  }
  const auto connect = [&](std::size_t from, std::size_t to) {
    graph.edges.push_back({from, to});
    graph.nodes[from].out.push_back(graph.edges.size() - 1);
    graph.nodes[to].in.push_back(graph.edges.size() - 1);
  };
  for (std::size_t i = 0; i < code.size(); ++i) {
    if (!leads[i + 1] && i + 1 != code.size()) continue;  // not the last instruction of a block
    const std::size_t here = node_of[i];
    const Instruction& last = code[i];
    if (last.flow == Flow::jump || last.flow == Flow::branch) {
      const std::size_t to = last.target == 0 ? none : node_of[index_of(code, last.target)];
      if (to == none) {
        graph.nodes[here].open_out = true;
      } else {
        connect(here, to);
      }
    }
    const bool goes_on = last.flow != Flow::jump && last.flow != Flow::end;
    if (!goes_on) continue;
    if (i + 1 == code.size()) {
      graph.nodes[here].open_out = true;
    } else {
      connect(here, here + 1);
      graph.nodes[here + 1].fall_from = graph.edges.size() - 1;
    }
  }
  for (Node& node : graph.nodes) {
    node.open_in |= node.in.empty();
    node.open_out |= node.out.empty();
  }
  for (const Instruction& one : code) {
    if (one.flow != Flow::call) continue;
    const std::size_t entry = node_of[index_of(code, one.target)];
    if (entry != none) graph.nodes[entry].open_in = true;
  }
  return graph;
}

void ControlFlow::run(const CodeGraph& graph, const Visits& visits, Result& result) {
  using Count = std::optional<std::uint64_t>;
  const auto visits_of = [&](std::uintptr_t site) -> std::uint64_t {
    const auto at = visits.find(site);
    return at == visits.end() ? 0 : at->second;
  };
  std::vector<Count> nodes(graph.nodes.size()), edges(graph.edges.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    if (node.hooked()) nodes[i] = visits_of(node.pieces.front().site);
  }
  // Flow conservation: a node's count is the sum over its incoming edges, and also over its
  // outgoing edges. A single unknown count is the difference of the known ones.
  const auto settle = [&](std::size_t node, const std::vector<std::size_t>& side, bool open) {
    if (open) return false;
    std::uint64_t sum = 0;
    std::size_t unknown = none, unknowns = 0;
    for (const std::size_t edge : side) {
      if (edges[edge]) {
        sum += *edges[edge];
      } else {
        unknown = edge;
        ++unknowns;
      }
    }
    if (unknowns == 0 && !nodes[node]) {
      nodes[node] = sum;
      return true;
    }
    if (!nodes[node]) return false;
    if (unknowns == 1) {
      edges[unknown] = *nodes[node] > sum ? *nodes[node] - sum : 0;
      return true;
    }
    if (unknowns == 0 || *nodes[node] != sum) return false;
    for (const std::size_t edge : side) {  // the remaining edges have a count of zero
      if (!edges[edge]) edges[edge] = 0;
    }
    return true;
  };
  const auto settle_all = [&] {
    for (bool changed = true; changed;) {
      changed = false;
      for (std::size_t i = 0; i < nodes.size(); ++i) {
        changed |= settle(i, graph.nodes[i].in, graph.nodes[i].open_in);
        changed |= settle(i, graph.nodes[i].out, graph.nodes[i].open_out);
      }
    }
  };
  settle_all();
  // Counts that flow conservation leaves undetermined, such as that of a slow path without hooks:
  // the fall-through path is assumed to be taken always.
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    if (nodes[i]) continue;
    const bool falls = node.fall_from != none;
    const Count before = falls ? nodes[graph.edges[node.fall_from].from] : Count(0);
    nodes[i] = before.value_or(0);
    const std::vector<Run>& code = node.pieces.front().code;
    const bool calculates = std::any_of(code.begin(), code.end(), [](const Run& one) {
      return one.once.operations() + one.once.functions != 0;
    });
    const bool reached = std::any_of(node.in.begin(), node.in.end(), [&](std::size_t edge) {
      return nodes[graph.edges[edge].from].value_or(0) != 0;
    });
    result.exact &= !(calculates && reached);
    if (*nodes[i] != 0) settle_all();
  }
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    for (const Piece& piece : graph.nodes[i].pieces) {
      const std::uint64_t times = piece.site != 0 ? visits_of(piece.site) : *nodes[i];
      if (times == 0) continue;
      for (const Run& one : piece.code) result.runs.push_back({one.address, times, one.once});
    }
  }
}

ControlFlow::Result ControlFlow::run(const Visits& visits) const {
  Result result;
  for (const CodeGraph& graph : graphs_) run(graph, visits, result);
  return result;
}

}  // namespace rung::simt::record

// SPDX-License-Identifier: Apache-2.0
// Streams, and the graphs that capture what is submitted to them. Nothing runs late: what is
// submitted is done when submit() returns, or is a node of a graph.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "rung/emulate/runtime/api.hpp"

struct CUgraphNode_st {
  cudaGraphNodeType type;
  std::function<cudaError_t()> run;
  // In an executable graph, where it was given other parameters: the node whose place it took.
  cudaGraphNode_t instead_of = nullptr;
};

/// Nodes in the order in which they were added, which respects every dependency.
struct CUgraph_st {
  std::vector<std::shared_ptr<CUgraphNode_st>> nodes;
  // Edges given by hand: a node may have been added before the one that it depends on.
  std::vector<std::pair<cudaGraphNode_t, cudaGraphNode_t>> edges;
};

struct CUgraphExec_st {
  std::vector<std::shared_ptr<CUgraphNode_st>> nodes;
};

struct CUstream_st {
  unsigned flags = 0;
  int priority = 0;
  cudaGraph_t capture = nullptr;
  bool origin = false;  // of the capture
};

struct CUevent_st {
  unsigned flags = 0;
  bool recorded = false;
  double time = 0;
  cudaGraph_t capture = nullptr;  // in which it was recorded
};

namespace rung::cuda {

/// Null for a handle that is no stream. The default streams have one too.
CUstream_st* stream_of(cudaStream_t stream);
bool any_capture();
/// Runs it, or adds it to the graph that captures the stream; remembers its error.
cudaError_t submit(cudaStream_t stream, cudaGraphNodeType type,
                   std::function<cudaError_t()> operation);
/// Adds a node that depends on `after`.
cudaError_t add_node(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after,
                     std::size_t count, cudaGraphNodeType type,
                     std::function<cudaError_t()> operation);
/// A launch with these parameters, the arguments copied now.
cudaError_t kernel_operation(const cudaKernelNodeParams& given,
                             std::function<cudaError_t()>& operation);
std::function<cudaError_t()> fill_operation(const cudaMemsetParams& given);
/// Whether the memory is an alloc node's, which stays at its place while the graph may be launched
/// again; it then counts as given back.
bool give_back_to_graph(void* memory);
/// Runs what kernels have launched and has not run, when a kernel waits for it.
void run_children();

}  // namespace rung::cuda

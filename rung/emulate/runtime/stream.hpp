// SPDX-License-Identifier: Apache-2.0
// Streams, and the graphs that capture what is submitted to them. What is submitted is done when
// submit() returns, or is a node of a graph, or comes behind a kernel that waits for the host
// (tasks.hpp).
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "rung/emulate/runtime/api.hpp"
#include "rung/emulate/runtime/shared_block.hpp"
#include "rung/emulate/runtime/tasks.hpp"

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
  int device = 0;
  rung::cuda::TaskRef last;  // that was submitted to it; null: nothing is left to do
};

struct CUevent_st {
  unsigned flags = 0;
  bool recorded = false;
  double time = 0;
  cudaGraph_t capture = nullptr;  // in which it was recorded
  int device = 0;
  rung::cuda::TaskRef reached;                // when what was submitted before is done
  rung::cuda::BlockHeader* shared = nullptr;  // of an event that several processes have
  int block = -1;
};

namespace rung::cuda {

/// Null for a handle that is no stream. The default streams have one too, on each device its own.
CUstream_st* stream_of(cudaStream_t stream);
bool any_capture();
/// Whether something is left to do before what is submitted to the stream next.
bool is_busy(cudaStream_t stream);
/// Until all is done that was submitted to it. What has gone wrong with that.
cudaError_t await_stream(cudaStream_t stream);
/// Comes behind what was submitted, and behind `after`; for what the host need not wait for.
TaskRef submit_late(CUstream_st& stream, std::function<cudaError_t()> operation, TaskRef after);
/// The event of this handle; null: it is none.
CUevent_st* event_of(cudaEvent_t event);
void add_event(CUevent_st* event);
bool remove_event(cudaEvent_t event);  // which may be none
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

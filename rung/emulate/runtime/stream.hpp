// SPDX-License-Identifier: Apache-2.0
// Streams, and graphs that capture their work. Work completes in submit(), becomes a graph node, or
// is enqueued behind a kernel that waits for the host (tasks.hpp).
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "rung/emulate/runtime/api.hpp"
#include "rung/emulate/runtime/shared_block.hpp"
#include "rung/emulate/runtime/stream_order.hpp"
#include "rung/emulate/runtime/tasks.hpp"

struct CUgraphNode_st {
  cudaGraphNodeType type;
  std::function<cudaError_t()> run;
  // Node that this one replaced in an executable graph, with other parameters.
  cudaGraphNode_t instead_of = nullptr;
  rung::cuda::ProgramCall call;  // call that added the node
};

/// Nodes in insertion order.
struct CUgraph_st {
  std::vector<std::shared_ptr<CUgraphNode_st>> nodes;
  // Dependencies, as pairs (predecessor, successor). In `nodes` a node may precede its
  // dependencies.
  std::vector<std::pair<cudaGraphNode_t, cudaGraphNode_t>> edges;
};

struct CUgraphExec_st {
  std::vector<std::shared_ptr<CUgraphNode_st>> nodes;
  std::vector<std::pair<cudaGraphNode_t, cudaGraphNode_t>> edges;
  rung::cuda::WorkClock launched;  // clock of the last launch
};

struct CUstream_st {
  unsigned flags = 0;
  int priority = 0;
  cudaGraph_t capture = nullptr;
  bool origin = false;                    // the capture began here
  std::vector<cudaGraphNode_t> captured;  // nodes on which the next captured node depends
  int device = 0;
  rung::cuda::TaskRef last;  // last submitted work; null: all work is complete
};

struct CUevent_st {
  unsigned flags = 0;
  bool recorded = false;
  double time = 0;
  cudaGraph_t capture = nullptr;          // capture in which it was recorded
  std::vector<cudaGraphNode_t> captured;  // nodes of the capture for which it waits
  int device = 0;
  rung::cuda::TaskRef reached;                // completes with the work submitted before the record
  rung::cuda::BlockHeader* shared = nullptr;  // block of an interprocess event
  int block = -1;
};

namespace rung::cuda {

/// Returns the stream of a handle; null for an invalid handle. Each default stream has one object
/// per device.
CUstream_st* stream_of(cudaStream_t stream);
bool any_capture();
/// Returns true if pending work must complete before work submitted to the stream now.
bool is_busy(cudaStream_t stream);
/// Waits until all work of the stream is complete. Returns the stream's error.
cudaError_t await_stream(cudaStream_t stream);
/// Enqueues work after all submitted work and after the task `after`. The host need not wait for
/// it.
TaskRef submit_late(CUstream_st& stream, std::function<cudaError_t()> operation, TaskRef after);
/// Returns the event of this handle; null for an invalid handle.
CUevent_st* event_of(cudaEvent_t event);
void add_event(CUevent_st* event);
bool remove_event(cudaEvent_t event);  // the handle may be invalid
/// Runs the work, or adds it to the graph that captures the stream; records its error.
cudaError_t submit(cudaStream_t stream, cudaGraphNodeType type,
                   std::function<cudaError_t()> operation);
/// Adds a node that depends on the `count` nodes at `after`.
cudaError_t add_node(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after,
                     std::size_t count, cudaGraphNodeType type,
                     std::function<cudaError_t()> operation);
/// Returns in `operation` a launch with these parameters; copies the kernel's arguments
/// immediately.
cudaError_t kernel_operation(const cudaKernelNodeParams& given,
                             std::function<cudaError_t()>& operation);
std::function<cudaError_t()> fill_operation(const cudaMemsetParams& given);
/// Frees memory of an allocation node. Returns false if no node owns the memory. Its address
/// remains reserved as long as the graph may be launched again.
bool give_back_to_graph(void* memory);
/// Runs the launches that the calling kernel has enqueued so far; no effect in host code.
void run_children();

}  // namespace rung::cuda

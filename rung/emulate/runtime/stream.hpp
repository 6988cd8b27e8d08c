// SPDX-License-Identifier: Apache-2.0
// Streams, and the graphs that capture the work submitted to them. Work is done when submit()
// returns, or is a node of a graph, or follows a kernel that waits for the host (tasks.hpp).
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
  // The node that this one replaced in an executable graph, where it was given other parameters.
  cudaGraphNode_t instead_of = nullptr;
  rung::cuda::ProgramCall call;  // that added it
};

/// Nodes in the order in which they were added, which respects every dependency.
struct CUgraph_st {
  std::vector<std::shared_ptr<CUgraphNode_st>> nodes;
  // A node may have been added before one that it depends on.
  std::vector<std::pair<cudaGraphNode_t, cudaGraphNode_t>> edges;
};

struct CUgraphExec_st {
  std::vector<std::shared_ptr<CUgraphNode_st>> nodes;
  std::vector<std::pair<cudaGraphNode_t, cudaGraphNode_t>> edges;
  rung::cuda::WorkClock launched;  // last
};

struct CUstream_st {
  unsigned flags = 0;
  int priority = 0;
  cudaGraph_t capture = nullptr;
  bool origin = false;                    // the capture began here
  std::vector<cudaGraphNode_t> captured;  // nodes that the next one depends on
  int device = 0;
  rung::cuda::TaskRef last;  // last work submitted to it; null: all is done
};

struct CUevent_st {
  unsigned flags = 0;
  bool recorded = false;
  double time = 0;
  cudaGraph_t capture = nullptr;          // capture in which it was recorded
  std::vector<cudaGraphNode_t> captured;  // nodes of the capture that it waits for
  int device = 0;
  rung::cuda::TaskRef reached;                // reached when the work submitted before it is done
  rung::cuda::BlockHeader* shared = nullptr;  // block of an event that several processes share
  int block = -1;
};

namespace rung::cuda {

/// Returns the stream of a handle; null where it is none. The default streams have one too, one per
/// device.
CUstream_st* stream_of(cudaStream_t stream);
bool any_capture();
/// Returns whether some work must end before work that is submitted to the stream next.
bool is_busy(cudaStream_t stream);
/// Waits until all work submitted to it is done. Returns its error.
cudaError_t await_stream(cudaStream_t stream);
/// Enqueues work behind all that was submitted, and behind `after`; the host need not wait for it.
TaskRef submit_late(CUstream_st& stream, std::function<cudaError_t()> operation, TaskRef after);
/// Returns the event of this handle; null where it is none.
CUevent_st* event_of(cudaEvent_t event);
void add_event(CUevent_st* event);
bool remove_event(cudaEvent_t event);  // there may be no such event
/// Runs the work, or adds it to the graph that captures the stream; remembers its error.
cudaError_t submit(cudaStream_t stream, cudaGraphNodeType type,
                   std::function<cudaError_t()> operation);
/// Adds a node that depends on `after`.
cudaError_t add_node(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after,
                     std::size_t count, cudaGraphNodeType type,
                     std::function<cudaError_t()> operation);
/// Makes the operation of a launch with these parameters; copies the arguments now.
cudaError_t kernel_operation(const cudaKernelNodeParams& given,
                             std::function<cudaError_t()>& operation);
std::function<cudaError_t()> fill_operation(const cudaMemsetParams& given);
/// Returns whether the memory belongs to an alloc node. It stays at its place while the graph may
/// be launched again, and counts as freed.
bool give_back_to_graph(void* memory);
/// Runs the launches of kernels that have not run, when a kernel waits for them.
void run_children();

}  // namespace rung::cuda

// SPDX-License-Identifier: Apache-2.0
// Graphs: work that runs at each launch of the graph.
#include <algorithm>

#include "rung/emulate/runtime/array.hpp"
#include "rung/emulate/runtime/memory.hpp"
#include "rung/emulate/runtime/stream.hpp"

namespace rung::cuda {

cudaError_t add_node(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after,
                     std::size_t count, cudaGraphNodeType type,
                     std::function<cudaError_t()> operation) {
  if (graph == nullptr || node == nullptr) return remember(cudaErrorInvalidValue);
  auto made = std::make_shared<CUgraphNode_st>(CUgraphNode_st{type, std::move(operation), nullptr});
  if (follows_streams()) made->call = program_call();
  *node = made.get();
  for (std::size_t i = 0; i < count; ++i) graph->edges.emplace_back(after[i], made.get());
  graph->nodes.push_back(std::move(made));
  return remember(cudaSuccess);
}

cudaError_t kernel_operation(const cudaKernelNodeParams& given,
                             std::function<cudaError_t()>& operation) {
  // Captures the launch into a graph, so that launch_by_address() copies the arguments.
  CUgraph_st one;
  cudaStream_t stream = nullptr;
  cudaStreamCreate(&stream);
  stream->capture = &one;
  LaunchConfig config;
  config.grid = given.gridDim;
  config.block = given.blockDim;
  config.shared_bytes = given.sharedMemBytes;
  config.stream = stream;
  config.code = given.func;
  cudaError_t error = launch_by_address(config, given.kernelParams);
  stream->capture = nullptr;
  cudaStreamDestroy(stream);
  if (error == cudaSuccess && one.nodes.empty()) error = remember(cudaErrorInvalidValue);
  if (error == cudaSuccess) operation = one.nodes.front()->run;
  return error;
}

std::function<cudaError_t()> fill_operation(const cudaMemsetParams& given) {
  return [fill = given] {
    cudaError_t error = cudaSuccess;
    for (std::size_t row = 0; row < std::max<std::size_t>(fill.height, 1); ++row) {
      char* begin = static_cast<char*>(fill.dst) + row * fill.pitch;
      // A fill with elements of 2 or 4 bytes repeats the bytes of the pattern.
      for (std::size_t i = 0; i < fill.width && error == cudaSuccess; ++i) {
        if (fill.elementSize == 1) {
          error = fill_bytes(begin, static_cast<int>(fill.value), fill.width);
          break;
        }
        error = copy_bytes(begin + i * fill.elementSize, &fill.value, fill.elementSize,
                           cudaMemcpyHostToDevice);
      }
    }
    return error;
  };
}

namespace {

/// Returns the nodes in topological order; fewer than all if the graph has a cycle.
std::vector<std::shared_ptr<CUgraphNode_st>> sorted(const CUgraph_st& graph) {
  std::vector<std::shared_ptr<CUgraphNode_st>> left = graph.nodes, done;
  const auto waits = [&](const auto& node) {
    return std::any_of(graph.edges.begin(), graph.edges.end(), [&](const auto& edge) {
      return edge.second == node.get() &&
             std::any_of(left.begin(), left.end(),
                         [&](const auto& other) { return other.get() == edge.first; });
    });
  };
  for (;;) {
    const auto next = std::find_if_not(left.begin(), left.end(), waits);
    if (next == left.end()) return done;
    done.push_back(*next);
    left.erase(next);
  }
}

}  // namespace
}  // namespace rung::cuda

using namespace rung::cuda;  // NOLINT: implementation of the CUDA API

cudaError_t cudaGraphCreate(cudaGraph_t* graph, unsigned int) {
  *graph = new CUgraph_st;
  return remember(cudaSuccess);
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return remember(cudaSuccess);
}
cudaError_t cudaGraphClone(cudaGraph_t* clone, cudaGraph_t graph) {
  *clone = new CUgraph_st(*graph);
  return remember(cudaSuccess);
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long) {
  if (exec == nullptr || graph == nullptr) return remember(cudaErrorInvalidValue);
  auto nodes = sorted(*graph);
  if (nodes.size() != graph->nodes.size()) return remember(cudaErrorInvalidValue);  // a cycle
  *exec = new CUgraphExec_st{std::move(nodes), graph->edges, {}};
  return remember(cudaSuccess);
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, cudaGraphNode_t* error,
                                 char*, std::size_t) {
  if (error != nullptr) *error = nullptr;
  return cudaGraphInstantiate(exec, graph, 0);
}
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* exec, cudaGraph_t graph,
                                          unsigned long long flags) {
  return cudaGraphInstantiate(exec, graph, flags);
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  if (exec == nullptr) return remember(cudaErrorInvalidValue);
  const CUstream_st* const there = stream_of(stream);
  std::vector<StreamWorkRef> works;
  if (there != nullptr && there->capture == nullptr) {
    works = enqueue_nodes(stream, *exec, exec->launched);
  }
  return submit(stream, cudaGraphNodeTypeGraph, [nodes = exec->nodes, works] {
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      const RunningWork here(i < works.size() ? works[i] : nullptr);
      if (const cudaError_t error = nodes[i]->run(); error != cudaSuccess) return error;
    }
    return cudaSuccess;
  });
}
cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t) { return remember(cudaSuccess); }
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  delete exec;
  return remember(cudaSuccess);
}
cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph,
                                cudaGraphExecUpdateResultInfo* result) {
  auto nodes = sorted(*graph);
  const bool same = std::equal(nodes.begin(), nodes.end(), exec->nodes.begin(), exec->nodes.end(),
                               [](const auto& a, const auto& b) { return a->type == b->type; });
  if (result != nullptr) {
    *result = {same ? cudaGraphExecUpdateSuccess : cudaGraphExecUpdateError, nullptr, nullptr};
  }
  if (!same) return remember(cudaErrorGraphExecUpdateFailure);
  exec->nodes = std::move(nodes);
  exec->edges = graph->edges;
  return remember(cudaSuccess);
}
cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph, cudaGraphNode_t* error,
                                cudaGraphExecUpdateResult* result) {
  cudaGraphExecUpdateResultInfo info{};
  const cudaError_t answer = cudaGraphExecUpdate(exec, graph, &info);
  if (error != nullptr) *error = info.errorNode;
  if (result != nullptr) *result = info.result;
  return answer;
}
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, std::size_t* count) {
  if (nodes != nullptr) {
    const std::size_t room = std::min(*count, graph->nodes.size());
    for (std::size_t i = 0; i < room; ++i) nodes[i] = graph->nodes[i].get();
  }
  *count = graph->nodes.size();
  return remember(cudaSuccess);
}
cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, cudaGraphNodeType* type) {
  *type = node->type;
  return remember(cudaSuccess);
}
cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t* from,
                                     const cudaGraphNode_t* to, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) graph->edges.emplace_back(from[i], to[i]);
  return remember(cudaSuccess);
}
cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                   const cudaGraphNode_t* after, std::size_t count,
                                   const cudaKernelNodeParams* given) {
  std::function<cudaError_t()> operation;
  const cudaError_t error = kernel_operation(*given, operation);
  if (error != cudaSuccess) return error;
  return add_node(node, graph, after, count, cudaGraphNodeTypeKernel, std::move(operation));
}
cudaError_t cudaGraphAddMemcpyNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                   const cudaGraphNode_t* after, std::size_t count,
                                   const cudaMemcpy3DParms* given) {
  return add_node(node, graph, after, count, cudaGraphNodeTypeMemcpy,
                  [copy = *given] { return copy_3d(copy); });
}
cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t* node, cudaGraph_t graph,
                                     const cudaGraphNode_t* after, std::size_t count, void* to,
                                     const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  return add_node(node, graph, after, count, cudaGraphNodeTypeMemcpy,
                  [=] { return copy_bytes(to, from, bytes, kind); });
}
cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                   const cudaGraphNode_t* after, std::size_t count,
                                   const cudaMemsetParams* given) {
  return add_node(node, graph, after, count, cudaGraphNodeTypeMemset, fill_operation(*given));
}
cudaError_t cudaGraphAddHostNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                 const cudaGraphNode_t* after, std::size_t count,
                                 const cudaHostNodeParams* given) {
  return add_node(node, graph, after, count, cudaGraphNodeTypeHost, [call = *given] {
    call.fn(call.userData);
    return cudaSuccess;
  });
}
cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                  const cudaGraphNode_t* after, std::size_t count) {
  return add_node(node, graph, after, count, cudaGraphNodeTypeEmpty, [] { return cudaSuccess; });
}
cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                       const cudaGraphNode_t* after, std::size_t count,
                                       cudaGraph_t child) {
  return add_node(node, graph, after, count, cudaGraphNodeTypeGraph, [nodes = sorted(*child)] {
    for (const auto& one : nodes) {
      if (const cudaError_t error = one->run(); error != cudaSuccess) return error;
    }
    return cudaSuccess;
  });
}

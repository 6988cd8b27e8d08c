// SPDX-License-Identifier: Apache-2.0
// Updates of executable graphs, graph memory, and queries.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <map>
#include <mutex>
#include <set>

#include "rung/emulate/runtime/array.hpp"
#include "rung/emulate/runtime/memory.hpp"
#include "rung/emulate/runtime/stream.hpp"

namespace rung::cuda {
namespace {

/// Replaces the node in one executable graph; other graphs that contain the node are unchanged.
cudaError_t replace(cudaGraphExec_t exec, cudaGraphNode_t node, cudaGraphNodeType type,
                    std::function<cudaError_t()> operation) {
  if (exec == nullptr || node == nullptr) return remember(cudaErrorInvalidValue);
  const auto found = std::find_if(exec->nodes.begin(), exec->nodes.end(), [&](const auto& one) {
    return one.get() == node || one->instead_of == node;
  });
  if (found == exec->nodes.end() || (*found)->type != type) return remember(cudaErrorInvalidValue);
  ProgramCall call = (*found)->call;
  *found = std::make_shared<CUgraphNode_st>(
      CUgraphNode_st{type, std::move(operation), node, std::move(call)});
  return remember(cudaSuccess);
}

/// Sizes of the memory of allocation nodes, for queries. The memory itself is allocated when the
/// node is created, since the program may ask for its address from then on.
class GraphMemory {
 public:
  void use(void* memory, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    if (used_.insert({memory, bytes}).second) now_ += bytes;
    high_ = std::max(high_, now_);
  }
  void stop_using(void* memory) {
    const std::lock_guard lock(mutex_);
    const auto found = used_.find(memory);
    if (found == used_.end()) return;
    now_ -= found->second;
    used_.erase(found);
  }
  void own(void* memory) {
    const std::lock_guard lock(mutex_);
    own_.insert(memory);
  }
  bool owns(void* memory) {
    const std::lock_guard lock(mutex_);
    return own_.contains(memory);
  }
  [[nodiscard]] std::uint64_t now() const { return now_; }
  [[nodiscard]] std::uint64_t high() const { return high_; }
  void forget_high() { high_ = now_; }

 private:
  std::mutex mutex_;
  std::map<void*, std::size_t> used_;
  std::set<void*> own_;
  std::uint64_t now_ = 0, high_ = 0;
};
GraphMemory& graph_memory() {
  static auto& memory = *new GraphMemory;
  return memory;
}

}  // namespace

bool give_back_to_graph(void* memory) {
  if (!graph_memory().owns(memory)) return false;
  graph_memory().stop_using(memory);
  return true;
}

}  // namespace rung::cuda

using namespace rung::cuda;  // NOLINT: implementation of the CUDA API

cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const cudaKernelNodeParams* given) {
  std::function<cudaError_t()> operation;
  const cudaError_t error = kernel_operation(*given, operation);
  if (error != cudaSuccess) return error;
  return replace(exec, node, cudaGraphNodeTypeKernel, std::move(operation));
}
cudaError_t cudaGraphKernelNodeSetParams(cudaGraphNode_t node, const cudaKernelNodeParams* given) {
  return kernel_operation(*given, node->run);
}
cudaError_t cudaGraphExecMemcpyNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const cudaMemcpy3DParms* given) {
  return replace(exec, node, cudaGraphNodeTypeMemcpy, [copy = *given] { return copy_3d(copy); });
}
cudaError_t cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t exec, cudaGraphNode_t node, void* to,
                                               const void* from, std::size_t bytes,
                                               cudaMemcpyKind kind) {
  return replace(exec, node, cudaGraphNodeTypeMemcpy,
                 [=] { return copy_bytes(to, from, bytes, kind); });
}
cudaError_t cudaGraphExecMemsetNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const cudaMemsetParams* given) {
  return replace(exec, node, cudaGraphNodeTypeMemset, fill_operation(*given));
}
cudaError_t cudaGraphExecHostNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                           const cudaHostNodeParams* given) {
  return replace(exec, node, cudaGraphNodeTypeHost, [call = *given] {
    call.fn(call.userData);
    return cudaSuccess;
  });
}

cudaError_t cudaGraphAddMemAllocNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                     const cudaGraphNode_t* after, std::size_t count,
                                     cudaMemAllocNodeParams* given) {
  if (given == nullptr || graph == nullptr) return remember(cudaErrorInvalidValue);
  const cudaError_t error =
      allocate(&given->dptr, given->bytesize, cudaMemoryTypeDevice, "cudaGraphAddMemAllocNode");
  if (error != cudaSuccess) return remember(error);
  graph_memory().own(given->dptr);
  return add_node(node, graph, after, count, cudaGraphNodeTypeMemAlloc,
                  [memory = given->dptr, bytes = given->bytesize] {
                    graph_memory().use(memory, bytes);
                    return cudaSuccess;
                  });
}
cudaError_t cudaGraphAddMemFreeNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                    const cudaGraphNode_t* after, std::size_t count, void* memory) {
  if (find(memory).begin != memory) return remember(cudaErrorInvalidValue);
  // Freed memory stays reserved, since the graph may be launched again and needs memory at the same
  // address.
  return add_node(node, graph, after, count, cudaGraphNodeTypeMemFree, [memory] {
    graph_memory().stop_using(memory);
    return cudaSuccess;
  });
}
cudaError_t cudaDeviceGraphMemTrim(int) { return remember(cudaSuccess); }
cudaError_t cudaDeviceGetGraphMemAttribute(int, cudaGraphMemAttributeType attribute, void* value) {
  const bool high =
      attribute == cudaGraphMemAttrUsedMemHigh || attribute == cudaGraphMemAttrReservedMemHigh;
  *static_cast<std::uint64_t*>(value) = high ? graph_memory().high() : graph_memory().now();
  return remember(cudaSuccess);
}
cudaError_t cudaDeviceSetGraphMemAttribute(int, cudaGraphMemAttributeType, void*) {
  graph_memory().forget_high();
  return remember(cudaSuccess);
}

cudaError_t cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, std::size_t* count) {
  std::vector<cudaGraphNode_t> roots;
  for (const auto& one : graph->nodes) {
    const bool waits = std::any_of(graph->edges.begin(), graph->edges.end(),
                                   [&](const auto& edge) { return edge.second == one.get(); });
    if (!waits) roots.push_back(one.get());
  }
  if (nodes != nullptr) std::copy_n(roots.begin(), std::min(*count, roots.size()), nodes);
  *count = roots.size();
  return remember(cudaSuccess);
}
cudaError_t cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t* from, cudaGraphNode_t* to,
                              std::size_t* count) {
  for (std::size_t i = 0; from != nullptr && i < std::min(*count, graph->edges.size()); ++i) {
    from[i] = graph->edges[i].first;
    to[i] = graph->edges[i].second;
  }
  *count = graph->edges.size();
  return remember(cudaSuccess);
}
cudaError_t cudaGraphDebugDotPrint(cudaGraph_t graph, const char* path, unsigned int) {
  std::FILE* file = std::fopen(path, "w");
  if (file == nullptr) return remember(cudaErrorOperatingSystem);
  std::fputs("digraph {\n", file);
  for (const auto& one : graph->nodes) {
    std::fprintf(file, "  n%p [label=\"%d\"];\n", static_cast<void*>(one.get()), one->type);
  }
  for (const auto& [from, to] : graph->edges) {
    std::fprintf(file, "  n%p -> n%p;\n", static_cast<void*>(from), static_cast<void*>(to));
  }
  std::fputs("}\n", file);
  std::fclose(file);
  return remember(cudaSuccess);
}

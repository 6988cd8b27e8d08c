// SPDX-License-Identifier: Apache-2.0
// Work of streams and graphs, from its call to its end.
#include "rung/emulate/runtime/stream_order.hpp"

#include <dlfcn.h>
#include <execinfo.h>

#include <iterator>
#include <string_view>
#include <utility>

#include "rung/emulate/runtime/kernels.hpp"
#include "rung/emulate/runtime/memory.hpp"
#include "rung/emulate/runtime/stream.hpp"
#include "rung/emulate/runtime/stream_state.hpp"
#include "rung/emulate/runtime/tasks.hpp"

namespace rung::cuda {

ProgramCall program_call() {
  static const auto is_ours = [](const Dl_info& info) {
    const std::string_view path = info.dli_fname != nullptr ? info.dli_fname : "";
    return path.substr(path.rfind('/') + 1).starts_with("librung");
  };
  void* frames[24];
  const int count = backtrace(frames, static_cast<int>(std::size(frames)));
  ProgramCall call;
  const char* name = nullptr;
  std::size_t outside = 0;
  for (int i = 0; i < count && outside < call.code.size(); ++i) {
    Dl_info info{};
    if (dladdr(static_cast<char*>(frames[i]) - 1, &info) == 0) continue;
    if (is_ours(info)) {
      if (outside == 0) name = info.dli_sname;
    } else {
      call.code[outside++] = frames[i];
    }
  }
  if (name != nullptr) {
    call.name = plain_name(name);
    call.name = call.name.substr(0, call.name.find('('));
    if (call.name == "rung::cuda::copy_symbol") call.name = "a copy of a symbol";
  }
  return call;
}

StreamWorkRef enqueue_work(cudaStream_t stream, cudaGraphNodeType type) {
  if (!follows_streams()) return nullptr;
  auto work = std::make_shared<StreamWork>();
  if (type != cudaGraphNodeTypeKernel) work->call = program_call();
  Order& all = order();
  const std::lock_guard lock(all.mutex);
  Track* const track = track_of(all, stream);
  if (track == nullptr) return nullptr;
  work->stream = track->text;
  work->default_stream = track->legacy;
  work->host_code = type == cudaGraphNodeTypeHost;
  work->synchronous = stream == synchronous();
  work->vain_wait = track->vain_wait;
  advance(all, *track);
  number(all, *work, track->slot, track->clock);
  return work;
}

std::vector<StreamWorkRef> enqueue_nodes(cudaStream_t stream, const CUgraphExec_st& graph,
                                         WorkClock& last) {
  if (!follows_streams()) return {};
  Order& all = order();
  const std::lock_guard lock(all.mutex);
  Track* const track = track_of(all, stream);
  if (track == nullptr) return {};
  all.other_streams = true;  // branches of a graph act like streams
  advance(all, *track);
  join(track->clock, last);
  const WorkClock begin = track->clock;
  const auto index_of = [&](cudaGraphNode_t node) {
    std::size_t i = 0;
    while (i < graph.nodes.size() && graph.nodes[i].get() != node &&
           graph.nodes[i]->instead_of != node) {
      ++i;
    }
    return i;
  };
  std::vector<std::vector<std::size_t>> after(graph.nodes.size());
  for (const auto& [from, to] : graph.edges) {
    const std::size_t first = index_of(from), second = index_of(to);
    if (first < after.size() && second < after.size()) after[second].push_back(first);
  }
  std::vector<StreamWorkRef> works;
  std::vector<bool> continued(after.size(), false);
  std::vector<std::size_t> slots;
  for (std::size_t i = 0; i < after.size(); ++i) {
    auto work = std::make_shared<StreamWork>();
    const CUgraphNode_st& node = *graph.nodes[i];
    work->call = node.call;
    work->host_code = node.type == cudaGraphNodeTypeHost;
    work->stream = "a graph";
    work->in_graph = true;
    WorkClock clock = begin;
    bool follows = false;
    std::size_t slot = 0;
    for (const std::size_t one : after[i]) {
      if (one >= works.size()) continue;  // impossible: nodes are sorted
      join(clock, works[one]->before);
      if (follows || continued[one]) continue;
      follows = continued[one] = true;
      slot = works[one]->slot;
    }
    if (!follows) {
      slot = new_slot(all);
      slots.push_back(slot);
    }
    number(all, *work, slot, clock);
    join(track->clock, work->before);
    works.push_back(std::move(work));
  }
  all.free_slots.insert(all.free_slots.end(), slots.begin(), slots.end());
  last = track->clock;
  return works;
}

RunningWork::RunningWork(StreamWorkRef work) : work_(std::move(work)), outer_(running_work()) {
  if (work_ == nullptr) return;
  running_work() = work_.get();
  if (!work_->host_code) return;
  work_->stack_end = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  Order& all = order();
  const std::lock_guard lock(all.mutex);
  ++all.callbacks;
  renew_watch(all);
}

RunningWork::~RunningWork() {
  if (work_ == nullptr) return;
  running_work() = outer_;
  if (const Task* const task = running_task(); task != nullptr) work_->polls = task->loose;
  Order& all = order();
  const std::lock_guard lock(all.mutex);
  if (work_->host_code) --all.callbacks;
  commit(all, work_);
  // A host function may have signaled other threads, unless it is known to have written only
  // watched memory.
  const bool told = work_->host_code && (work_->signals || !work_->host_code_seen);
  if (work_->waits || told) host_knows(all, work_->before);
  if (work_->host_code) renew_watch(all);
}

}  // namespace rung::cuda

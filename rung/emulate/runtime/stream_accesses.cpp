// SPDX-License-Identifier: Apache-2.0
// Bytes that the running work accesses: those of copies, fills, kernels and allocations.
#include <iterator>
#include <mutex>
#include <string>
#include <string_view>

#include "rung/emulate/runtime/kernels.hpp"
#include "rung/emulate/runtime/memory.hpp"
#include "rung/emulate/runtime/stream_state.hpp"
#include "rung/simt/record.hpp"
#include "rung/simt/record/footprint.hpp"

namespace rung::cuda {
namespace {

namespace record = simt::record;

// Maximum number of launches whose footprints are kept for unrecorded repetitions.
constexpr std::size_t max_known_launches = 1024;

}  // namespace

void work_reads(const void* memory, std::size_t bytes) {
  if (running_work() != nullptr && !running_work()->from_pageable) {
    insert(running_work()->bytes.reads, byte_range(memory, bytes));
  }
}
void work_writes(const void* memory, std::size_t bytes) {
  if (running_work() != nullptr && !running_work()->to_pageable) {
    insert(running_work()->bytes.writes, byte_range(memory, bytes));
  }
}

void commit_work() {
  if (running_work() == nullptr) return;
  Order& all = order();
  const std::lock_guard lock(all.mutex);
  commit(all, running_work()->shared_from_this());
}

void work_copies(const void* to, const void* from, cudaMemcpyKind kind) {
  if (running_work() == nullptr) return;
  const Allocation target = find(to), source = find(from);
  // Memory outside all allocations is host memory, or a variable of the program.
  const auto is_on_device = [](const Allocation& found, const void* memory, bool named) {
    if (found.begin != nullptr) return found.type == cudaMemoryTypeDevice;
    return named || record::find_memory(memory).bytes != 0;
  };
  const bool to_device =
      is_on_device(target, to, kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice);
  const bool from_device = is_on_device(
      source, from, kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice);
  running_work()->to_pageable = !to_device && target.begin == nullptr;
  running_work()->from_pageable = !from_device && source.begin == nullptr;
  running_work()->waits |= running_work()->to_pageable;
  if (!running_work()->synchronous) return;
  const bool same_device = target.device == source.device;
  if (!to_device || !(running_work()->from_pageable || (from_device && same_device))) {
    running_work()->waits = true;
  }
  if (to_device && from_device && same_device) return;
  // The host waits for the stream before a copy; for copies between devices, for the streams of
  // both devices.
  Order& all = order();
  const std::lock_guard lock(all.mutex);
  WorkClock before = running_work()->before;
  --before[running_work()->slot];
  if (to_device && from_device) {
    for (const auto& [key, track] : all.tracks) {
      if (track.slot != running_work()->slot) join(before, track.clock);
    }
  }
  host_knows(all, before);
}

void work_fills(const void* to) {
  if (running_work() == nullptr || find(to).type == cudaMemoryTypeDevice) return;
  running_work()->waits |= running_work()->call.name.find("Async") == std::string::npos &&
                           running_work()->call.name.starts_with("cudaMemset");
}

std::unique_ptr<record::Footprint> begin_kernel_footprint() {
  if (running_work() == nullptr) return nullptr;
  {
    const std::lock_guard lock(order().mutex);
    if (!order().other_streams && host_visible_memory().empty()) return nullptr;
  }
  return std::make_unique<record::Footprint>();
}

void work_accesses(const LaunchConfig& config, const std::string& kernel, const void* key,
                   const Closure& closure, const record::Footprint* footprint) {
  if (running_work() == nullptr) return;
  StreamWork& work = *running_work();
  if (work.kernel.empty()) {
    work.kernel = kernel;
    if (std::string_view(config.place.file_name()).find("/rung_cuda/") != std::string_view::npos) {
      work.call = program_call();
      work.call.name = "an algorithm of CUB or Thrust";
    } else if (config.caller == nullptr && config.place.line() == 0) {
      // Launched by address: the place is that of the call that launches or adds a node.
      if (!work.in_graph) work.call = program_call();
      work.call.name = "kernel " + kernel;
      work.arguments.assign(std::begin(config.arguments), std::end(config.arguments));
    } else {
      work.arguments.assign(std::begin(config.arguments), std::end(config.arguments));
      work.call = {.name = "kernel " + kernel,
                   .code = {config.caller},
                   .file = config.place.file_name(),
                   .line = static_cast<int>(config.place.line())};
    }
  }
  std::string what(static_cast<const char*>(closure.arguments), closure.argument_bytes);
  for (const std::uintptr_t word :
       {reinterpret_cast<std::uintptr_t>(key), std::uintptr_t{config.grid.x},
        std::uintptr_t{config.grid.y}, std::uintptr_t{config.grid.z},
        std::uintptr_t{config.block.x}, std::uintptr_t{config.block.y},
        std::uintptr_t{config.block.z}}) {
    what.append(reinterpret_cast<const char*>(&word), sizeof(word));
  }
  WorkBytes bytes;
  if (footprint != nullptr) {
    bytes = {footprint->ranges(record::Touch::read), footprint->ranges(record::Touch::write),
             footprint->ranges(record::Touch::atomic)};
    // If a byte is accessed in several ways, the strongest kind of access counts.
    remove(bytes.reads, bytes.writes);
    remove(bytes.atomics, bytes.writes);
  }
  {
    Order& all = order();
    const std::lock_guard lock(all.mutex);
    if (footprint == nullptr) {
      // A repeated launch that was not recorded has the same footprint as the recorded launch.
      const auto known = all.known_launches.find(what);
      if (known != all.known_launches.end()) bytes = known->second;
    } else if (all.known_launches.size() < max_known_launches ||
               all.known_launches.contains(what)) {
      all.known_launches[what] = bytes;
    }
  }
  unite(work.bytes.reads, bytes.reads);
  unite(work.bytes.writes, bytes.writes);
  unite(work.bytes.atomics, bytes.atomics);
}

void note_allocation(const void* memory, std::size_t bytes, cudaStream_t stream) {
  const StreamWorkRef work = enqueue_work(stream, cudaGraphNodeTypeMemAlloc);
  if (work == nullptr || bytes == 0) return;
  const RunningWork here(work);
  work_writes(memory, bytes);
}

}  // namespace rung::cuda

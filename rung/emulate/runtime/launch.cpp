// SPDX-License-Identifier: Apache-2.0
// Launches kernels: checks the limits of the device, and runs the simulator. Kernels launched by a
// kernel run after it has ended.
#include <omp.h>

#include <cstring>
#include <deque>
#include <thread>
#include <unordered_map>

#include "rung/core/error.hpp"
#include "rung/emulate/runtime/devices.hpp"
#include "rung/emulate/runtime/kernels.hpp"
#include "rung/emulate/runtime/launch_limits.hpp"
#include "rung/emulate/runtime/model.hpp"
#include "rung/emulate/runtime/repetition.hpp"
#include "rung/emulate/runtime/restrict_source.hpp"
#include "rung/emulate/runtime/running_kernel.hpp"
#include "rung/emulate/runtime/short_grid.hpp"
#include "rung/emulate/runtime/stream.hpp"
#include "rung/emulate/runtime/stream_order.hpp"
#include "rung/emulate/runtime/tasks.hpp"
#include "rung/simt/record.hpp"
#include "rung/simt/simulator.hpp"

#pragma GCC visibility push(default)
#include "rung_cuda/groups.h"
#pragma GCC visibility pop

namespace rung::cuda {
namespace {

using SharedClosure = std::shared_ptr<Closure>;

SharedClosure own(Closure closure) {
  return {new Closure(closure), [](Closure* one) {
            one->destroy(one->call);
            delete one;
          }};
}

struct Pending {
  LaunchConfig config;
  SharedClosure closure;
};

struct RunningLaunch : LaunchData {
  const LaunchConfig* config = nullptr;
  dim3 cluster;
  const Task* task = running_task();  // task that runs the launch; null: no task
  const int device = current_device();
  std::mutex mutex;  // guards the members below
  Refusal refused;
  bool again = false;  // must be launched again with the clusters that the kernel requires
  std::deque<Pending> children;
};
RunningLaunch& running_launch() { return *static_cast<RunningLaunch*>(launch_data); }

/// Returns the layout of a kernel, or of a launch site whose kernel is known only after the start.
KernelLayout& layout_of(const void* key) {
  static std::mutex mutex;
  static auto& layouts = *new std::unordered_map<const void*, std::unique_ptr<KernelLayout>>;
  const std::lock_guard lock(mutex);
  std::unique_ptr<KernelLayout>& one = layouts[key];
  if (one == nullptr) one = std::make_unique<KernelLayout>();
  return *one;
}

const RunningLaunch& launch_of(const void* data) {
  return *static_cast<const RunningLaunch*>(static_cast<const LaunchData*>(data));
}

std::string name_of(const void* data) {
  const RunningLaunch& one = launch_of(data);
  if (one.kernel != nullptr) return plain_name(one.kernel);
  return one.config->name != nullptr ? one.config->name : "kernel";
}

bool task_keeps_waiting(const void* data) { return keep_waiting(launch_of(data).task); }

const void* identity_of(const void* data) {
  const RunningLaunch& one = launch_of(data);
  return one.kernel != nullptr ? one.kernel : one.config->code;
}

void complete_finding(const void* data, const simt::record::Memory* memory,
                      simt::record::Finding& finding) {
  const RunningLaunch& launch = launch_of(data);
  const auto& layout = *static_cast<const KernelLayout*>(launch.layout);
  complete_finding(*launch.config, layout, launch.static_begin, memory, finding);
}

std::vector<const void*> memory_of_several(const void* data) {
  const RunningLaunch& launch = launch_of(data);
  const char* kernel = launch.kernel;
  // Predicts that the site launches the same kernel as before.
  if (kernel == nullptr) {
    kernel = static_cast<const KernelLayout*>(launch.layout)->last_kernel.load();
  }
  return memory_of_several(*launch.config, kernel);
}
simt::record::RestrictedParameter parameter_of(const void* data, const simt::record::Source& place,
                                               bool writes) {
  const RunningLaunch& launch = launch_of(data);
  return parameter_of(*launch.config, launch.kernel, place, writes);
}
simt::record::Source library_call(const void* data) {
  const void* const caller = launch_of(data).config->caller;
  return caller == nullptr ? simt::record::Source() : simt::record::place_of(caller);
}
constexpr simt::record::LaunchSource launch_source = {memory_of_several, parameter_of,
                                                      library_call};

/// Gap between dynamic and static shared memory, so that an overrun of one does not silently access
/// the other. A multiple of the total width of the banks, so that bank conflicts are unchanged.
constexpr std::size_t shared_gap = 1024;

simt::dialect::dim3 convert(const dim3& v) { return {v.x, v.y, v.z}; }

cudaError_t run_now(const LaunchConfig& config, const SharedClosure& closure);

/// Runs the launch. `told`: mangled name of the kernel, if an earlier attempt has determined it. It
/// is set on return if the kernel must be launched again with the clusters that it requires; for a
/// kernel launched by name these are known only after its start.
cudaError_t run_once(const LaunchConfig& config, const SharedClosure& closure, const char*& told) {
  const void* key =
      config.code != nullptr ? config.code : reinterpret_cast<const void*>(closure->run);
  KernelLayout& layout = layout_of(key);
  const KernelEntry* known = find_kernel(config.code);
  const char* kernel = std::exchange(told, nullptr);
  if (known != nullptr && known->name != nullptr) kernel = known->name;
  const std::size_t static_bytes = std::max(layout.used(), own_shared_bytes(kernel));
  const std::size_t limit = config.code != nullptr
                                ? dynamic_shared_limit(config.code, kernel)
                                : std::max(shared_without_asking, model().shared_per_block);
  // Predicts that the site launches the same kernel as before.
  const Demands* demands = find_demands(kernel != nullptr ? kernel : layout.last_kernel.load());
  if (kernel == nullptr && !divides(cluster_of(config, demands), config.grid)) demands = nullptr;
  if (kernel != nullptr) {
    const Refusal no = unmet(config, demands);
    if (no.error != cudaSuccess) return refuse(config, no.error, no.why);
  }
  RunningLaunch running;
  running.cluster = cluster_of(config, demands);
  const bool unknown = config.code == nullptr && kernel == nullptr;
  const LaunchLimits limits{static_bytes, limit,
                            unknown || wide_clusters(config.code, kernel) ? 16u : 8u};
  if (const cudaError_t error = check_limits(config, running.cluster, limits);
      error != cudaSuccess) {
    return error;
  }
  running.kernel = kernel;
  running.layout = &layout;
  const std::size_t dynamic_bytes = align_up(config.shared_bytes, 128);
  running.static_begin = align_up(dynamic_bytes + shared_gap, max_shared_alignment());
  running.shared_end =
      layout.used() != 0 ? running.static_begin + layout.used() : config.shared_bytes;
  running.config = &config;
  running.copies_unseen = config.copies_unseen;
  simt::Launch launch;
  launch.grid = convert(config.grid);
  launch.block = convert(config.block);
  launch.cluster = convert(running.cluster);
  launch.cooperative = config.cooperative;
  launch.shared_bytes = static_bytes != 0 ? dynamic_bytes + static_bytes : config.shared_bytes;
  launch.shared_gap_begin = config.shared_bytes;
  launch.shared_gap_end = running.static_begin;
  launch.shared_room = running.static_begin + all_shared_bytes();
  launch.shared_in_use = &running.shared_end;
  launch.os_threads = omp_get_max_threads();
  launch.entry = closure->run;
  launch.arguments = closure->call;
  launch.argument_bytes = closure->bytes;
  launch.kernel = key;  // identifies the kernel; `name` returns its name
  launch.data = static_cast<LaunchData*>(&running);
  launch.name = name_of;
  launch.identity = identity_of;
  launch.launched_again = &running.again;
  launch.device = running.device;
  if (running.task != nullptr) launch.keep_waiting = task_keeps_waiting;
  simt::record::complete_findings(complete_finding);
  simt::record::complete_launches(&launch_source);
  Repetition repetition(launch, *closure);
  try {
    const RunningKernel here;
    const auto footprint = begin_kernel_footprint();
    if (!launch.unrecorded) launch.footprint = footprint.get();
    simt::run(launch);
    if (!running.again) {
      if (footprint != nullptr) {
        work_accesses(config, name_of(launch.data), key, *closure, launch.footprint);
      }
      repetition.ended_well(name_of(launch.data));
      note_grid(config, name_of(launch.data));
    }
  } catch (const Error& failure) {
    if (running.again) {
      told = layout.last_kernel;
      return cudaSuccess;
    }
    const Refusal& no = running.refused;
    if (no.error != cudaSuccess) return refuse(config, no.error, no.why);
    const cudaError_t error = report_kernel_failure(failure.what());
    set_device_failure(error);
    return error;
  }
  advance_clock(kernel_time(config));
  free_kernels_heap();
  for (; !running.children.empty(); running.children.pop_front()) {
    const Pending& child = running.children.front();
    if (const cudaError_t error = run_now(child.config, child.closure); error != cudaSuccess) {
      return error;
    }
  }
  return cudaSuccess;
}

cudaError_t run_now(const LaunchConfig& config, const SharedClosure& closure) {
  const char* told = nullptr;
  const auto error = run_once(config, closure, told);
  return told == nullptr ? error : run_once(config, closure, told);
}

}  // namespace

void begin_kernel(const char* name) {
  if (!simt::in_kernel()) end_direct_call(name);
  const Unwatched unwatched;
  RunningLaunch& running = running_launch();
  {
    // The first thread has determined the name of a kernel launched by name.
    const std::size_t static_bytes = own_shared_bytes(name);
    const std::size_t limit = dynamic_shared_limit(nullptr, name);
    const Demands* const demands = find_demands(name);
    const dim3 cluster = cluster_of(*running.config, demands);
    static_cast<KernelLayout*>(const_cast<SharedLayout*>(running.layout))->last_kernel = name;
    const std::lock_guard lock(running.mutex);
    if (running.config->shared_bytes + static_bytes > limit) {
      running.refused = {cudaErrorInvalidValue,
                         too_much_shared(*running.config, static_bytes, limit)};
    } else if (Refusal no = unmet(*running.config, demands); no.error != cudaSuccess) {
      running.refused = std::move(no);
    } else if (!same_extent(running.cluster, cluster)) {
      running.again = true;
    } else {
      running.kernel = name;
    }
  }
  if (running.kernel == nullptr) simt::fail("the launch is refused");
}

dim3 cluster_extent() { return running_launch().cluster; }

void run_children() {
  if (!simt::in_kernel()) return;
  RunningLaunch& running = running_launch();
  std::deque<Pending> mine;
  {
    const std::lock_guard lock(running.mutex);
    mine.swap(running.children);
  }
  if (mine.empty()) return;
  // Runs on another OS thread, since this thread's scheduler is busy with the parent.
  std::thread([&] {
    const OnDevice there(running.device);
    for (const Pending& child : mine) remember(run_now(child.config, child.closure));
  }).join();
}

cudaError_t launch(const LaunchConfig& config, Closure given) {
  const SharedClosure closure = own(given);
  if (simt::in_kernel()) {
    RunningLaunch& parent = running_launch();
    const std::lock_guard lock(parent.mutex);
    parent.children.push_back({config, closure});
    return cudaSuccess;
  }
  if (device_failure() != cudaSuccess) return remember(cudaSuccess);
  return submit(config.stream, cudaGraphNodeTypeKernel, [=] { return run_now(config, closure); });
}

}  // namespace rung::cuda

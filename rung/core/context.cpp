// SPDX-License-Identifier: Apache-2.0
// Contexts: available backends and devices, and the workspace that operator calls reuse.
#include "rung/core/context.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "rung/core/cpu_device.hpp"
#include "rung/core/operator.hpp"
#include "rung/core/rates.hpp"
#include "rung/core/tuning.hpp"
#include "rung/core/workspace.hpp"

namespace rung {
namespace {

/// Allocator of the simulated GPU's workspaces; null until it is set. Constant-initialized for the
/// same reason as first_registration.
constinit const detail::WorkspaceAllocator* simulated_workspaces = nullptr;

/// Head of the list of registered backends. Constant-initialized, because static constructors of
/// other files push to it in any order.
constinit const DeviceRegistration* first_registration = nullptr;

constexpr std::size_t workspace_alignment = 4096;
constexpr int max_threads = 4096;

/// Returns the properties of a device. Cached: they never change, and querying them takes
/// milliseconds.
const DeviceInfo& info_of(const DeviceApi& api, int index) {
  static std::mutex guard;
  static std::map<std::pair<Backend, int>, DeviceInfo> known;
  const std::lock_guard lock(guard);
  const std::pair key(api.backend, index);
  const auto found = known.find(key);
  if (found != known.end()) return found->second;
  DeviceInfo info = api.info(index);
  info.rated_index = detail::match_machine(api.backend, info);
  return known.emplace(key, std::move(info)).first->second;
}

const DeviceApi& usable_api(Device device) {
  if (const Availability here = available(device.backend); !here) {
    throw Error(ErrorCode::not_available, here.why);
  }
  const DeviceApi& api = *device_api(device.backend);
  const int count = api.device_count();
  if (device.index < 0 || device.index >= count) {
    throw Error(ErrorCode::invalid_argument,
                std::string(to_string(device.backend)) + " device " + std::to_string(device.index) +
                    " does not exist; accepted: 0 to " + std::to_string(count - 1));
  }
  return api;
}

int checked_threads(int threads) {
  if (threads < 0 || threads > max_threads) {
    throw Error(ErrorCode::invalid_argument, "threads is " + std::to_string(threads) +
                                                 "; accepted: 1 to " + std::to_string(max_threads) +
                                                 ", or 0 for every core this process may use");
  }
  return threads == 0 ? detail::default_threads() : threads;
}

}  // namespace

DeviceRegistration::DeviceRegistration(const DeviceApi& api) noexcept
    : api_(api), next_(first_registration) {
  first_registration = this;
}

const DeviceApi* device_api(Backend backend) {
  if (backend == Backend::cpu) return &detail::cpu_device_api();
  for (const DeviceRegistration* self = first_registration; self != nullptr; self = self->next_) {
    if (self->api_.backend == backend) return &self->api_;
  }
  return nullptr;
}

Availability available(Backend backend) {
  if (!is_backend(backend)) {
    throw Error(ErrorCode::invalid_argument, "backend is " +
                                                 std::to_string(static_cast<int>(backend)) +
                                                 "; accepted: " + backend_names());
  }
  const DeviceApi* api = device_api(backend);
  if (api == nullptr) {
    return {false, std::string("this build of rung has no ") + to_string(backend) + " backend"};
  }
  if (api->device_count() > 0) return {};
  return {false, api->why_not()};
}

void detail::set_simulated_workspaces(const WorkspaceAllocator& allocator) noexcept {
  simulated_workspaces = &allocator;
}

/// Device memory of a context's workspace.
struct Context::Pool {
  explicit Pool(const DeviceApi& device_api, int device_index)
      : api(device_api), index(device_index) {}
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;
  ~Pool() { release_all(); }

  /// Returns true if work that uses the memory may still be enqueued, or captured in a graph, when
  /// an operator call returns. Only on CUDA devices: cpu and simt complete the work in the call,
  /// and OpenCL keeps released buffers until enqueued kernels have finished.
  [[nodiscard]] bool asynchronous() const { return api.backend == Backend::cuda; }

  /// Returns true if each request gets memory of its own, of exactly the requested size.
  [[nodiscard]] bool exact() const {
    return api.backend == Backend::simt && simulated_workspaces != nullptr;
  }

  void release_all() noexcept {
    for (void* block : blocks) {
      if (api.backend == Backend::cpu) {
        detail::release_workspace(block);
      } else if (exact()) {
        simulated_workspaces->release(block);
      } else {
        api.release(index, block);
      }
    }
    blocks.clear();
  }

  /// Allocates `bytes` bytes aligned to workspace_alignment.
  void* allocate(std::size_t bytes) {
    blocks.reserve(blocks.size() + 1);  // so that push_back() cannot throw after the allocation
    if (api.backend == Backend::cpu) {
      blocks.push_back(detail::allocate_workspace(bytes));
      return blocks.back();
    }
    if (exact()) {
      blocks.push_back(simulated_workspaces->allocate(bytes));
      return blocks.back();
    }
    blocks.push_back(api.allocate(index, bytes + workspace_alignment));
    const auto address = reinterpret_cast<std::uintptr_t>(blocks.back());
    return reinterpret_cast<void*>((address + workspace_alignment - 1) &
                                   ~(workspace_alignment - 1));
  }

  const DeviceApi& api;
  int index;
  std::vector<void*> blocks;
};

Context::Context(Device device, int threads, void* stream)
    : device_(device),
      threads_(threads),
      tuning_(detail::default_tuning()),
      logs_calls_(detail::calls_are_logged()),
      stream_(stream) {
  const DeviceApi& api = usable_api(device);
  info_ = &info_of(api, device.index);
  pool_ = new Pool(api, device.index);
}

Context Context::cpu(int threads) {
  return Context({Backend::cpu, 0}, checked_threads(threads), nullptr);
}
Context Context::cuda(int device, void* stream) {
  return Context({Backend::cuda, device}, 1, stream);
}
Context Context::simt() { return on(Backend::simt); }
Context Context::opencl(int platform, int device) {
  if (const Availability here = available(Backend::opencl); !here) {
    throw Error(ErrorCode::not_available, here.why);
  }
  return on_device({Backend::opencl, device_api(Backend::opencl)->index_of(platform, device)});
}
Context Context::on(Backend backend, int threads) {
  const int count = checked_threads(threads);
  return Context({backend, 0}, in_host_memory(backend) ? count : 1, nullptr);
}
Context Context::on_device(Device device) {
  return Context(device, in_host_memory(device.backend) ? checked_threads(0) : 1, nullptr);
}

Context::Context(Context&& other) noexcept { *this = std::move(other); }

Context& Context::operator=(Context&& other) noexcept {
  if (this == &other) return *this;
  release();
  device_ = other.device_;
  threads_ = other.threads_;
  choice_ = other.choice_;
  tuning_ = other.tuning_;
  logs_calls_ = other.logs_calls_;
  stream_ = other.stream_;
  info_ = other.info_;
  pool_ = std::exchange(other.pool_, nullptr);
  workspace_ = std::exchange(other.workspace_, nullptr);
  capacity_ = std::exchange(other.capacity_, 0);
  // Memos belong to the context that created them.
  memos_ = std::exchange(other.memos_, nullptr);
  return *this;
}

Context::~Context() { release(); }

Context::Pool& Context::pool() const {
  if (pool_ == nullptr) {
    throw Error(ErrorCode::invalid_argument,
                "the context has been moved from; use the one it was moved to");
  }
  return *pool_;
}

void Context::forget() noexcept {
  while (memos_ != nullptr) delete std::exchange(memos_, memos_->next);
}

/// Memos are released first, since they may own streams, and work that uses the workspace.
void Context::release() noexcept {
  forget();
  delete std::exchange(pool_, nullptr);
}

void Context::set_choice(Choice choice) {
  if (choice != Choice::repeatable && choice != Choice::fastest) {
    throw Error(ErrorCode::invalid_argument, "choice is " +
                                                 std::to_string(static_cast<int>(choice)) +
                                                 "; accepted: repeatable, fastest");
  }
  require_idle("set_choice");
  // The memos hold rungs chosen by the previous rule.
  if (choice != choice_ && backend() == Backend::cpu) forget();
  choice_ = choice;
}

void Context::set_tuning(Tuning tuning) {
  if (tuning != Tuning::off && tuning != Tuning::remembered && tuning != Tuning::first_call) {
    throw Error(ErrorCode::invalid_argument, "tuning is " +
                                                 std::to_string(static_cast<int>(tuning)) +
                                                 "; accepted: off, remembered, first_call");
  }
  require_idle("set_tuning");
  // On a GPU a captured graph may still use the memos' memory, so they are kept: the new setting
  // applies to an operator only when a call differs from its last one.
  if (tuning != tuning_ && !pool().asynchronous()) forget();
  tuning_ = tuning;
}

void Context::require_idle(const char* function) const {
  if (__atomic_load_n(&user_, __ATOMIC_RELAXED) == nullptr) return;
  throw Error(ErrorCode::invalid_argument,
              std::string(function) + ": the context is in a call; accepted: between two calls");
}

void detail::ContextUse::throw_in_use() {
  throw Error(ErrorCode::invalid_argument,
              "the context is in use by another thread; accepted: a context for each thread");
}

void* Context::grow(std::size_t bytes) {
  // No allocator provides more, and sums with it do not overflow.
  constexpr std::size_t most = PTRDIFF_MAX;
  if (bytes > most - workspace_alignment) {
    throw Error(ErrorCode::out_of_memory,
                "a workspace of " + std::to_string(bytes) + " bytes cannot be");
  }
  std::size_t wanted =
      (bytes + workspace_alignment - 1) / workspace_alignment * workspace_alignment;
  Pool& pool = this->pool();
  if (pool.asynchronous()) {
    // Old blocks are kept, so growth is geometric: together they are smaller than the newest block.
    wanted = std::max(wanted, std::min(capacity_, most / 2) * 2);
  } else {
    // Nothing refers to the old blocks any more. Releasing them first keeps the peak at the
    // requested size.
    pool.release_all();
    workspace_ = nullptr;
    capacity_ = 0;
  }
  // The capacity stays 0, so that every request gets here.
  if (pool.exact()) return pool.allocate(bytes);
  workspace_ = pool.allocate(wanted);
  capacity_ = wanted;
  return workspace_;
}

void Context::synchronize() { pool().api.synchronize(device_.index, stream_); }

NominalRates nominal_rates(const Context& context) {
  const DeviceInfo& info = context.info();
  if (context.backend() == Backend::cpu) {
    // Per core: one 512-bit or two 256-bit f32 multiply-adds per cycle at about 2.5 GHz, and a
    // share of the memory bandwidth.
    constexpr double operations_a_core = 80e9;
    constexpr double bytes_a_core = 10e9;
    return {bytes_a_core * context.threads(), operations_a_core * context.threads()};
  }
  // 128 f32 multiply-adds per SM and cycle at 1.7 GHz; bandwidth by generation: H200, A100, older.
  const double operations = 128.0 * 2 * 1.7e9 * info.sms;
  const double bytes = info.compute_capability >= 90   ? 4.8e12
                       : info.compute_capability >= 80 ? 2.0e12
                                                       : 0.6e12;
  return {bytes, operations};
}

}  // namespace rung

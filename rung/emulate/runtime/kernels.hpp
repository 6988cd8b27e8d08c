// SPDX-License-Identifier: Apache-2.0
// Properties of kernels, and the layout of their static shared memory.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rung/emulate/runtime/api.hpp"
#include "rung/simt/record/request.hpp"

namespace rung::simt::record {
struct Finding;
struct Memory;
}  // namespace rung::simt::record

namespace rung::cuda {

/// A shared variable, by its name in the program.
struct SharedName {
  std::string_view name;
  const char* type = nullptr;  // mangled
  std::size_t bytes = 0, begin = 0;
};

/// Offsets of the shared variables that a kernel uses. Variables declared in the kernel itself are
/// placed first and together, so that their size is known from the first thread on; variables of
/// called functions are placed at first use.
class KernelLayout : public SharedLayout {
 public:
  KernelLayout();
  KernelLayout(const KernelLayout&) = delete;
  KernelLayout& operator=(const KernelLayout&) = delete;

  /// Returns the variable's offset; assigns an offset at first use. If the size grows, calls
  /// grown(before, after) before any thread can see the offset.
  unsigned place(int variable, const char* kernel,
                 const std::function<void(std::size_t before, std::size_t after)>& grown);
  [[nodiscard]] std::size_t used() const { return used_; }
  /// Finds the variable that contains the byte at `offset`. Returns false if there is none.
  bool variable_at(std::size_t offset, SharedName& found) const;
  /// Kernel of this launch site's last launch, as a prediction for the next launch; null: no launch
  /// yet.
  std::atomic<const char*> last_kernel{nullptr};

 private:
  std::mutex mutex_;
  std::vector<unsigned> table_;
  std::size_t used_ = 0;
};

/// Excludes accesses by the runtime on this thread from recording, during the object's lifetime.
class Unwatched {
 public:
  Unwatched() : last_(std::exchange(simt::record::tracer.last, nullptr)) {}
  ~Unwatched() { simt::record::tracer.last = last_; }
  Unwatched(const Unwatched&) = delete;
  Unwatched& operator=(const Unwatched&) = delete;

 private:
  simt::record::Step* last_;
};

inline std::size_t align_up(std::size_t value, std::size_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}
/// Returns the total size of the program's shared variables, an upper bound for each kernel.
std::size_t all_shared_bytes();
/// Returns the maximum alignment over the program's shared variables.
std::size_t max_shared_alignment();
/// Returns the size of the shared variables declared in this kernel itself.
std::size_t own_shared_bytes(const char* kernel);

/// Ends a program that calls this kernel like a function.
[[noreturn]] void end_direct_call(const char* kernel);

/// Adds launch information about `memory` (null: shared memory) to a finding.
void complete_finding(const LaunchConfig& config, const KernelLayout& layout,
                      std::size_t static_begin, const simt::record::Memory* memory,
                      simt::record::Finding& finding);

/// Returns the program or library that contains this code or constant; null if there is none.
const void* object_of(const void* data);
/// Returns the kernel at this address; null if none is registered.
const KernelEntry* find_kernel(const void* code);
/// Returns the requirements of the kernel with this mangled name; null if none are registered.
const Demands* find_demands(const char* kernel);
/// Returns the requirements of a kernel with several `__restrict__` parameters, else null.
const Demands* find_restricted(const char* kernel);
/// Returns the limit of dynamic shared memory set by cudaFuncSetAttribute.
std::size_t dynamic_shared_limit(const void* code, const char* kernel);
/// Returns true if cudaFuncSetAttribute has allowed nonportable cluster sizes (more than 8 blocks).
bool wide_clusters(const void* code, const char* kernel);

/// Returns a readable name, "reduce<float>", for the mangled name of a kernel.
std::string plain_name(const char* mangled);

/// Returns the number of blocks of this shape that fit on one SM.
int resident_blocks(std::size_t threads, std::size_t shared_bytes);

}  // namespace rung::cuda

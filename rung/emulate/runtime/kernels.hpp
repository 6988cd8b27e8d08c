// SPDX-License-Identifier: Apache-2.0
// What is known of kernels and their static shared memory.
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

/// What a program calls a shared variable.
struct SharedName {
  std::string_view name;
  const char* type = nullptr;  // mangled
  std::size_t bytes = 0, begin = 0;
};

/// Where the shared variables lie that a kernel has been seen to use. Variables that its functions
/// declare directly are placed first and at once, so that its size is known from its first thread
/// on; those of functions that it calls follow as they are met.
class KernelLayout : public SharedLayout {
 public:
  KernelLayout();
  KernelLayout(const KernelLayout&) = delete;
  KernelLayout& operator=(const KernelLayout&) = delete;

  /// The variable's offset, placed now if it was not. If that takes room, grown(before, after) is
  /// called before any thread can see the offset.
  unsigned place(int variable, const char* kernel,
                 const std::function<void(std::size_t before, std::size_t after)>& grown);
  [[nodiscard]] std::size_t used() const { return used_; }
  /// The variable that holds this byte; whether there is one.
  bool variable_at(std::size_t offset, SharedName& found) const;
  /// The kernel of this launch site's last launch, a guess for the next; null: none yet.
  std::atomic<const char*> last_kernel{nullptr};

 private:
  std::mutex mutex_;
  std::vector<unsigned> table_;
  std::size_t used_ = 0;
};

/// What this thread does while one exists is the runtime's own: not recorded as the kernel's.
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
/// Bytes of all shared variables of the program: no kernel can need more.
std::size_t all_shared_bytes();
/// The largest alignment of any shared variable of the program.
std::size_t max_shared_alignment();
/// Bytes of those that this kernel declares itself.
std::size_t own_shared_bytes(const char* kernel);

/// Ends the program, which calls this kernel as a function.
[[noreturn]] void end_direct_call(const char* kernel);

/// Adds to a finding what the launch tells of the memory, null: shared memory.
void complete_finding(const LaunchConfig& config, const KernelLayout& layout,
                      std::size_t static_begin, const simt::record::Memory* memory,
                      simt::record::Finding& finding);

/// The program or library that holds this code or constant; null: none does.
const void* object_of(const void* data);
/// The kernel at this address; null when no such kernel has been registered.
const KernelEntry* find_kernel(const void* code);
/// What the kernel of this mangled name demands; null: no such kernel has told.
const Demands* find_demands(const char* kernel);
/// The same where it has several `__restrict__` parameters, else null.
const Demands* find_restricted(const char* kernel);
/// What cudaFuncSetAttribute has set.
std::size_t dynamic_shared_limit(const void* code, const char* kernel);
/// Whether it has allowed clusters that not every device runs, of more than 8 blocks.
bool wide_clusters(const void* code, const char* kernel);

/// "reduce<float>" of the mangled name of a kernel's function.
std::string plain_name(const char* mangled);

/// Blocks of this shape that one SM holds.
int resident_blocks(std::size_t threads, std::size_t shared_bytes);

}  // namespace rung::cuda

// SPDX-License-Identifier: Apache-2.0
// Host interface of the simulated GPU: launches kernels, sets the order in which their threads run,
// and queries the simulated device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "rung/core/export.hpp"
#include "rung/simt/types.hpp"

namespace rung::simt {

namespace record {
class Footprint;
}

/// Summary of a recorded launch, for a caller that decides which launches to record.
struct LaunchSummary {
  std::uint64_t requests = 0;         // of all warps
  std::uint64_t findings = 0;         // findings of this launch, including repeated ones
  std::vector<const void*> written;   // base addresses of the registered memory that was written
  std::uint64_t blocks_left_out = 0;  // blocks that were not recorded
};

/// A type-erased launch. `entry(arguments)` runs the kernel for one thread.
struct Launch {
  dialect::dim3 grid;
  dialect::dim3 block;
  std::size_t shared_bytes = 0;
  bool cooperative = false;  // all blocks are co-resident, so that the grid may synchronize
  dialect::dim3 cluster;     // extent of a cluster; divides the grid
  int device = 0;            // device number
  int os_threads = 1;        // upper limit; results do not depend on it
  void (*entry)(const void* arguments) = nullptr;
  const void* arguments = nullptr;
  std::size_t argument_bytes = 0;  // size of the arguments, which a kernel may read
  const void* kernel = nullptr;    // the kernel's code address, which gives its name
  /// Addressable bytes of a block's shared memory: the dynamic part, followed by the static
  /// variables of ordinary programs. At least shared_bytes (0: equal to shared_bytes); untouched
  /// pages cost no memory.
  std::size_t shared_room = 0;
  /// Bounds of the gap between dynamic and static shared memory, which no thread may access.
  std::size_t shared_gap_begin = 0;
  std::size_t shared_gap_end = 0;  // 0: no gap
  /// Bytes of shared_room in use so far, if known; null: all.
  const std::size_t* shared_in_use = nullptr;
  void* data = nullptr;  // private data of the launcher; kernels read it as launch_data
  std::string (*name)(const void* data) = nullptr;  // kernel name, if `kernel` is not a function
  /// Returns an address that identifies the kernel after it has run; null: `kernel` identifies it.
  const void* (*identity)(const void* data) = nullptr;
  /// Returns true if an agent outside the kernel may still write the polled memory; may wait
  /// briefly for such a write. Called when all threads poll without a change. If null or false, the
  /// launch fails as a deadlock.
  bool (*keep_waiting)(const void* data) = nullptr;
  /// Set by the kernel's first threads if the launch has failed immediately and will be repeated in
  /// another form; such a launch is not recorded. Null: never repeated.
  const bool* launched_again = nullptr;
  /// Excluded from recording, even while a session runs.
  bool unrecorded = false;
  /// Runs instead of `entry` in blocks that block sampling (record/block_sampling.hpp) leaves out
  /// of the record; null: every block is recorded.
  void (*unrecorded_entry)(const void* arguments) = nullptr;
  /// Filled in when a recorded launch ends, if not null.
  LaunchSummary* summary = nullptr;
  /// Receives the bytes of global memory that the launch accesses, if not null.
  record::Footprint* footprint = nullptr;
};

/// Runs a launch to its end. Throws rung::Error(device) that names kernel, block and thread if the
/// kernel misuses a barrier, deadlocks or fails an assertion; an exception that escapes the kernel
/// is nested in such an Error. The failing block is abandoned without unwinding its other threads,
/// as on a GPU.
RUNG_API void run(const Launch& launch);

/// Order in which blocks, and the runnable threads of a block, are scheduled. A correct kernel
/// gives the same result under every order.
struct RUNG_API ThreadOrder {
  enum class Kind : std::uint8_t { forward, reverse, random };
  Kind kind = Kind::forward;
  std::uint64_t seed = 0;

  /// Parses "forward", "reverse", "random" or "random:SEED"; throws Error(invalid_argument).
  static ThreadOrder parse(std::string_view text);
  [[nodiscard]] std::string to_string() const;
  // Not defaulted: programs of `rung emulate` may be compiled as C++17.
  bool operator==(const ThreadOrder& other) const {
    return kind == other.kind && seed == other.seed;
  }
};
/// Sets the order of later launches by any thread of the process. The default is the environment
/// variable RUNG_SIMT_ORDER, or forward.
RUNG_API void set_thread_order(ThreadOrder order);
RUNG_API ThreadOrder thread_order();

/// Returns the demangled name of the function at this address, such as "rung::(anonymous
/// namespace)::copy_kernel"; "kernel" if the binary is stripped.
RUNG_API std::string symbol_name(const void* code);

/// Returns the kernel's name for use in messages.
RUNG_API std::string kernel_name(const Launch& launch);
/// Returns true if the calling OS thread is running a kernel.
RUNG_API bool in_kernel();

/// Sets the stack size of simulated threads for stacks created later. The default is 64 KiB.
RUNG_API void set_stack_bytes(std::size_t bytes);

/// Returns "file:line" of an instruction if the program has line information, else "".
RUNG_API std::string source_line(const void* code);

/// Returns the block's dynamic shared memory.
RUNG_API void* shared_memory();
RUNG_API std::size_t shared_memory_size();
/// Returns the addressable bytes of shared memory, static variables included.
RUNG_API std::size_t shared_memory_room();

/// A live allocation of the simulated device; size 0 if there is none.
struct Allocation {
  std::byte* begin = nullptr;
  std::size_t size = 0;
};
RUNG_API Allocation find_allocation(const void* address);

}  // namespace rung::simt

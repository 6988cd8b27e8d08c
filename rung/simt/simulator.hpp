// SPDX-License-Identifier: Apache-2.0
// The simulated GPU as host code sees it: launching a kernel, choosing the order in which its
// threads run, and the limits of the device it stands for.
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

/// What a recorded launch did, for a caller that decides which launches to record.
struct LaunchSummary {
  std::uint64_t requests = 0;         // of all warps
  std::uint64_t findings = 0;         // a finding counts once for each launch that repeats it
  std::vector<const void*> written;   // where the registered memory begins that was written
  std::uint64_t blocks_left_out = 0;  // that were not recorded
};

/// One launch with its types erased. `entry(arguments)` calls the kernel once, for one thread.
struct Launch {
  dialect::dim3 grid;
  dialect::dim3 block;
  std::size_t shared_bytes = 0;
  bool cooperative = false;  // every block resident, so that the grid may synchronize
  dialect::dim3 cluster;     // blocks that are resident together; divides the grid
  int device = 0;            // its number, where there are several
  int os_threads = 1;        // at most so many; results do not depend on it
  void (*entry)(const void* arguments) = nullptr;
  const void* arguments = nullptr;
  std::size_t argument_bytes = 0;  // which a kernel may read, of whatever memory
  const void* kernel = nullptr;    // its code, from which its name is looked up
  /// What follows the dynamic shared memory: static variables of ordinary programs. At least
  /// shared_bytes are there; so many more may be addressed (only what is touched costs memory).
  std::size_t shared_room = 0;
  /// Nothing may access what is between dynamic and static shared memory, from here to there.
  std::size_t shared_gap_begin = 0;
  std::size_t shared_gap_end = 0;  // 0: there is no gap
  /// So much of it is in use by now, where that is known; null: all.
  const std::size_t* shared_in_use = nullptr;
  void* data = nullptr;  // the launcher's own; kernels read it as launch_data
  std::string (*name)(const void* data) = nullptr;  // of the kernel, where `kernel` is no function
  /// What tells this kernel from others once it has run, where `kernel` does not; null: it does.
  const void* (*identity)(const void* data) = nullptr;
  /// Asked where every thread looks at memory in vain, again and again: whether somebody outside
  /// may yet write there, for whom it may wait a little. Null, or no: the launch is a deadlock.
  bool (*keep_looking)(const void* data) = nullptr;
  /// Set by the kernel's first threads: what was launched is not recorded, since it failed at once
  /// and will be launched again otherwise. Null: never.
  const bool* launched_again = nullptr;
  /// Not to be recorded, even while a session runs.
  bool unrecorded = false;
  /// Runs in place of `entry` in blocks that repeat others of a recorded launch and are not recorded
  /// (record/block_sampling.hpp); null: every block is recorded.
  void (*unrecorded_entry)(const void* arguments) = nullptr;
  /// Filled in when a recorded launch has ended; null: nobody asks.
  LaunchSummary* summary = nullptr;
  /// Likewise: the bytes of global memory that it accesses.
  record::Footprint* footprint = nullptr;
};

/// Runs the whole launch. Throws rung::Error(device) that names the kernel, block and thread when
/// the kernel misuses a barrier, deadlocks or fails an assertion; an exception that escapes the
/// kernel arrives nested in such an Error. The failing block is abandoned without unwinding its
/// other threads, as on a chip.
RUNG_API void run(const Launch& launch);

/// The order in which runnable threads of a block, and blocks, take turns. A correct kernel gives
/// the same result under each.
struct RUNG_API ThreadOrder {
  enum class Kind : std::uint8_t { forward, reverse, random };
  Kind kind = Kind::forward;
  std::uint64_t seed = 0;

  /// Reads "forward", "reverse", "random" or "random:SEED"; throws Error(invalid_argument).
  static ThreadOrder parse(std::string_view text);
  [[nodiscard]] std::string to_string() const;
  // Spelled out: programs of `rung emulate` may be compiled as C++17.
  bool operator==(const ThreadOrder& other) const {
    return kind == other.kind && seed == other.seed;
  }
};
/// For launches from now on, of every thread of the process. Before the first call it is what the
/// environment variable RUNG_SIMT_ORDER says, or forward.
RUNG_API void set_thread_order(ThreadOrder order);
RUNG_API ThreadOrder thread_order();

/// Name of the function at this address, demangled: "rung::(anonymous namespace)::copy_kernel";
/// "kernel" when the binary is stripped.
RUNG_API std::string symbol_name(const void* code);

/// The kernel's name as messages tell it.
RUNG_API std::string kernel_name(const Launch& launch);
/// Returns whether the calling OS thread is running a kernel now.
RUNG_API bool in_kernel();

/// Bytes of stack that each simulated thread has, from the next new stack on. 64 KiB at first.
RUNG_API void set_stack_bytes(std::size_t bytes);

/// "file:line" of an instruction of a program with line information; "" where there is none.
RUNG_API std::string source_line(const void* code);

/// The block's dynamic shared memory and its size.
RUNG_API void* shared_memory();
RUNG_API std::size_t shared_memory_size();
/// All of it that may be addressed, static variables included.
RUNG_API std::size_t shared_memory_room();

/// The live allocation of the simulated device that holds this address; size 0: none does.
struct Allocation {
  std::byte* begin = nullptr;
  std::size_t size = 0;
};
RUNG_API Allocation find_allocation(const void* address);

}  // namespace rung::simt

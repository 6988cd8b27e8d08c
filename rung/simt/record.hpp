// SPDX-License-Identifier: Apache-2.0
// Recording of kernels on the simulated GPU: counters per source line, named after Nsight
// Compute's, and checks: data races, out-of-bounds accesses, reads of uninitialized memory.
//
//   record::begin({.counters = true, .checks = true});
//   ... launches ...
//   const record::Report report = record::end();
//   for (const record::Finding& f : report.findings) ...
//   std::puts(record::to_json(report).c_str());
//
// One session at a time per process. Only code compiled with hooks is recorded
// (docs/simulated-gpu.md lists the options); operations of the simulator always are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rung/core/export.hpp"
#include "rung/simt/limits.hpp"
#include "rung/simt/record/counters.hpp"
#include "rung/simt/simulator.hpp"
#include "rung/simt/types.hpp"

namespace rung::simt::record {

struct Finding;

/// A GPU, as the cache model needs it; the default is the simulated one, an H200.
struct Chip {
  int multiprocessors = simt::multiprocessors;
  int threads = threads_per_multiprocessor;  // resident threads per SM
  int blocks = blocks_per_multiprocessor;
  std::size_t l1_bytes = 256 << 10;  // per SM, shared memory included
  // Sizes that shared memory may take of it, ascending.
  std::vector<std::size_t> carveouts = {0,         8 << 10,   16 << 10,  32 << 10,  64 << 10,
                                        100 << 10, 132 << 10, 164 << 10, 196 << 10, 228 << 10};
  std::size_t shared_reserved = shared_bytes_reserved;  // per block, for the system
  std::size_t l2_bytes = simt::l2_bytes;
};

struct Options {
  bool counters = true;
  bool checks = true;  // races, bounds, alignment, uninitialized reads, leaks
  Chip chip = {};      // the GPU whose caches are modeled if `counters`
  bool leaks = false;  // memory that is still allocated at end() is a finding
  // Order of the session's launches; the default leaves it unchanged.
  std::optional<ThreadOrder> order = {};
  // Called for each new finding, by the thread that detected it; may be null.
  void (*on_finding)(const Finding& finding) = nullptr;
};

/// Kind of a finding, named as in the JSON: to_string(Kind::use_after_free) is "use_after_free".
enum class Kind : std::uint8_t {
  race,
  out_of_bounds,
  misaligned,
  use_after_free,
  read_only,
  leak,
  uninitialized,
  barrier,
  warp_sync,
  deadlock,
  launch,
  host_access,  // host code accesses device memory
  api_call,     // a runtime call failed and the program never checks for it
  overlap,      // memory that is written is accessed through two __restrict__ parameters
  stream_order  // work of two streams, or of a stream and the host, that is not ordered
};
enum class Space : std::uint8_t { shared, global, local, constant };
RUNG_API const char* to_string(Kind kind);
RUNG_API const char* to_string(Space space);

/// The array that a finding concerns, as far as the launching program shows it.
struct Object {
  std::string name;               // "tile"; "": unknown
  std::string type;               // of the array, or a pointer's target type; mangled until end()
  std::size_t element_bytes = 0;  // 0: unknown
  std::vector<std::size_t> extents;  // of the array, by dimension; empty: unknown
  std::uint64_t bytes = 0;           // of the whole array
  std::int64_t offset = 0;           // of the access, in bytes
  int parameter = -1;                // the kernel parameter that points to it
  bool dynamic = false;              // dynamic shared memory
  std::string allocated;             // "cudaMalloc'ed at file:line"; "": unknown
};

/// Relations between the threads that raced, over all launches.
struct Racers {
  bool within_warp = false, across_warps = false, across_blocks = false;
  bool both_write = false;
  bool same_thread = false;  // of different blocks
  bool one_warp = true;      // every block had a single warp

  /// Accumulates the relations of other races.
  RUNG_API Racers& operator|=(const Racers& others);
};

/// A change of the source that fixes a finding, for programs; docs/emulate.md defines the kinds.
struct Fix {
  std::string kind;
  std::string file;
  int line = 0;
  std::string from, text;  // text to be replaced, and its replacement
};

/// A defect; reported once for each (kind, line, other line).
struct Finding {
  Kind kind = Kind::race;
  Space space = Space::global;
  std::string kernel;      // demangled; "" for host code
  std::string file;        // of the access; "" if unknown
  int line = 0;            // 0: unknown
  std::string other_file;  // of the other side: the racing access, the allocation ...
  int other_line = 0;      // 0: there is none
  dialect::uint3 block{};
  dialect::uint3 thread{};
  dialect::uint3 other_block{};  // for the other side of a race
  dialect::uint3 other_thread{};
  std::string message;      // one sentence: what happened, in which thread
  std::string advice;       // one line: how to fix it
  std::vector<Fix> fixes;   // the advice for programs; empty if it is not mechanical
  std::uint64_t times = 1;  // launches that had it
  Object object;
  std::string object_text;  // the object's name in the message
  Racers racers;            // for a race
  /// The launch: integer arguments by parameter number, the block extent and the call site.
  std::vector<std::pair<int, std::int64_t>> integers;
  dialect::dim3 block_extent;
  std::string launch_file;
  int launch_line = 0;
  // The kernel is a library's, whose source lines do not concern the program.
  bool in_library = false;
};

/// A kernel of which some launches, or some blocks of recorded launches, were not recorded.
struct PartlyRecorded {
  std::string kernel;
  std::uint64_t launches = 0;
  std::uint64_t recorded = 0;
  std::uint64_t first = 0;  // launches from its first one on that were recorded without a gap
  // Blocks of the recorded launches that skipped some; 0: no launch did.
  std::uint64_t blocks = 0;
  std::uint64_t recorded_blocks = 0;
};

struct Report {
  std::vector<Finding> findings;                // in order of first occurrence
  std::vector<Kernel> kernels;                  // in order of first launch
  std::vector<PartlyRecorded> partly_recorded;  // filled in by the code that selects launches
};

/// Begins a session. Throws Error(internal) if one is active.
RUNG_API void begin(const Options& options = {});
/// Ends the session and returns its report. Throws Error(internal) if none is active.
RUNG_API Report end();
/// Returns the report since begin() or the last take(), and continues the session with or without
/// `counters`. No launch may run meanwhile. Throws Error(internal) if no session is active.
RUNG_API Report take(bool counters);
[[nodiscard]] RUNG_API bool active();
[[nodiscard]] RUNG_API bool checking();
/// Adds a finding from elsewhere (a failed launch, a double free) to the session, if one is active.
RUNG_API void add(Finding finding);
/// Restarts the session in a child process and treats current allocations as old: the parent
/// reports what came before.
RUNG_API void forget();
/// Returns the findings so far without ending the session.
[[nodiscard]] RUNG_API std::vector<Finding> findings_so_far();

/// Returns the report as JSON; `fields_only`: "findings" and "kernels" as fields of an object,
/// without its braces.
RUNG_API std::string to_json(const Report& report, bool fields_only = false);
/// Returns a finding as text, one paragraph each.
RUNG_API std::string to_text(const Finding& finding);
RUNG_API std::string to_text(const PartlyRecorded& kernel);

/// Returns the working directory in which the process started.
RUNG_API const std::string& start_folder();
/// Returns a file's name as findings and counters show it: relative to that directory if the file
/// is below it, else absolute.
RUNG_API std::string shown_path(std::string_view file);

struct Memory;
/// Completes a finding's description (object, launch ...) from the launcher's data: `data` is
/// Launch::data, `memory` null for shared memory.
using Completer = void (*)(const void* data, const Memory* memory, Finding& finding);
RUNG_API void complete_findings(Completer completer);

/// Source location of an access.
struct Source {
  std::string file;
  int line = 0;    // 0: unknown
  int column = 0;  // likewise
  // False: all that is known is a location in our own or the system's headers.
  bool of_a_kernel = true;
};
/// A kernel's `__restrict__` parameter, and the pointer that a launch passes for it.
struct RestrictedParameter {
  int number = -1;  // -1: not known
  std::string name;
  const void* pointer = nullptr;
  std::size_t element_bytes = 0;  // 0: unknown
};
/// Callbacks by which a launcher describes kernel sources and launches. `data` is Launch::data.
struct LaunchSource {
  /// Returns the base addresses of registered memory to which several arguments of the launch
  /// point.
  std::vector<const void*> (*shared_memory)(const void* data);
  /// Returns the parameter through which the code at this location reads or writes memory; called
  /// by the kernel's threads.
  RestrictedParameter (*parameter_of)(const void* data, const Source& place, bool writes);
  /// Returns where the program calls the library function that launches; line 0: the program
  /// launches directly.
  Source (*library_call)(const void* data);
};
RUNG_API void complete_launches(const LaunchSource* source);
/// Returns the source location of the call that precedes this code address.
RUNG_API Source place_of(const void* behind_call);

// --- memory that kernels may access --------------------------------------------------------------
// Code that passes memory to kernels registers it, with or without a session. Memory that is not
// registered is out of bounds. The device's own allocations (Context, Tensor) register themselves.

struct Memory {
  const void* begin = nullptr;
  std::size_t bytes = 0;
  Space space = Space::global;  // global or constant
  bool initialized = true;      // false: freshly allocated, filled with simt::poison
  // Also through pointers: bytes that differ from poison count as written.
  bool host_writes = false;
  bool freed_by_hand = false;  // reported as a leak if it is never unregistered
  std::string name;            // "cudaMalloc", a symbol's name; shown in findings
  std::string file;            // where it was allocated, if known
  int line = 0;
  const void* code = nullptr;   // or the code address behind the allocating call
  const void* freed = nullptr;  // code address behind the freeing call; null: unknown, or not freed
  // Bit masks of the devices (Launch::device) whose kernels may access it.
  std::uint64_t readers = ~std::uint64_t{0}, writers = ~std::uint64_t{0};
};
RUNG_API void register_memory(Memory memory);
/// Marks the memory as freed: later accesses are use after free until the addresses are registered
/// again. Returns true if registered memory begins there; otherwise the call is a double free or
/// the pointer was never allocated. `code`: address behind the freeing call, if known.
RUNG_API bool unregister_memory(const void* begin, const void* code = nullptr);
/// Returns the registered memory that holds this address; bytes 0: none.
[[nodiscard]] RUNG_API Memory find_memory(const void* address);
/// Changes which devices may access the memory registered there.
RUNG_API void allow_devices(const void* begin, std::uint64_t readers, std::uint64_t writers);
/// Marks bytes as written, for copies and memset by the host.
RUNG_API void mark_initialized(const void* begin, std::size_t bytes);
/// Marks the whole registered memory that holds this address as written; null: all registered
/// memory.
RUNG_API void mark_whole_initialized(const void* address);
RUNG_API void mark_uninitialized(const void* begin, std::size_t bytes);
/// Returns true if none of these bytes of registered memory has been written.
[[nodiscard]] RUNG_API bool never_written(const void* begin, std::size_t bytes);
/// Copies the initialized bits of `from` to `to`, for a copy between device memories.
RUNG_API void copy_initialized(const void* to, const void* from, std::size_t bytes);

}  // namespace rung::simt::record

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

/// Properties of a GPU for the cache model; the default is the simulated GPU, an H200.
struct Chip {
  int multiprocessors = simt::multiprocessors;
  int threads = threads_per_multiprocessor;  // resident threads per SM
  int blocks = blocks_per_multiprocessor;
  std::size_t l1_bytes = 256 << 10;  // per SM, shared memory included
  // Possible sizes of the shared memory carved out of `l1_bytes`, ascending.
  std::vector<std::size_t> carveouts = {0,         8 << 10,   16 << 10,  32 << 10,  64 << 10,
                                        100 << 10, 132 << 10, 164 << 10, 196 << 10, 228 << 10};
  std::size_t shared_reserved = shared_bytes_reserved;  // per block, for the system
  std::size_t l2_bytes = simt::l2_bytes;
};

struct Options {
  bool counters = true;
  bool checks = true;  // races, bounds, alignment, uninitialized reads, leaks
  Chip chip = {};      // the GPU whose caches are modeled if `counters`
  bool leaks = false;  // report memory that is still allocated at end()
  // Order of the session's launches; null: unchanged.
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
  api_call,     // a runtime call failed and the program ignores the error
  overlap,      // memory written through one __restrict__ parameter and accessed through another
  stream_order  // unordered work of two streams, or of a stream and the host
};
enum class Space : std::uint8_t { shared, global, local, constant };
RUNG_API const char* to_string(Kind kind);
RUNG_API const char* to_string(Space space);

/// Array that a finding concerns, as far as known from the launching program.
struct Object {
  std::string name;                  // "tile"; "": unknown
  std::string type;                  // element type, or target of a pointer; mangled until end()
  std::size_t element_bytes = 0;     // 0: unknown
  std::vector<std::size_t> extents;  // of the array, by dimension; empty: unknown
  std::uint64_t bytes = 0;           // of the whole array
  std::int64_t offset = 0;           // of the access, in bytes
  int parameter = -1;                // number of the kernel parameter that points to it; -1: none
  bool dynamic = false;              // dynamic shared memory
  std::string allocated;             // "cudaMalloc'ed at file:line"; "": unknown
};

/// Relations between the racing threads, over all launches.
struct Racers {
  bool within_warp = false, across_warps = false, across_blocks = false;
  bool both_write = false;
  bool same_thread = false;  // the same thread index, in different blocks
  bool one_warp = true;      // every block had a single warp

  /// Accumulates the relations of other races.
  RUNG_API Racers& operator|=(const Racers& others);
};

/// A machine-readable source change that fixes a finding; docs/emulate.md defines the kinds.
struct Fix {
  std::string kind;
  std::string file;
  int line = 0;
  std::string from, text;  // text to be replaced, and its replacement
};

/// A defect; reported once per (kind, line, other line).
struct Finding {
  Kind kind = Kind::race;
  Space space = Space::global;
  std::string kernel;      // demangled; "" for host code
  std::string file;        // of the access; "" if unknown
  int line = 0;            // 0: unknown
  std::string other_file;  // of the other side: the racing access, the allocation ...
  int other_line = 0;      // 0: none
  dialect::uint3 block{};
  dialect::uint3 thread{};
  dialect::uint3 other_block{};  // block of the other access of a race
  dialect::uint3 other_thread{};
  std::string message;      // one sentence: what happened, in which thread
  std::string advice;       // one line: how to fix it
  std::vector<Fix> fixes;   // machine-readable advice; empty if there is none
  std::uint64_t times = 1;  // number of launches that had it
  Object object;
  std::string object_text;  // the object's name as it occurs in the message
  Racers racers;            // for a race only
  /// The launch: integer arguments by parameter number, the block extent and the call site.
  std::vector<std::pair<int, std::int64_t>> integers;
  dialect::dim3 block_extent;
  std::string launch_file;
  int launch_line = 0;
  // The kernel belongs to a library, whose source lines are of no use to the program's author.
  bool in_library = false;
};

/// A kernel of which some launches, or some blocks of recorded launches, were not recorded.
struct PartlyRecorded {
  std::string kernel;
  std::uint64_t launches = 0;
  std::uint64_t recorded = 0;
  std::uint64_t first = 0;  // number of initial launches that were recorded without a gap
  // Blocks of the recorded launches in which some blocks were skipped; 0: there is no such launch.
  std::uint64_t blocks = 0;
  std::uint64_t recorded_blocks = 0;
};

struct Report {
  std::vector<Finding> findings;                // in order of first occurrence
  std::vector<Kernel> kernels;                  // in order of first launch
  std::vector<PartlyRecorded> partly_recorded;  // set by the code that selects launches
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
/// Adds a finding from another source (a failed launch, a double free) to the session, if one is
/// active.
RUNG_API void add(Finding finding);
/// Restarts the session in a child process, without earlier findings, which the parent reports.
/// Current allocations are excluded from the leak check.
RUNG_API void forget();
/// Returns the findings so far without ending the session.
[[nodiscard]] RUNG_API std::vector<Finding> findings_so_far();

/// Returns the report as JSON. `fields_only`: only the members "findings" and "kernels", without
/// the object's braces.
RUNG_API std::string to_json(const Report& report, bool fields_only = false);
/// Returns a finding as one paragraph of text.
RUNG_API std::string to_text(const Finding& finding);
RUNG_API std::string to_text(const PartlyRecorded& kernel);

/// Returns the working directory in which the process started.
RUNG_API const std::string& start_folder();
/// Returns a file's name as shown in findings and counters: relative to the start folder if the
/// file is below it, else absolute.
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
  int column = 0;  // 0: unknown
  // False: the only known location is in rung's or the system's headers.
  bool of_a_kernel = true;
};
/// A kernel's `__restrict__` parameter, and the pointer that a launch passes to it.
struct RestrictedParameter {
  int number = -1;  // -1: unknown
  std::string name;
  const void* pointer = nullptr;
  std::size_t element_bytes = 0;  // 0: unknown
};
/// Callbacks by which a launcher describes kernel sources and launches. `data` is Launch::data.
struct LaunchSource {
  /// Returns the base address of each registered memory region to which more than one argument of
  /// the launch points.
  std::vector<const void*> (*shared_memory)(const void* data);
  /// Returns the parameter through which the code at this location reads or writes memory; called
  /// by the kernel's threads.
  RestrictedParameter (*parameter_of)(const void* data, const Source& place, bool writes);
  /// Returns the location of the program's call of the library function that launches; line 0: the
  /// program launches directly.
  Source (*library_call)(const void* data);
};
RUNG_API void complete_launches(const LaunchSource* source);
/// Returns the source location of the call that returns to this code address.
RUNG_API Source place_of(const void* behind_call);

// --- memory that kernels may access --------------------------------------------------------------
// Code that passes memory to kernels registers it, with or without a session. Accesses to
// unregistered memory are out of bounds. The device's own allocations (Context, Tensor) register
// themselves.

struct Memory {
  const void* begin = nullptr;
  std::size_t bytes = 0;
  Space space = Space::global;  // global or constant
  bool initialized = true;      // false: freshly allocated, filled with simt::poison
  // Host code may also write through pointers: bytes that differ from poison count as written.
  bool host_writes = false;
  bool freed_by_hand = false;  // reported as a leak if it is never unregistered
  std::string name;            // "cudaMalloc", a symbol's name; shown in findings
  std::string file;            // file of the allocating call; "": unknown
  int line = 0;
  const void* code = nullptr;   // return address of the allocating call, if `file` is unknown
  const void* freed = nullptr;  // return address of the freeing call; null: unknown, or not freed
  // Bit masks of the devices (Launch::device) whose kernels may access it.
  std::uint64_t readers = ~std::uint64_t{0}, writers = ~std::uint64_t{0};
  // Bytes at the ends of the memory that kernels must not access.
  std::size_t guard_before = 0, guard_behind = 0;
};
RUNG_API void register_memory(Memory memory);
/// Marks the memory as freed: later accesses are use after free until the addresses are registered
/// again. Returns true if registered memory begins at `begin`; otherwise the call is a double free
/// or the pointer was never allocated. `code`: return address of the freeing call, if known.
RUNG_API bool unregister_memory(const void* begin, const void* code = nullptr);
/// Returns the registered memory that contains this address; `bytes` is 0 if there is none.
[[nodiscard]] RUNG_API Memory find_memory(const void* address);
/// Sets the devices that may access the memory registered at `begin`.
RUNG_API void allow_devices(const void* begin, std::uint64_t readers, std::uint64_t writers);
/// Declares the first and last bytes of the memory registered there as guards: kernels' accesses to
/// them are out of bounds. `name`: the memory's name in findings.
RUNG_API void set_guards(const void* begin, std::size_t before, std::size_t behind,
                         std::string name);
/// Marks bytes as written, for copies and memset by the host.
RUNG_API void mark_initialized(const void* begin, std::size_t bytes);
/// Marks the whole registered memory that contains this address as written; null: all registered
/// memory.
RUNG_API void mark_whole_initialized(const void* address);
RUNG_API void mark_uninitialized(const void* begin, std::size_t bytes);
/// Returns true if none of these bytes of registered memory has been written.
[[nodiscard]] RUNG_API bool never_written(const void* begin, std::size_t bytes);
/// Copies the initialized bits of `from` to `to`, for a copy between device memories.
RUNG_API void copy_initialized(const void* to, const void* from, std::size_t bytes);

}  // namespace rung::simt::record

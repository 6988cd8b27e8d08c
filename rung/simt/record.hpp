// SPDX-License-Identifier: Apache-2.0
// Recording what kernels do on the simulated GPU: counters per source line as Nsight Compute would
// give them, and checks - data races, accesses out of place, reads of uninitialized memory.
//
//   record::begin({.counters = true, .checks = true});
//   ... launches ...
//   const record::Report report = record::end();
//   for (const record::Finding& f : report.findings) ...
//   std::puts(record::to_json(report).c_str());
//
// One session at a time, for the whole process. Only code that was compiled for it is seen
// (docs/simulated-gpu.md says with which options); the operations of the simulator always are.
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

/// A GPU, as the model of the caches needs it; by default the simulated one, an H200.
struct Chip {
  int multiprocessors = simt::multiprocessors;
  int threads = threads_per_multiprocessor;  // that are resident in each
  int blocks = blocks_per_multiprocessor;
  std::size_t l1_bytes = 256 << 10;  // of each, shared memory included
  // What shared memory may take of it, ascending.
  std::vector<std::size_t> carveouts = {0,         8 << 10,   16 << 10,  32 << 10,  64 << 10,
                                        100 << 10, 132 << 10, 164 << 10, 196 << 10, 228 << 10};
  std::size_t shared_reserved = shared_bytes_reserved;  // of each block, for the system
  std::size_t l2_bytes = simt::l2_bytes;
};

struct Options {
  bool counters = true;
  bool checks = true;                     // races, bounds, alignment, uninitialized reads, leaks
  Chip chip = {};                         // whose caches are modeled while there are counters
  bool leaks = false;                     // memory that is still allocated at end() is a finding
  std::optional<ThreadOrder> order = {};  // of the session's launches; by default as it was
  // Called with each finding that is new, by whichever thread has found it; null: nothing is.
  void (*on_finding)(const Finding& finding) = nullptr;
};

/// Named as in the JSON: to_string(Kind::use_after_free) is "use_after_free".
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
  api_call,     // a call of the runtime failed, and the program never learns of it
  overlap,      // memory that is written is accessed through two __restrict__ parameters
  stream_order  // work of streams, or of a stream and the host, that nothing orders
};
enum class Space : std::uint8_t { shared, global, local, constant };
RUNG_API const char* to_string(Kind kind);
RUNG_API const char* to_string(Space space);

/// The array that a finding is about, as far as the program that launched the kernel can tell.
struct Object {
  std::string name;  // "tile"; "": unknown
  std::string type;  // of the array, or of what a pointer points to; mangled until end()
  std::size_t element_bytes = 0;     // 0: unknown
  std::vector<std::size_t> extents;  // of the array, by dimension; empty: unknown
  std::uint64_t bytes = 0;           // of all of it
  std::int64_t offset = 0;           // of the access, in bytes
  int parameter = -1;                // of the kernel, that points to it
  bool dynamic = false;              // dynamic shared memory
  std::string allocated;             // "cudaMalloc'ed at file:line"; "": unknown
};

/// Which threads raced, over all launches.
struct Racers {
  bool within_warp = false, across_warps = false, across_blocks = false;
  bool both_write = false;
  bool same_thread = false;  // of another block
  bool one_warp = true;      // blocks had no more

  /// What the others add.
  RUNG_API Racers& operator|=(const Racers& others);
};

/// A change of the source that mends a finding, for programs: docs/emulate.md says what each kind
/// means.
struct Fix {
  std::string kind;
  std::string file;
  int line = 0;
  std::string from, text;  // what is there, what shall be
};

/// One thing that is wrong; told once for each (kind, line, other line).
struct Finding {
  Kind kind = Kind::race;
  Space space = Space::global;
  std::string kernel;      // demangled; "" for what host code did
  std::string file;        // of the access; "" where nobody knows
  int line = 0;            // 0: unknown
  std::string other_file;  // of the other side: the access raced with, the allocation ...
  int other_line = 0;      // 0: there is none
  dialect::uint3 block{};
  dialect::uint3 thread{};
  dialect::uint3 other_block{};  // of the other side of a race
  dialect::uint3 other_thread{};
  std::string message;      // what happened, to whom: one sentence
  std::string advice;       // what to do about it: one line
  std::vector<Fix> fixes;   // the advice for programs; empty: only a person can follow it
  std::uint64_t times = 1;  // launches that it was seen in
  Object object;
  std::string object_text;  // what the message calls it
  Racers racers;            // of a race
  /// Of the launch: integers among the kernel's arguments, by the number of the parameter; the
  /// block; and the launch's place.
  std::vector<std::pair<int, std::int64_t>> integers;
  dialect::dim3 block_extent;
  std::string launch_file;
  int launch_line = 0;
  bool in_library = false;  // the kernel is a library's, whose lines say nothing to the program
};

/// A kernel of which some launches, or some blocks of recorded launches, were not recorded.
struct PartlyRecorded {
  std::string kernel;
  std::uint64_t launches = 0;
  std::uint64_t recorded = 0;
  std::uint64_t first = 0;  // so many from its first launch on were recorded without a gap
  // Of those of the recorded launches that left blocks out; 0: none did.
  std::uint64_t blocks = 0;
  std::uint64_t recorded_blocks = 0;
};

struct Report {
  std::vector<Finding> findings;                // in the order in which they were seen first
  std::vector<Kernel> kernels;                  // in the order of their first launches
  std::vector<PartlyRecorded> partly_recorded;  // filled in by who decides that
};

/// Throws Error(internal) when a session runs already.
RUNG_API void begin(const Options& options = {});
/// Ends the session. Throws Error(internal) when none runs.
RUNG_API Report end();
/// Returns what was found and counted since begin() or the last take(), and the session goes on;
/// `counters`: whether it counts from now on. No launch may run meanwhile. Throws Error(internal)
/// when no session runs.
RUNG_API Report take(bool counters);
[[nodiscard]] RUNG_API bool active();
[[nodiscard]] RUNG_API bool checking();
/// Adds what others have found (a failed launch, a double free) to the session, if one runs.
RUNG_API void add(Finding finding);
/// As if the session began now, and what is allocated had always been there: for a child process,
/// whose parent tells of what was before.
RUNG_API void forget();
/// The findings so far, without ending the session.
[[nodiscard]] RUNG_API std::vector<Finding> findings_so_far();

/// "findings" and "kernels" as fields of one object, without its braces when `fields_only`.
RUNG_API std::string to_json(const Report& report, bool fields_only = false);
/// For people: one paragraph a finding.
RUNG_API std::string to_text(const Finding& finding);
RUNG_API std::string to_text(const PartlyRecorded& kernel);

/// The folder in which the process began.
RUNG_API const std::string& start_folder();
/// How findings and counters name a file: from that folder where it is below, else in full.
RUNG_API std::string shown_path(std::string_view file);

struct Memory;
/// Completes what findings tell of memory (object, launch ...) where a launcher knows more than the
/// recorder: `data` is Launch::data, `memory` null for shared memory.
using Completer = void (*)(const void* data, const Memory* memory, Finding& finding);
RUNG_API void complete_findings(Completer completer);

/// The place of an access in the source.
struct Source {
  std::string file;
  int line = 0;             // 0: unknown
  int column = 0;           // likewise
  bool of_a_kernel = true;  // false: only our own or the system's headers are to be seen there
};
/// A kernel's parameter that is declared `__restrict__`, and what a launch passes for it.
struct RestrictedParameter {
  int number = -1;  // -1: not known
  std::string name;
  const void* pointer = nullptr;
  std::size_t element_bytes = 0;  // 0: unknown
};
/// What a launcher knows of the source of kernels and of their launches. `data` is Launch::data.
struct LaunchSource {
  /// Where each registered memory begins to which several arguments of the launch point.
  std::vector<const void*> (*shared_memory)(const void* data);
  /// The parameter through which the code of this place reads or writes memory; called by the
  /// kernel's threads.
  RestrictedParameter (*parameter_of)(const void* data, const Source& place, bool writes);
  /// Where the program calls the library's function that launches; line 0: it launches itself.
  Source (*library_call)(const void* data);
};
RUNG_API void complete_launches(const LaunchSource* source);
/// Of a call, by the code behind it.
RUNG_API Source place_of(const void* behind_call);

// --- memory that kernels may access --------------------------------------------------------------
// Whoever hands memory to kernels registers it, whether a session runs or not. Memory outside of
// all of it is out of bounds. The device's own allocations (Context, Tensor) register themselves.

struct Memory {
  const void* begin = nullptr;
  std::size_t bytes = 0;
  Space space = Space::global;  // global or constant
  bool initialized = true;      // false: freshly allocated, filled with simt::poison
  bool host_writes = false;     // through pointers too: what is not poison counts as written
  bool freed_by_hand = false;   // it is a leak when it is never unregistered
  std::string name;             // "cudaMalloc", a symbol's name; told in findings
  std::string file;             // where it was allocated, if known
  int line = 0;
  const void* code = nullptr;   // or the code that allocated it, behind its call
  const void* freed = nullptr;  // likewise, that freed it; null: not known, or it is not freed
  // The devices (Launch::device) whose kernels may access it: a bit each.
  std::uint64_t readers = ~std::uint64_t{0}, writers = ~std::uint64_t{0};
};
RUNG_API void register_memory(Memory memory);
/// From now on an access is a use after free, until something else is registered there. Whether
/// memory began there: else it is a double free, or no allocation. `code`: behind the call that
/// frees it, if known.
RUNG_API bool unregister_memory(const void* begin, const void* code = nullptr);
/// The registered memory that holds this address; bytes 0: none.
[[nodiscard]] RUNG_API Memory find_memory(const void* address);
/// Changes who may access what is registered there.
RUNG_API void allow_devices(const void* begin, std::uint64_t readers, std::uint64_t writers);
/// What copies and memset do to memory of which kernels may read what was written.
RUNG_API void mark_initialized(const void* begin, std::size_t bytes);
/// All of the registered memory that holds this address; null: all registered memory.
RUNG_API void mark_whole_initialized(const void* address);
RUNG_API void mark_uninitialized(const void* begin, std::size_t bytes);
/// Returns whether nobody has written any of these bytes, which are in memory registered so.
[[nodiscard]] RUNG_API bool never_written(const void* begin, std::size_t bytes);
/// A copy between device memories: the copy is as initialized as its source.
RUNG_API void copy_initialized(const void* to, const void* from, std::size_t bytes);

}  // namespace rung::simt::record

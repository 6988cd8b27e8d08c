// SPDX-License-Identifier: Apache-2.0
// Requests, built from a warp's accesses. The first lane of a warp leaves a list of steps: the code
// address and the memory of each access. The other lanes, which usually execute the same code,
// follow the list and store their address at each step. The fast path of an instrumented access is
// a comparison of its code address, a bounds check and a store.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "rung/core/export.hpp"

namespace rung::simt::record {

struct Region;
struct BlockRecord;
struct Coverage;

enum class Access : std::uint8_t {
  read,
  write,
  atomic,
  block_atomic,   // atomic at block scope
  copy,           // start of an asynchronous copy: a write in flight until it lands
  volatile_read,  // volatile and atomic accesses do not race with each other
  volatile_write,
  block_read,  // volatile_read at block scope
  block_store,
  source,       // source of an asynchronous copy, read until it lands
  source_done,  // its last read; not counted again
  landed,       // completion of a copy; not counted again
  touch,   // access by an operation on an object in shared memory: a volatile read, not counted
  marker,  // not an access: the warp's clock advances
  basic_block,  // not an access: the lane has entered this basic block
  texture,      // a texture fetch, from any memory
  // Accesses by the asynchronous proxy (bulk copies, tensor cores); not counted as requests of a
  // warp.
  engine_read,
  engine_write
};

template <class F>
void for_each_lane(std::uint32_t lanes, F f) {
  for (; lanes != 0; lanes &= lanes - 1) f(std::countr_zero(lanes));
}

inline bool is_atomic(Access access) {
  return access == Access::atomic || access == Access::block_atomic;
}
inline bool is_store(Access access) {
  return access == Access::volatile_write || access == Access::block_store;
}
/// Returns true for accesses that are counted as writes.
inline bool is_counted_write(Access access) {
  return access == Access::write || access == Access::copy || is_store(access);
}
inline bool is_of_block(Access access) {
  return access == Access::block_atomic || access == Access::block_read ||
         access == Access::block_store;
}
inline bool is_plain_write(Access access) {
  return access == Access::write || access == Access::copy || access == Access::landed ||
         access == Access::engine_write;
}
inline bool is_source(Access access) {
  return access == Access::source || access == Access::source_done;
}
inline bool is_plain_read(Access access) {
  return access == Access::read || access == Access::engine_read || is_source(access);
}
inline bool is_by_engine(Access access) {
  return access == Access::engine_read || access == Access::engine_write;
}
inline bool is_read(Access access) {
  return is_plain_read(access) || access == Access::volatile_read || access == Access::block_read ||
         access == Access::touch;
}

enum class Where : std::uint8_t { nowhere, shared, global, local, constant };

/// Step of the list: the data with which a following lane compares its access.
struct alignas(32) Step {
  std::uintptr_t site = 0;      // code address of the access; 0: none
  std::uintptr_t base = 0;      // base of the accessed memory
  std::uint32_t last_unit = 0;  // largest valid unit; units are offsets in access sizes
  std::uint32_t next = 0;       // successor, if the list is not linear; 0: none
  std::uint32_t clock = 0;      // the warp's clock relative to the list's start
  std::uint16_t site_index = 0;
  std::uint8_t log_size = 0;  // access size of 2^0 to 2^4 bytes
  Access access = Access::read;
};

/// Returns true if the access matches the step: same code, accessible memory, aligned address.
inline bool fits(const Step& step, std::uintptr_t address, std::uintptr_t site, int log_size) {
  return step.site == site &&
         std::rotr(std::uint64_t{address - step.base}, log_size) <= step.last_unit;
}

/// Properties of a step that are determined once, when it is inserted.
struct Target {
  Where where = Where::nowhere;
  std::uint16_t enters = 0;      // number of the basic block that begins at the step; 0: none
  bool continues = false;        // part of the preceding step's request, in other memory
  bool compares = false;         // an atomic compare-and-exchange
  bool valued = false;           // a write whose values are kept per lane
  Region* region = nullptr;      // region of a step in global memory
  BlockRecord* block = nullptr;  // block of a step in shared memory
  Coverage* coverage = nullptr;  // coverage of the region, while counting
};

/// Unit of an inactive lane.
inline constexpr std::uint32_t no_unit = ~std::uint32_t{0};

/// Request: one instruction of one warp, as a step and the addresses of its lanes.
struct Request {
  // Leaves the units uninitialized: few are used, and initialization would dominate the cost.
  Request(const Step& given_step, const Target& given_target)
      : step(given_step), target(given_target) {}

  const Step& step;
  const Target& target;
  std::uint32_t lanes = 0;  // active lanes
  // True if unit[lane] = unit[0] + lane * stride for all 32 lanes; a unit is (address - base) /
  // size. Only the first and last unit are valid before spread().
  bool progression = false;
  // True for two progressions of 16 lanes each with the same stride, from unit[0] and unit[16], as
  // blocks 16 threads wide produce. All units are valid.
  bool halves = false;
  std::int32_t stride = 0;
  const std::uint32_t* values = nullptr;  // values written by the lanes; null: unknown
  std::uint32_t copy = 0;                 // number of the bulk copy; 0: none
  alignas(64) std::uint32_t units[32];

  void spread() {
    if (!progression) return;
    std::uint32_t unit = units[0];
    for (std::uint32_t& one : units) {
      one = unit;
      unit += static_cast<std::uint32_t>(stride);
    }
  }
};

/// State for the running thread's next access, in one cache line.
struct alignas(64) Tracer {
  Step* last = nullptr;           // its last step in the warp's list; null: no session
  std::uint32_t* unit = nullptr;  // where that step's unit was stored
  // A hook is called before its access, so the written value is read at the thread's next action
  // that could change it: another write, synchronization, or a switch.
  const std::byte* written = nullptr;  // last written address; null: its value was read
  std::byte* value = nullptr;          // destination of the value
  // Offset that, added to four times the address in `unit`, gives the destination of a value; 0:
  // values are not kept.
  std::uintptr_t values = 0;
  // Basic block entered since the last access. It is recorded with the next access: most blocks
  // access memory and need no step of their own. 0: none, or already counted.
  std::uintptr_t block = 0;
  std::uintptr_t stack = 0;       // stack of the thread, which no other thread accesses
  std::uint32_t stack_bytes = 0;  // size of `stack`; 0: accesses to it are counted
  std::uint8_t written_log_size = 0;
  bool follows = false;  // basic blocks are recorded
};
static_assert(sizeof(Tracer) == 64);
extern RUNG_API constinit thread_local Tracer tracer __asm__("rung_simt_tracer")
    __attribute__((tls_model("initial-exec")));

/// Records an access that does not match the list's next step.
RUNG_API void trace_slowly(std::uintptr_t address, std::uintptr_t site, int log_size,
                           Access access) noexcept;
/// Records a write that does not match the list's next step, and keeps its value. Returns true if
/// the write is in the list.
RUNG_API bool trace_write_slowly(std::uintptr_t address, std::uintptr_t site,
                                 int log_size) noexcept;

/// Records an aligned access of 2^log_size bytes.
__attribute__((always_inline)) inline void trace(std::uintptr_t address, std::uintptr_t site,
                                                 int log_size, Access access) noexcept {
  Step* const last = tracer.last;
  if (last == nullptr) return;
  // Rotation moves the low bits of a misaligned offset to the top, so that one comparison detects
  // misaligned and out-of-bounds accesses.
  const std::uint64_t unit = std::rotr(std::uint64_t{address - last[1].base}, log_size);
  if (last[1].site == site && unit <= last[1].last_unit) [[likely]] {
    *++tracer.unit = static_cast<std::uint32_t>(unit);
    tracer.last = last + 1;
    tracer.block = 0;
    return;
  }
  if (address - tracer.stack < tracer.stack_bytes) return;
  trace_slowly(address, site, log_size, access);
}

/// Records the pending basic block, if any.
__attribute__((always_inline)) inline void trace_entered_block() noexcept {
  if (tracer.block != 0) trace(0, tracer.block, 0, Access::basic_block);
}

/// Records that the running thread enters a basic block.
__attribute__((always_inline)) inline void trace_block(std::uintptr_t site) noexcept {
  if (!tracer.follows) return;
  trace_entered_block();
  tracer.block = site;
}

/// Words per kept value: 16 bytes, the size of the widest access.
inline constexpr std::size_t value_words = 4;

/// Copies the value of the running thread's last write to the list.
__attribute__((always_inline)) inline void keep_value() noexcept {
  const std::byte* const from = tracer.written;
  if (from == nullptr) return;
  tracer.written = nullptr;
  switch (tracer.written_log_size) {
    case 0:
      std::memcpy(tracer.value, from, 1);
      break;
    case 1:
      std::memcpy(tracer.value, from, 2);
      break;
    case 2:
      std::memcpy(tracer.value, from, 4);
      break;
    case 3:
      std::memcpy(tracer.value, from, 8);
      break;
    default:
      std::memcpy(tracer.value, from, 16);
      break;
  }
}

/// Records a plain write by instrumented code; the write itself follows the hook.
__attribute__((always_inline)) inline void trace_write(std::uintptr_t address, std::uintptr_t site,
                                                       int log_size) noexcept {
  Step* const last = tracer.last;
  if (last == nullptr) return;
  keep_value();
  const std::uint64_t unit = std::rotr(std::uint64_t{address - last[1].base}, log_size);
  if (last[1].site == site && unit <= last[1].last_unit) [[likely]] {
    *++tracer.unit = static_cast<std::uint32_t>(unit);
    tracer.last = last + 1;
    tracer.block = 0;
  } else if (address - tracer.stack < tracer.stack_bytes ||
             !trace_write_slowly(address, site, log_size)) {
    return;
  }
  if (tracer.values == 0) return;
  static_assert(value_words == 4);
  const std::uintptr_t slot = tracer.values + 4 * reinterpret_cast<std::uintptr_t>(tracer.unit);
  tracer.value = reinterpret_cast<std::byte*>(slot + address % sizeof(std::uint32_t));
  tracer.written = reinterpret_cast<const std::byte*>(address);
  tracer.written_log_size = static_cast<std::uint8_t>(log_size);
}

}  // namespace rung::simt::record

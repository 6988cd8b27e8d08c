// SPDX-License-Identifier: Apache-2.0
// A warp's accesses on their way to becoming requests. The first lane to come leaves a list of
// steps: which code accessed which memory. The other lanes, which usually do the same, walk along
// it and note where each step took them. That walk is all that an instrumented access costs: a
// compare of its place in the code, a bounds check, a store.
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
  block_atomic,   // atomic to the threads of its block alone
  copy,           // the start of an asynchronous copy: a write that goes on until it has landed
  volatile_read,  // and write: alike atomic, as far as races go
  volatile_write,
  block_read,  // and store: the same to the threads of its block alone
  block_store,
  landed,  // its end; not counted again
  touch,   // by an operation on an object in shared memory: checked as a volatile read, not counted
  marker,  // no access: the warp lets others know how far it has come
  basic_block,  // none either: the lane has entered this basic block
  texture,      // a fetch from a texture, of whatever memory
  // By copies and tensor cores, through the asynchronous proxy; not counted as requests of a warp.
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
/// A write that is counted as one.
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
inline bool is_plain_read(Access access) {
  return access == Access::read || access == Access::engine_read;
}
inline bool is_by_engine(Access access) {
  return access == Access::engine_read || access == Access::engine_write;
}
inline bool is_read(Access access) {
  return is_plain_read(access) || access == Access::volatile_read || access == Access::block_read ||
         access == Access::touch;
}

enum class Where : std::uint8_t { nowhere, shared, global, local, constant };

/// What a walking lane looks at.
struct alignas(32) Step {
  std::uintptr_t site = 0;      // the code that accesses; 0: none
  std::uintptr_t base = 0;      // of the memory that it accesses
  std::uint32_t last_unit = 0;  // units are accesses' sizes; those behind are out of bounds
  std::uint32_t next = 0;       // the step that follows, where lists are not linear; 0: none
  std::uint32_t clock = 0;      // arrivals of the warp since its list began
  std::uint16_t site_index = 0;
  std::uint8_t log_size = 0;  // of an access: 2^0 to 2^4 bytes
  Access access = Access::read;
};

/// Returns whether the step is of this access: the same code, memory that it may go to, aligned.
inline bool fits(const Step& step, std::uintptr_t address, std::uintptr_t site, int log_size) {
  return step.site == site &&
         std::rotr(std::uint64_t{address - step.base}, log_size) <= step.last_unit;
}

/// What is found out once a step.
struct Target {
  Where where = Where::nowhere;
  std::uint16_t enters = 0;      // the basic block that it opens, by its site's number; 0: none
  bool continues = false;        // the step before, in other memory: one request
  bool compares = false;         // an atomic comparison and exchange
  bool valued = false;           // a write of which each lane's value is kept
  Region* region = nullptr;      // global memory's
  BlockRecord* block = nullptr;  // whose shared memory it is
  Coverage* coverage = nullptr;  // global memory's, while it is counted
};

/// Where no lane was.
inline constexpr std::uint32_t no_unit = ~std::uint32_t{0};

/// One instruction of one warp, from a step and where it took the lanes.
struct Request {
  // No initializer list: the units are what a request costs, and few are looked at.
  Request(const Step& given_step, const Target& given_target)
      : step(given_step), target(given_target) {}

  const Step& step;
  const Target& target;
  std::uint32_t lanes = 0;  // that took part
  // By lane: its address, as (address - base) / size. A progression: unit[0] + lane * stride, of
  // all 32 lanes; only its first and last unit are there until spread() is called.
  bool progression = false;
  // Two progressions of 16 lanes with one stride, as blocks that are 16 wide make: from unit[0] and
  // unit[16] on. All units are there.
  bool halves = false;
  std::int32_t stride = 0;
  const std::uint32_t* values = nullptr;  // what the lanes wrote; null: not known
  std::uint32_t copy = 0;                 // the bulk copy's number, if it is of one
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

/// What the running thread's next access needs. One line of the cache.
struct alignas(64) Tracer {
  Step* last = nullptr;           // where it stands in its warp's list; null: nobody records
  std::uint32_t* unit = nullptr;  // where it noted that step
  // A hook is called in front of its access. What a write leaves there is looked at when the thread
  // does anything else that may change it: writes again, synchronizes, stops running.
  const std::byte* written = nullptr;  // where it wrote last; null: that has been looked at
  std::byte* value = nullptr;          // where that goes
  std::uintptr_t values = 0;  // from four times `unit` to where a value goes; 0: none is kept
  // The basic block that was entered last, until an access in it has told that: most blocks access
  // memory, and cost no step of their own. 0: none, or it has been counted.
  std::uintptr_t block = 0;
  std::uintptr_t stack = 0;       // the thread's own memory, which no other looks at
  std::uint32_t stack_bytes = 0;  // 0: accesses to it are counted
  std::uint8_t written_log_size = 0;
  bool follows = false;  // basic blocks are counted
};
static_assert(sizeof(Tracer) == 64);
extern RUNG_API constinit thread_local Tracer tracer __asm__("rung_simt_tracer")
    __attribute__((tls_model("initial-exec")));

/// For an access that the list does not predict_runtime.
RUNG_API void trace_slowly(std::uintptr_t address, std::uintptr_t site, int log_size,
                           Access access) noexcept;
/// The same of a write whose value is to be kept. Whether it is in the list.
RUNG_API bool trace_write_slowly(std::uintptr_t address, std::uintptr_t site,
                                 int log_size) noexcept;

/// Notes an access of 2^log_size bytes, aligned to as many.
__attribute__((always_inline)) inline void trace(std::uintptr_t address, std::uintptr_t site,
                                                 int log_size, Access access) noexcept {
  Step* const last = tracer.last;
  if (last == nullptr) return;
  // The low bits of a misaligned offset end up on top: one comparison finds both.
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

/// Tells the basic block that no access has told.
__attribute__((always_inline)) inline void trace_entered_block() noexcept {
  if (tracer.block != 0) trace(0, tracer.block, 0, Access::basic_block);
}

/// Notes that the running thread enters a basic block.
__attribute__((always_inline)) inline void trace_block(std::uintptr_t site) noexcept {
  if (!tracer.follows) return;
  trace_entered_block();
  tracer.block = site;
}

/// Values are kept as the words that hold them: 16 bytes per access, which is the most.
inline constexpr std::size_t value_words = 4;

/// Keeps what the running thread wrote last.
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

/// Notes a plain write by instrumented code, which comes when the hook has returned.
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

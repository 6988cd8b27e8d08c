// SPDX-License-Identifier: Apache-2.0
// A warp's accesses on their way to becoming requests. The first lane to come leaves a list of
// steps: which code accessed which memory. The other lanes, which usually do the same, walk along
// it and note where each step took them. That walk is all that an instrumented access costs: a
// compare of its place in the code, a bounds check, a store.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

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
  landed,  // its end; not counted again
  touch,   // by an operation on an object in shared memory: checked as a volatile read, not counted
  marker,  // no access: the warp lets others know how far it has come
  basic_block,  // none either: the lane has come to this stretch of straight code
  texture,      // a fetch from a texture, of whatever memory
  // By copies and tensor cores, through the asynchronous proxy; not counted as requests of a warp.
  engine_read,
  engine_write
};

inline bool is_atomic(Access access) {
  return access == Access::atomic || access == Access::block_atomic;
}
inline bool is_plain_write(Access access) {
  return access == Access::write || access == Access::copy || access == Access::landed ||
         access == Access::engine_write;
}
inline bool is_plain_read(Access access) {
  return access == Access::read || access == Access::engine_read;
}
inline bool is_read(Access access) {
  return is_plain_read(access) || access == Access::volatile_read || access == Access::touch;
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

/// Whether the step is of this access: the same code, memory that it may go to, aligned.
inline bool fits(const Step& step, std::uintptr_t address, std::uintptr_t site, int log_size) {
  return step.site == site &&
         std::rotr(std::uint64_t{address - step.base}, log_size) <= step.last_unit;
}

/// What is found out once a step.
struct Target {
  Where where = Where::nowhere;
  bool continues = false;        // the step before, in other memory: one request
  bool compares = false;         // an atomic comparison and exchange
  Region* region = nullptr;      // global memory's
  BlockRecord* block = nullptr;  // whose shared memory it is
  Coverage* coverage = nullptr;  // global memory's, while it is counted
};

/// Where no lane was.
inline constexpr std::uint32_t no_unit = ~std::uint32_t{0};

/// One instruction of one warp, from a step and where it took the lanes.
struct Request {
  // No initialiser list: the units are what a request costs, and few are looked at.
  Request(const Step& given_step, const Target& given_target)
      : step(given_step), target(given_target) {}

  const Step& step;
  const Target& target;
  std::uint32_t lanes = 0;  // that took part
  // By lane: its address, as (address - base) / size. A progression: unit[0] + lane * stride, of
  // all 32 lanes; only its first and last unit are there until spread() is called.
  bool progression = false;
  std::int32_t stride = 0;
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

/// What the running thread's next access needs.
struct Tracer {
  Step* last = nullptr;           // where it stands in its warp's list; null: nobody records
  std::uint32_t* unit = nullptr;  // where it noted that step
};
extern RUNG_API constinit thread_local Tracer tracer __asm__("rung_simt_tracer")
    __attribute__((tls_model("initial-exec")));

/// For an access that the list does not foresee.
RUNG_API void trace_slowly(std::uintptr_t address, std::uintptr_t site, int log_size,
                           Access access) noexcept;

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
    return;
  }
  trace_slowly(address, site, log_size, access);
}

}  // namespace rung::simt::record

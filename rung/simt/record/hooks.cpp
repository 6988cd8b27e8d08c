// SPDX-License-Identifier: Apache-2.0
// Hooks that g++ -fsanitize=thread calls at each access of an instrumented file; they replace
// libtsan. They are part of each binary with kernels and have hidden visibility, so that a program
// under the real sanitizer never calls them. They must not throw.
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "rung/simt/record/hooked_atomics.hpp"
#include "rung/simt/record/host_watch.hpp"
#include "rung/simt/record/request.hpp"

using rung::simt::record::Access;
using rung::simt::record::before_atomic;
using rung::simt::record::HostAccess;
using rung::simt::record::keep_value;
using rung::simt::record::trace;
using rung::simt::record::trace_block;
using rung::simt::record::trace_write;

// Defined in bounds.cpp.
extern "C" void rung_simt_bad_index(const char* file, int line, const char* array, long long index);
// Defined in rung/simt/volatile_memory.cpp.
extern "C" void rung_simt_volatile_read(const void* address, std::size_t bytes, const void* site);
extern "C" void rung_simt_volatile_write();

// Alignment makes a hook's 20 instructions occupy two cache lines of code instead of three, which
// saves a fifth of the run time of a naive matrix product.
#define RUNG_HOOK extern "C" __attribute__((visibility("hidden"), used, aligned(64)))

namespace {

std::uintptr_t number(const volatile void* address) {
  return reinterpret_cast<std::uintptr_t>(address);
}

/// Records an access of any size and alignment, split into the accesses that a GPU compiler would
/// emit.
__attribute__((noinline)) void trace_range(std::uintptr_t address, std::size_t bytes,
                                           std::uintptr_t site, Access access) {
  if (access == Access::write) keep_value();  // the parts are written only after all hooks
  while (bytes != 0) {
    int log_size = 2;
    while (log_size > 0 && (address % (1u << log_size) != 0 || bytes < (1u << log_size))) {
      --log_size;
    }
    trace(address, site, log_size, access);
    address += 1u << log_size;
    bytes -= 1u << log_size;
  }
}

/// Reports an access by host code; not on the fast path of kernels.
__attribute__((noinline, cold)) void host_touch(void* p, std::size_t bytes, HostAccess access,
                                                const void* behind) {
  rung::simt::record::watch_host(number(p), bytes, access, behind);
}
template <std::size_t bytes>
__attribute__((noinline)) void host_read(void* p, const void* behind) {
  rung::simt::record::watch_host(number(p), bytes, HostAccess::read, behind);
}
template <std::size_t bytes>
__attribute__((noinline)) void host_write(void* p, const void* behind) {
  rung::simt::record::watch_host(number(p), bytes, HostAccess::write, behind);
}

}  // namespace

// Instantiated once per size; the site is the hook's return address. The compiler dictates the
// names.
// NOLINTBEGIN(readability-identifier-naming)
#define RUNG_HOOKS_OF_SIZE(bytes, log_size)                                              \
  RUNG_HOOK void __tsan_read##bytes(void* p) {                                           \
    if (rung::simt::record::tracer.last == nullptr) [[unlikely]] {                       \
      return host_read<bytes>(p, __builtin_return_address(0));                           \
    }                                                                                    \
    trace(number(p), number(__builtin_return_address(0)), log_size, Access::read);       \
  }                                                                                      \
  RUNG_HOOK void __tsan_write##bytes(void* p) {                                          \
    if (rung::simt::record::tracer.last == nullptr) [[unlikely]] {                       \
      return host_write<bytes>(p, __builtin_return_address(0));                          \
    }                                                                                    \
    trace_write(number(p), number(__builtin_return_address(0)), log_size);               \
  }                                                                                      \
  RUNG_HOOK void __tsan_volatile_read##bytes(void* p) {                                  \
    rung_simt_volatile_read(p, bytes, __builtin_return_address(0));                      \
    if (rung::simt::record::tracer.last == nullptr) {                                    \
      return host_touch(p, bytes, HostAccess::atomic, __builtin_return_address(0));      \
    }                                                                                    \
    before_atomic(p, bytes, Access::volatile_read, rung::simt::unstated_order,           \
                  number(__builtin_return_address(0)));                                  \
  }                                                                                      \
  RUNG_HOOK void __tsan_volatile_write##bytes(void* p) {                                 \
    rung_simt_volatile_write();                                                          \
    if (rung::simt::record::tracer.last == nullptr) {                                    \
      return host_touch(p, bytes, HostAccess::atomic, __builtin_return_address(0));      \
    }                                                                                    \
    before_atomic(p, bytes, Access::volatile_write, rung::simt::unstated_order,          \
                  number(__builtin_return_address(0)));                                  \
  }                                                                                      \
  RUNG_HOOK void __tsan_unaligned_read##bytes(void* p) {                                 \
    if (rung::simt::record::tracer.last != nullptr) {                                    \
      trace_range(number(p), bytes, number(__builtin_return_address(0)), Access::read);  \
    } else {                                                                             \
      host_touch(p, bytes, HostAccess::read, __builtin_return_address(0));               \
    }                                                                                    \
  }                                                                                      \
  RUNG_HOOK void __tsan_unaligned_write##bytes(void* p) {                                \
    if (rung::simt::record::tracer.last != nullptr) {                                    \
      trace_range(number(p), bytes, number(__builtin_return_address(0)), Access::write); \
    } else {                                                                             \
      host_touch(p, bytes, HostAccess::write, __builtin_return_address(0));              \
    }                                                                                    \
  }                                                                                      \
  RUNG_HOOK void __tsan_unaligned_volatile_read##bytes(void* p) {                        \
    __tsan_unaligned_read##bytes(p);                                                     \
  }                                                                                      \
  RUNG_HOOK void __tsan_unaligned_volatile_write##bytes(void* p) {                       \
    __tsan_unaligned_write##bytes(p);                                                    \
  }

RUNG_HOOKS_OF_SIZE(1, 0)
RUNG_HOOKS_OF_SIZE(2, 1)
RUNG_HOOKS_OF_SIZE(4, 2)
RUNG_HOOKS_OF_SIZE(8, 3)
RUNG_HOOKS_OF_SIZE(16, 4)

RUNG_HOOK void __tsan_read_range(void* p, std::size_t bytes) {
  if (rung::simt::record::tracer.last == nullptr) {
    return host_touch(p, bytes, HostAccess::read, __builtin_return_address(0));
  }
  trace_range(number(p), bytes, number(__builtin_return_address(0)), Access::read);
}
RUNG_HOOK void __tsan_write_range(void* p, std::size_t bytes) {
  if (rung::simt::record::tracer.last == nullptr) {
    return host_touch(p, bytes, HostAccess::write, __builtin_return_address(0));
  }
  trace_range(number(p), bytes, number(__builtin_return_address(0)), Access::write);
}

// Descriptors of -fsanitize=bounds: location, array type and index type.
struct IndexType {
  std::uint16_t kind, bits;  // for integers: twice log2 of the width, plus 1 if signed
  char name[1];
};
struct BadIndex {
  const char* file;
  std::uint32_t line, column;
  const IndexType* array;
  const IndexType* index;
};
RUNG_HOOK void __ubsan_handle_out_of_bounds(const BadIndex* at, std::uintptr_t index) {
  auto value = static_cast<long long>(index);
  const int width = 1 << (at->index->bits >> 1);
  if ((at->index->bits & 1) != 0 && width < 64) value = value << (64 - width) >> (64 - width);
  rung_simt_bad_index(at->file, static_cast<int>(at->line), at->array->name, value);
}

// Hook of -fsanitize=alignment, if enabled, for an access through a misaligned pointer. A float4 of
// which only parts are used is read in parts, each of which is aligned.
struct MisalignedUse {
  const char* file;
  std::uint32_t line, column;
  const void* type;
  unsigned char log_alignment;
  unsigned char kind;  // 1: a store
};
RUNG_HOOK void __ubsan_handle_type_mismatch_v1(const MisalignedUse* use, void* p) {
  const int log_size = use->log_alignment < 4 ? use->log_alignment : 4;
  trace(number(p), number(__builtin_return_address(0)), log_size,
        use->kind == 1 ? Access::write : Access::read);
}

// Hook of -fsanitize-coverage=trace-pc, at the start of each basic block.
RUNG_HOOK void __sanitizer_cov_trace_pc() { trace_block(number(__builtin_return_address(0))); }

// Hooks that must exist but have no effect.
RUNG_HOOK void __tsan_init() {}
RUNG_HOOK void __tsan_func_entry(void*) {}
RUNG_HOOK void __tsan_func_exit() {}
// Hook of constructors that set the vtable pointer.
RUNG_HOOK void __tsan_vptr_update(void* p, void*) {
  trace_write(number(p), number(__builtin_return_address(0)), 3);
}
RUNG_HOOK void __tsan_vptr_read(void*) {}
// NOLINTEND(readability-identifier-naming)

// SPDX-License-Identifier: Apache-2.0
// Allocations by kernels. The linker redirects a program's malloc and new to functions in this file
// (compile.cpp).
#include <link.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <new>
#include <set>
#include <unordered_set>

#pragma GCC visibility push(default)
#include "rung_cuda/memory.h"
#pragma GCC visibility pop

#include "rung/emulate/runtime/api.hpp"
#include "rung/simt/limits.hpp"
#include "rung/simt/record.hpp"
#include "rung/simt/simulator.hpp"

#define RUNG_WRAP extern "C" __attribute__((visibility("default")))

namespace {

namespace simt = rung::simt;

void* note(void* memory, std::size_t bytes) {
  if (memory != nullptr && simt::in_kernel()) {
    __builtin_memset(memory, simt::poison, bytes);
    simt::record::register_memory({.begin = memory,
                                   .bytes = bytes,
                                   .initialized = false,
                                   .freed_by_hand = true,
                                   .name = "malloc in a kernel"});
  }
  return memory;
}

std::mutex freed_mutex;
std::unordered_set<void*> freed;

/// Defers the release of memory that a kernel frees until the kernel has ended, so that its
/// addresses are not reused, and later accesses and double frees are reported. `code`: return
/// address of the call.
bool keep(void* memory, const void* code) {
  if (memory == nullptr || !simt::in_kernel()) return false;
  bool again = false;
  {
    const std::lock_guard lock(freed_mutex);
    again = !freed.insert(memory).second;
  }
  if (again) {
    rung::cuda::report_misuse("use_after_free", "a kernel frees what it has freed already", code);
  }
  return true;
}

/// Registers __device__ and __constant__ variables: the data segments of the object that contains
/// `address`, or of the program (the first object) if `address` is null.
void register_variables(const void* address) {
  struct Search {
    std::uintptr_t address;
    std::set<std::uintptr_t> registered;
  };
  static auto& search = *new Search;
  search.address = reinterpret_cast<std::uintptr_t>(address);
  dl_iterate_phdr(
      [](dl_phdr_info* object, std::size_t, void*) {
        bool holds = search.address == 0;
        for (int i = 0; i < object->dlpi_phnum; ++i) {
          const ElfW(Phdr)& segment = object->dlpi_phdr[i];
          const std::uintptr_t begin = object->dlpi_addr + segment.p_vaddr;
          holds = holds || (segment.p_type == PT_LOAD && search.address >= begin &&
                            search.address - begin < segment.p_memsz);
        }
        if (!holds) return 0;
        for (int i = 0; i < object->dlpi_phnum; ++i) {
          const ElfW(Phdr)& segment = object->dlpi_phdr[i];
          const std::uintptr_t begin = object->dlpi_addr + segment.p_vaddr;
          if (segment.p_type != PT_LOAD || (segment.p_flags & PF_X) != 0 ||
              !search.registered.insert(begin).second) {
            continue;
          }
          simt::record::register_memory({.begin = reinterpret_cast<const void*>(begin),
                                         .bytes = segment.p_memsz,
                                         .name = "the program's variables"});
        }
        return 1;
      },
      nullptr);
}

struct RegisterVariables {
  RegisterVariables() { register_variables(nullptr); }
} const at_start;

}  // namespace

namespace rung::cuda {

void* allocate_in_kernel(std::size_t bytes) { return note(std::malloc(bytes), bytes); }
void free_in_kernel(void* memory, const void* code) { keep(memory, code); }

void free_kernels_heap() {
  const std::lock_guard lock(freed_mutex);
  for (void* memory : freed) {
    simt::record::unregister_memory(memory);
    std::free(memory);  // new and delete of the C++ library use malloc and free
  }
  freed.clear();
}

}  // namespace rung::cuda

/// Registers the variables of a library that a host program loads (ctypes). Called by each
/// stand-alone object on load.
RUNG_WRAP void rung_emulate_object(const void* address) { register_variables(address); }

// Names are required by the linker. NOLINTBEGIN(readability-identifier-naming)
RUNG_WRAP void* __wrap_malloc(std::size_t bytes) { return note(std::malloc(bytes), bytes); }
RUNG_WRAP void __wrap_free(void* memory) {
  if (!keep(memory, __builtin_return_address(0))) std::free(memory);
}
RUNG_WRAP void* __wrap__Znwm(std::size_t bytes) { return note(::operator new(bytes), bytes); }
RUNG_WRAP void* __wrap__Znam(std::size_t bytes) { return note(::operator new[](bytes), bytes); }
RUNG_WRAP void __wrap__ZdlPv(void* memory) {
  if (!keep(memory, __builtin_return_address(0))) ::operator delete(memory);
}
RUNG_WRAP void __wrap__ZdaPv(void* memory) {
  if (!keep(memory, __builtin_return_address(0))) ::operator delete[](memory);
}
RUNG_WRAP void __wrap__ZdlPvm(void* memory, std::size_t) {
  if (!keep(memory, __builtin_return_address(0))) ::operator delete(memory);
}
RUNG_WRAP void __wrap__ZdaPvm(void* memory, std::size_t) {
  if (!keep(memory, __builtin_return_address(0))) ::operator delete[](memory);
}
// NOLINTEND(readability-identifier-naming)

// SPDX-License-Identifier: Apache-2.0
// Searches the program's symbol table for a call of cudaIpcGetMemHandle().
#include "rung/emulate/runtime/exports.hpp"

#include <link.h>

#include <cstdint>
#include <string_view>

namespace rung::cuda {
namespace {

/// Searches one object for calls of functions that export memory; callback of dl_iterate_phdr().
int calls_to_export(dl_phdr_info* object, std::size_t, void* found) {
  const ElfW(Sym)* symbols = nullptr;
  const char* names = nullptr;
  const std::uint32_t* hashes = nullptr;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    if (object->dlpi_phdr[i].p_type != PT_DYNAMIC) continue;
    const auto* one =
        reinterpret_cast<const ElfW(Dyn)*>(object->dlpi_addr + object->dlpi_phdr[i].p_vaddr);
    for (; one->d_tag != DT_NULL; ++one) {
      if (one->d_tag == DT_SYMTAB) symbols = reinterpret_cast<const ElfW(Sym)*>(one->d_un.d_ptr);
      if (one->d_tag == DT_STRTAB) names = reinterpret_cast<const char*>(one->d_un.d_ptr);
      if (one->d_tag == DT_GNU_HASH)
        hashes = reinterpret_cast<const std::uint32_t*>(one->d_un.d_ptr);
    }
  }
  // The second word of the hash table is the index of the first symbol that this object defines.
  // Undefined symbols, which include all called functions, precede it.
  for (std::uint32_t i = 1; hashes != nullptr && symbols != nullptr && i < hashes[1]; ++i) {
    if (std::string_view(names + symbols[i].st_name) == "cudaIpcGetMemHandle") {
      *static_cast<bool*>(found) = true;
      return 1;
    }
  }
  return 1;  // only the program, the first object, is searched
}

}  // namespace

bool exports_memory() {
  static const bool exports = [] {
    bool found = false;
    dl_iterate_phdr(calls_to_export, &found);
    return found;
  }();
  return exports;
}

}  // namespace rung::cuda

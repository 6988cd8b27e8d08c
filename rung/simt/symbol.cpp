// SPDX-License-Identifier: Apache-2.0
// Kernel names by address. Kernels are in anonymous namespaces, whose functions dladdr() cannot
// name; their names are read from the file's symbol table, unless it is stripped.
#include <cxxabi.h>
#include <dlfcn.h>
#include <elf.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <vector>

#include "rung/simt/simulator.hpp"

namespace rung::simt {
namespace {

std::string demangle(const char* name) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(name, nullptr, nullptr, &status), &std::free);
  return status == 0 ? text.get() : name;
}

/// Reads parts of a file, since libraries are large and their symbol tables small.
class TableReader {
 public:
  explicit TableReader(const char* path) : stream_(path, std::ios::binary | std::ios::ate) {
    if (stream_) size_ = static_cast<std::uint64_t>(stream_.tellg());
  }
  /// Reads `bytes` bytes at this file offset as an array of T; returns an empty array if out of
  /// bounds.
  template <class T>
  std::vector<T> read(std::uint64_t offset, std::uint64_t bytes) {
    if (offset > size_ || bytes > size_ - offset) return {};
    std::vector<T> table(bytes / sizeof(T));
    stream_.seekg(static_cast<std::streamoff>(offset));
    stream_.read(reinterpret_cast<char*>(table.data()),
                 static_cast<std::streamsize>(table.size() * sizeof(T)));
    return stream_ ? table : std::vector<T>{};
  }

 private:
  std::ifstream stream_;
  std::uint64_t size_ = 0;
};

/// Returns the name of the function that contains `address`, from the file's symbol table; "" if
/// there is none.
std::string find_in_file(const char* path, std::uint64_t address) {
  TableReader file(path);
  const auto headers = file.read<Elf64_Ehdr>(0, sizeof(Elf64_Ehdr));
  if (headers.empty() || std::memcmp(headers[0].e_ident, ELFMAG, SELFMAG) != 0) return "";
  const auto sections = file.read<Elf64_Shdr>(
      headers[0].e_shoff, std::uint64_t{headers[0].e_shnum} * sizeof(Elf64_Shdr));
  for (const Elf64_Shdr& section : sections) {
    if (section.sh_type != SHT_SYMTAB || section.sh_link >= sections.size()) continue;
    const Elf64_Shdr& strings = sections[section.sh_link];
    std::vector<char> names = file.read<char>(strings.sh_offset, strings.sh_size);
    names.push_back('\0');  // terminates the names even in a damaged table
    for (const Elf64_Sym& symbol : file.read<Elf64_Sym>(section.sh_offset, section.sh_size)) {
      if (ELF64_ST_TYPE(symbol.st_info) == STT_FUNC && symbol.st_value <= address &&
          address < symbol.st_value + symbol.st_size && symbol.st_name < names.size()) {
        return demangle(names.data() + symbol.st_name);
      }
    }
  }
  return "";
}

}  // namespace

std::string symbol_name(const void* code) {
  Dl_info info{};
  if (code == nullptr || dladdr(code, &info) == 0) return "kernel";
  if (info.dli_saddr == code && info.dli_sname != nullptr) return demangle(info.dli_sname);
  const auto base = reinterpret_cast<std::uintptr_t>(info.dli_fbase);
  const auto address = reinterpret_cast<std::uintptr_t>(code);
  // Symbols of a position-dependent executable have absolute addresses.
  std::string name = find_in_file(info.dli_fname, address - base);
  if (name.empty()) name = find_in_file(info.dli_fname, address);
  return name.empty() ? "kernel" : name;
}

}  // namespace rung::simt

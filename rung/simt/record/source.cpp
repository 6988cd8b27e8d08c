// SPDX-License-Identifier: Apache-2.0
// Maps sites to source lines, using the debug information of the loaded objects.
#include "rung/simt/record/source.hpp"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <utility>

#include "rung/core/text.hpp"
#include "rung/simt/record.hpp"
#include "rung/simt/record/operations.hpp"
#include "rung/simt/simulator.hpp"

namespace rung::simt::record {
namespace {

/// Returns true for files with accessors, whose accesses are attributed to their callers.
bool is_library(std::string_view file) {
  constexpr std::array<std::string_view, 7> folders = {
      "rung/core/",    "rung/device/", "rung/simt/", "rung/emulate/include/",
      "/usr/include/", "/usr/lib/",    "<"};
  for (const std::string_view folder : folders) {
    const std::size_t at = file.find(folder);
    if (at == 0 || (at != std::string_view::npos && file[at - 1] == '/')) return true;
  }
  return false;
}

/// Returns true for device helper files, whose accesses belong to the kernel if the compiler has
/// not inlined them. Files in ptx/ belong to the simulator.
bool is_word(std::string_view file) {
  return file.find("rung/device/") != std::string_view::npos &&
         file.find("rung/device/ptx/") == std::string_view::npos;
}

/// Loaded objects of this process with their debug information.
class Objects {
 public:
  bool begins_statement(std::uintptr_t begin, std::uintptr_t end) {
    Dwfl_Module* object = object_of(begin);
    Dwarf_Addr bias = 0;
    Dwarf_Die* unit = object != nullptr ? dwfl_module_addrdie(object, begin, &bias) : nullptr;
    Dwarf_Lines* lines = nullptr;
    std::size_t count = 0;
    if (unit == nullptr || dwarf_getsrclines(unit, &lines, &count) != 0) return false;
    const auto address = [&](std::size_t i) {
      Dwarf_Addr code = 0;
      dwarf_lineaddr(dwarf_onesrcline(lines, i), &code);
      return code + bias;
    };
    // Objects sorted by address.
    std::size_t first = 0;
    for (std::size_t left = count; left != 0;) {
      const std::size_t half = left / 2;
      const bool lower = address(first + half) < begin;
      first = lower ? first + half + 1 : first;
      left = lower ? left - half - 1 : half;
    }
    for (; first < count && address(first) < end; ++first) {
      bool begins = false;
      dwarf_linebeginstatement(dwarf_onesrcline(lines, first), &begins);
      if (begins) return true;
    }
    return false;
  }

  Source find(std::uintptr_t code) {
    Dwfl_Module* object = object_of(code);
    if (object == nullptr) return {};
    Source best;
    const auto consider = [&](const char* file, int line, int column) {
      if (file == nullptr || line == 0) return false;
      if (best.line == 0)
        best = {shown_path(file), line, column, false};  // innermost location, if all are skipped
      if (is_library(file)) return false;
      best = {shown_path(file), line, column, true};
      return true;
    };
    int line = 0, column = 0;
    const char* file = nullptr;
    if (Dwfl_Line* innermost = dwfl_module_getsrc(object, code)) {
      file = dwfl_lineinfo(innermost, nullptr, &line, &column, nullptr, nullptr);
    }
    if (consider(file, line, column)) return best;
    // Walks from the innermost inlined function outward.
    Dwarf_Addr bias = 0;
    Dwarf_Die* unit = dwfl_module_addrdie(object, code, &bias);
    if (unit == nullptr) return best;
    Dwarf_Die* scopes = nullptr;
    const bool found = dwarf_getscopes(unit, code - bias, &scopes) > 0;
    const std::unique_ptr<Dwarf_Die, decltype(&std::free)> owner(scopes, &std::free);
    // These scopes belong to the function definitions; the call sites of inlined functions are in
    // the scopes that enclose the innermost one.
    Dwarf_Die* calls = nullptr;
    const int count = found ? dwarf_getscopes_die(&scopes[0], &calls) : 0;
    const std::unique_ptr<Dwarf_Die, decltype(&std::free)> calls_owner(calls, &std::free);
    for (int i = 0; i < count; ++i) {
      if (dwarf_tag(&calls[i]) != DW_TAG_inlined_subroutine) continue;
      if (consider(call_file(*unit, calls[i]), number(calls[i], DW_AT_call_line),
                   number(calls[i], DW_AT_call_column))) {
        return best;
      }
    }
    // Code without debug information is assumed to belong to a kernel.
    if (best.line == 0 || is_word(best.file)) best.of_a_kernel = true;
    return best;
  }

 private:
  Dwfl_Module* object_of(std::uintptr_t code) {
    if (session_ != nullptr) {
      if (Dwfl_Module* known = dwfl_addrmodule(session_.get(), code)) return known;
    }
    static const Dwfl_Callbacks callbacks = {.find_elf = dwfl_linux_proc_find_elf,
                                             .find_debuginfo = dwfl_standard_find_debuginfo,
                                             .section_address = nullptr,
                                             .debuginfo_path = nullptr};
    session_.reset(dwfl_begin(&callbacks));
    if (session_ == nullptr) return nullptr;
    dwfl_linux_proc_report(session_.get(), getpid());
    dwfl_report_end(session_.get(), nullptr, nullptr);
    return dwfl_addrmodule(session_.get(), code);
  }

  static int number(Dwarf_Die& die, unsigned name) {
    Dwarf_Attribute attribute;
    Dwarf_Word value = 0;
    const bool there =
        dwarf_attr(&die, name, &attribute) != nullptr && dwarf_formudata(&attribute, &value) == 0;
    return there ? static_cast<int>(value) : 0;
  }

  static const char* call_file(Dwarf_Die& unit, Dwarf_Die& die) {
    Dwarf_Files* files = nullptr;
    std::size_t count = 0;
    const int index = number(die, DW_AT_call_file);
    if (dwarf_getsrcfiles(&unit, &files, &count) != 0) return nullptr;
    if (index <= 0 || static_cast<std::size_t>(index) >= count) return nullptr;
    return dwarf_filesrc(files, static_cast<std::size_t>(index), nullptr, nullptr);
  }

  struct End {
    void operator()(Dwfl* session) const { dwfl_end(session); }
  };
  std::unique_ptr<Dwfl, End> session_;
};

constinit std::mutex mutex;  // guards the variables below
Objects& all_objects() {
  static Objects& objects = *new Objects;
  return objects;
}

Source find(Objects& objects, std::uintptr_t site) {
  if (site == 0) return {};
  // A hook's return address follows the call instruction, so the byte before it belongs to the
  // instruction.
  if ((site & place_bit) == 0) return objects.find(site - 1);
  const std::uintptr_t data = site & ~(place_bit | landing_bit | source_bit);
  Place place;
  std::memcpy(static_cast<void*>(&place), &data, sizeof(place));
  return {shown_path(place.file_name()), static_cast<int>(place.line()),
          static_cast<int>(place.column()), true};
}

}  // namespace

const Source& source_of(std::uintptr_t site) {
  static auto& known = *new std::unordered_map<std::uintptr_t, Source>;
  const std::lock_guard lock(mutex);
  const auto at = known.find(site);
  if (at != known.end()) return at->second;
  Source source;
  // libdw needs more stack than a simulated thread has.
  std::thread([&] { source = find(all_objects(), site); }).join();
  return known.emplace(site, std::move(source)).first->second;
}

bool begins_statement(std::uintptr_t begin, std::uintptr_t end) {
  const std::lock_guard lock(mutex);
  bool begins = false;
  std::thread([&] { begins = all_objects().begins_statement(begin, end); }).join();
  return begins;
}

Source source_of(const Memory& memory) {
  if (memory.line != 0 || memory.code == nullptr) return {shown_path(memory.file), memory.line};
  return source_of(reinterpret_cast<std::uintptr_t>(memory.code));
}

Source place_of(const void* behind_call) {
  return source_of(reinterpret_cast<std::uintptr_t>(behind_call));
}

namespace {

const std::string& folder_at_start() {
  static const auto& folder = *new std::string([] {
    std::error_code none;
    return std::filesystem::current_path(none).string();
  }());
  return folder;
}
// Read at load time, since the program may change its working directory.
[[maybe_unused]] const std::string& found_when_loaded = folder_at_start();

}  // namespace

const std::string& start_folder() { return folder_at_start(); }

std::string shown_path(std::string_view file) {
  if (file.empty() || file.front() == '<') return std::string(file);
  const std::filesystem::path full =
      (std::filesystem::path(start_folder()) / file).lexically_normal();
  std::error_code none;
  // The compiler's file name may be "../../...", relative to an unknown build folder.
  if (!std::filesystem::exists(full, none)) {
    std::string name = std::filesystem::path(file).lexically_normal().string();
    while (name.starts_with("../")) name.erase(0, 3);
    return name;
  }
  const std::string path = full.string(), folder = start_folder() + "/";
  return path.starts_with(folder) ? path.substr(folder.size()) : path;
}

}  // namespace rung::simt::record

namespace rung::simt {

std::string source_line(const void* code) {
  // Sites are return addresses, one byte past the call.
  const record::Source& source = record::source_of(reinterpret_cast<std::uintptr_t>(code) + 1);
  if (source.line == 0) return "";
  return printable(source.file) + ":" + std::to_string(source.line);
}

}  // namespace rung::simt

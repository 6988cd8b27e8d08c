// SPDX-License-Identifier: Apache-2.0
// The CPU as a device: its memory, its cores, and properties reported by the operating system.
#include "rung/core/cpu_device.hpp"

#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <string>
#include <thread>

namespace rung::detail {
namespace {

// Size of a cache line and of the widest vector, in bytes.
constexpr std::size_t tensor_alignment = 64;
constexpr std::size_t page = 4096;
// Size of a huge page on x86-64 and AArch64, in bytes.
constexpr std::size_t huge_page = std::size_t{2} << 20;

void* allocate_aligned(std::size_t bytes, std::size_t alignment) {
  const bool countable = bytes <= PTRDIFF_MAX - alignment;
  const std::size_t rounded =
      (std::max<std::size_t>(bytes, 1) + alignment - 1) / alignment * alignment;
  void* memory = countable ? std::aligned_alloc(alignment, rounded) : nullptr;
  if (memory == nullptr) {
    throw Error(ErrorCode::out_of_memory,
                "the host has no " + std::to_string(bytes) + " bytes of memory left");
  }
  return memory;
}

/// Returns the number of cores in this process's affinity mask; 0 if the system does not report it.
int cores_allowed() {
  // The mask must be as long as the kernel's, which may exceed the 1024 bits of cpu_set_t.
  for (int bits = 1024; bits <= 1 << 18; bits *= 2) {
    cpu_set_t* mask = CPU_ALLOC(bits);
    if (mask == nullptr) return 0;
    const std::size_t size = CPU_ALLOC_SIZE(bits);
    const bool known = sched_getaffinity(0, size, mask) == 0;
    const int count = known ? CPU_COUNT_S(size, mask) : 0;
    CPU_FREE(mask);
    if (known) return count;
  }
  return 0;
}

/// Sets the name and, on x86, the family: "vendor family model vector-bits".
void name_processor(DeviceInfo& info) {
  info.name = "CPU";
  std::map<std::string, std::string, std::less<>> words;
  std::ifstream file("/proc/cpuinfo");
  // The file has one paragraph per core; all are alike, so only the first is read.
  for (std::string line; std::getline(file, line) && !line.empty();) {
    const std::size_t colon = line.find(": ");
    if (colon != std::string::npos) {
      words[line.substr(0, line.find_last_not_of("\t ", colon - 1) + 1)] = line.substr(colon + 2);
    }
  }
  if (words.contains("model name")) info.name = words["model name"];
  if (!words.contains("vendor_id")) return;
  const std::string& flags = words["flags"];
  const char* const bits = flags.find("avx512f") != std::string::npos ? "512"
                           : flags.find("avx2") != std::string::npos  ? "256"
                                                                      : "128";
  info.family = words["vendor_id"] + ' ' + words["cpu family"] + ' ' + words["model"] + ' ' + bits;
}

std::size_t system_value(int name) {
  const long value = sysconf(name);
  return value > 0 ? static_cast<std::size_t>(value) : 0;
}

DeviceInfo describe(int) {
  DeviceInfo info;
  name_processor(info);
  info.sms = std::max(cores_allowed(), 1);
#ifdef _SC_LEVEL2_CACHE_SIZE
  info.l2_bytes = system_value(_SC_LEVEL2_CACHE_SIZE);
#endif
  info.memory_bytes = system_value(_SC_PHYS_PAGES) * system_value(_SC_PAGESIZE);
  return info;
}

constexpr DeviceApi api{
    .backend = Backend::cpu,
    .device_count = [] { return 1; },
    .why_not = []() -> const char* { return ""; },
    .info = describe,
    .allocate = [](int, std::size_t bytes) { return allocate_aligned(bytes, tensor_alignment); },
    .release = [](int, void* memory) noexcept { std::free(memory); },
    .copy =
        [](int, void* to, const void* from, std::size_t bytes) {
          if (bytes > 0) std::memcpy(to, from, bytes);
        },
    .create_stream = [](int) -> void* { return nullptr; },
    .destroy_stream = [](int, void*) noexcept {},
    .synchronize = [](int, void*) {},
};

}  // namespace

const DeviceApi& cpu_device_api() noexcept { return api; }

std::int64_t available_memory() {
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    std::int64_t kibibytes = 0;
    if (std::sscanf(line.c_str(), "MemAvailable: %" SCNd64, &kibibytes) == 1) {
      return kibibytes * 1024;
    }
  }
  return INT64_MAX;
}

int usable_cores() {
  const int allowed = cores_allowed();
  return allowed > 0 ? allowed : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

int default_threads() {
  // A list ("4,2") has one number per nesting level; rung's parallel regions are the outermost.
  if (const char* text = std::getenv("OMP_NUM_THREADS"); text != nullptr) {
    char* end = nullptr;
    const long threads = std::strtol(text, &end, 10);
    const bool number = end != text && (*end == '\0' || *end == ',' || *end == ' ');
    if (number && threads >= 1 && threads <= INT16_MAX) return static_cast<int>(threads);
  }
  return usable_cores();
}

void* allocate_workspace(std::size_t bytes) {
  if (bytes < huge_page) return allocate_aligned(bytes, page);
  void* memory = allocate_aligned(bytes, huge_page);
  // Advice only: without transparent huge pages the memory has small pages.
  static_cast<void>(
      madvise(memory, (bytes + huge_page - 1) / huge_page * huge_page, MADV_HUGEPAGE));
  return memory;
}

void release_workspace(void* memory) noexcept { std::free(memory); }

}  // namespace rung::detail

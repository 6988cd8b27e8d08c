// SPDX-License-Identifier: Apache-2.0
// The process in which kernels of Python strings run: it owns the simulated device, loads compiled
// modules as libraries, and serves one client over a socket. A kernel that crashes ends this
// process, not Python.
//
// A request is a line of words, followed by as many bytes as its last word says. A reply is
// "ok BYTES\n" or "error BYTES\n" and that many bytes.
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "rung/simt/simulator.hpp"

extern "C" const char* rung_emulate_take_report(int counters);
extern "C" void rung_emulate_recover();
extern "C" void rung_emulate_set_checks(const char* launches);

namespace {

using Address = std::uintptr_t;

int channel = -1;

/// Returns false where the client has gone.
bool read_all(void* to, std::size_t bytes) {
  auto* at = static_cast<char*>(to);
  while (bytes != 0) {
    const ssize_t got = read(channel, at, bytes);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += got;
    bytes -= static_cast<std::size_t>(got);
  }
  return true;
}

void write_all(const void* from, std::size_t bytes) {
  const auto* at = static_cast<const char*>(from);
  while (bytes != 0) {
    const ssize_t put = write(channel, at, bytes);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) std::_Exit(0);
    at += put;
    bytes -= static_cast<std::size_t>(put);
  }
}

void reply(const char* status, const void* data, std::size_t bytes) {
  const std::string head = std::string(status) + " " + std::to_string(bytes) + "\n";
  write_all(head.data(), head.size());
  write_all(data, bytes);
}
void reply(const std::string& text) { reply("ok", text.data(), text.size()); }

void require(cudaError_t error) {
  if (error == cudaSuccess) return;
  throw std::runtime_error(std::string(cudaGetErrorName(error)) + ": " + cudaGetErrorString(error));
}

/// Sizes in bytes of allocations and of modules' variables, whose contents are restored between the
/// orders of one launch.
std::map<Address, std::size_t> regions;

/// Device memory that holds the contents of a region, by the region's address. A copy within the
/// device carries the state of each byte, written or not; one through the host would not.
std::map<Address, void*> snapshots;

void forget_snapshot() {
  for (const auto& [address, copy] : snapshots) require(cudaFree(copy));
  snapshots.clear();
}

void take_snapshot() {
  forget_snapshot();
  for (const auto& [address, bytes] : regions) {
    void*& copy = snapshots[address];
    require(cudaMalloc(&copy, bytes));
    require(cudaMemcpy(copy, reinterpret_cast<void*>(address), bytes, cudaMemcpyDeviceToDevice));
  }
}

void restore_snapshot() {
  for (const auto& [address, copy] : snapshots) {
    require(cudaMemcpy(reinterpret_cast<void*>(address), copy, regions[address],
                       cudaMemcpyDeviceToDevice));
  }
}

void load(const std::string& path) {
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw std::runtime_error(dlerror());
  using Describe = const char* (*)(void (*)(const void*, std::size_t));
  const auto describe = reinterpret_cast<Describe>(dlsym(library, "rung_module_describe"));
  if (describe == nullptr) throw std::runtime_error(dlerror());
  reply(describe([](const void* variable, std::size_t bytes) {
    regions[reinterpret_cast<Address>(variable)] = bytes;
  }));
}

void find_symbol(std::istringstream& words) {
  std::string path, name;
  words >> path >> name;
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
  void* const found = library == nullptr ? nullptr : dlsym(library, name.c_str());
  reply(std::to_string(reinterpret_cast<Address>(found)));
}

void allocate(std::istringstream& words) {
  std::size_t bytes = 0;
  words >> bytes;
  void* memory = nullptr;
  require(cudaMalloc(&memory, bytes));
  regions[reinterpret_cast<Address>(memory)] = bytes;
  reply(std::to_string(reinterpret_cast<Address>(memory)));
}

void release(std::istringstream& words) {
  Address address = 0;
  words >> address;
  require(cudaFree(reinterpret_cast<void*>(address)));
  regions.erase(address);
  reply("");
}

void write_memory(std::istringstream& words, const std::vector<char>& data) {
  Address to = 0;
  words >> to;
  require(
      cudaMemcpy(reinterpret_cast<void*>(to), data.data(), data.size(), cudaMemcpyHostToDevice));
  reply("");
}

void read_memory(std::istringstream& words) {
  Address from = 0;
  std::size_t bytes = 0;
  words >> from >> bytes;
  std::vector<char> data(bytes);
  require(
      cudaMemcpy(data.data(), reinterpret_cast<const void*>(from), bytes, cudaMemcpyDeviceToHost));
  reply("ok", data.data(), data.size());
}

void copy_memory(std::istringstream& words) {
  Address to = 0, from = 0;
  std::size_t bytes = 0;
  words >> to >> from >> bytes;
  require(cudaMemcpy(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes,
                     cudaMemcpyDeviceToDevice));
  reply("");
}

/// Elements of 1, 2 or 4 bytes.
void fill_memory(std::istringstream& words) {
  Address to = 0;
  std::uint32_t value = 0;
  std::size_t size = 0, count = 0;
  words >> to >> value >> size >> count;
  std::vector<char> data(size * count);
  for (std::size_t i = 0; i < count; ++i) std::memcpy(data.data() + i * size, &value, size);
  require(
      cudaMemcpy(reinterpret_cast<void*>(to), data.data(), data.size(), cudaMemcpyHostToDevice));
  reply("");
}

/// Words: kernel, grid, block, dynamic shared bytes, cooperative, the offsets of the arguments in
/// the data. The reply is what the launch returned.
void launch(std::istringstream& words, std::vector<char>& data) {
  Address kernel = 0;
  dim3 grid, block;
  std::size_t shared = 0, count = 0;
  int cooperative = 0;
  words >> kernel >> grid.x >> grid.y >> grid.z >> block.x >> block.y >> block.z >> shared >>
      cooperative >> count;
  std::vector<void*> arguments(count + 1);
  for (std::size_t i = 0; i < count; ++i) {
    std::size_t offset = 0;
    words >> offset;
    arguments[i] = data.data() + offset;
  }
  const auto* const code = reinterpret_cast<const void*>(kernel);
  cudaError_t error =
      cooperative != 0
          ? cudaLaunchCooperativeKernel(code, grid, block, arguments.data(), shared, nullptr)
          : cudaLaunchKernel(code, grid, block, arguments.data(), shared, nullptr);
  if (error == cudaSuccess) error = cudaDeviceSynchronize();
  std::fflush(stdout);
  reply(error == cudaSuccess
            ? ""
            : std::string(cudaGetErrorName(error)) + ": " + cudaGetErrorString(error));
}

void report(std::istringstream& words) {
  int counters = 0;
  words >> counters;
  const std::string text = rung_emulate_take_report(counters);
  rung_emulate_recover();
  reply(text);
}

void device_attributes() {
  cudaDeviceProp p{};
  require(cudaGetDeviceProperties(&p, 0));
  std::size_t free_bytes = 0, all_bytes = 0;
  require(cudaMemGetInfo(&free_bytes, &all_bytes));
  std::ostringstream text;
  text << "{\"name\":\"" << p.name << "\",\"major\":" << p.major << ",\"minor\":" << p.minor
       << ",\"MULTIPROCESSOR_COUNT\":" << p.multiProcessorCount
       << ",\"MAX_THREADS_PER_BLOCK\":" << p.maxThreadsPerBlock
       << ",\"MAX_BLOCK_DIM_X\":" << p.maxThreadsDim[0]
       << ",\"MAX_BLOCK_DIM_Y\":" << p.maxThreadsDim[1]
       << ",\"MAX_BLOCK_DIM_Z\":" << p.maxThreadsDim[2]
       << ",\"MAX_GRID_DIM_X\":" << p.maxGridSize[0] << ",\"MAX_GRID_DIM_Y\":" << p.maxGridSize[1]
       << ",\"MAX_GRID_DIM_Z\":" << p.maxGridSize[2]
       << ",\"MAX_SHARED_MEMORY_PER_BLOCK\":" << p.sharedMemPerBlock
       << ",\"MAX_SHARED_MEMORY_PER_BLOCK_OPTIN\":" << p.sharedMemPerBlockOptin
       << ",\"MAX_SHARED_MEMORY_PER_MULTIPROCESSOR\":" << p.sharedMemPerMultiprocessor
       << ",\"TOTAL_CONSTANT_MEMORY\":" << p.totalConstMem << ",\"WARP_SIZE\":" << p.warpSize
       << ",\"MAX_REGISTERS_PER_BLOCK\":" << p.regsPerBlock << ",\"CLOCK_RATE\":" << p.clockRate
       << ",\"MEMORY_CLOCK_RATE\":" << p.memoryClockRate
       << ",\"GLOBAL_MEMORY_BUS_WIDTH\":" << p.memoryBusWidth
       << ",\"L2_CACHE_SIZE\":" << p.l2CacheSize
       << ",\"MAX_THREADS_PER_MULTIPROCESSOR\":" << p.maxThreadsPerMultiProcessor
       << ",\"COMPUTE_CAPABILITY_MAJOR\":" << p.major << ",\"COMPUTE_CAPABILITY_MINOR\":" << p.minor
       << ",\"UNIFIED_ADDRESSING\":1"
       << ",\"CONCURRENT_KERNELS\":1,\"COOPERATIVE_LAUNCH\":1"
       << ",\"free_bytes\":" << free_bytes << ",\"total_bytes\":" << all_bytes << "}";
  reply(text.str());
}

void kernel_attributes(std::istringstream& words) {
  Address kernel = 0;
  words >> kernel;
  cudaFuncAttributes a{};
  require(cudaFuncGetAttributes(&a, reinterpret_cast<const void*>(kernel)));
  std::ostringstream text;
  text << "{\"MAX_THREADS_PER_BLOCK\":" << a.maxThreadsPerBlock
       << ",\"SHARED_SIZE_BYTES\":" << a.sharedSizeBytes
       << ",\"CONST_SIZE_BYTES\":" << a.constSizeBytes
       << ",\"LOCAL_SIZE_BYTES\":" << a.localSizeBytes << ",\"NUM_REGS\":" << a.numRegs
       << ",\"MAX_DYNAMIC_SHARED_SIZE_BYTES\":" << a.maxDynamicSharedSizeBytes << "}";
  reply(text.str());
}

/// Words: kernel, dynamic shared bytes that its launches may use.
void allow_shared(std::istringstream& words) {
  Address kernel = 0;
  int bytes = 0;
  words >> kernel >> bytes;
  require(cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel),
                               cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
  reply("");
}

/// The simulated clock, in nanoseconds.
void device_time() {
  static cudaEvent_t begin = [] {
    cudaEvent_t event = nullptr;
    cudaEventCreate(&event);
    cudaEventRecord(event, nullptr);
    return event;
  }();
  cudaEvent_t now = nullptr;
  float milliseconds = 0;
  require(cudaEventCreate(&now));
  require(cudaEventRecord(now, nullptr));
  require(cudaEventElapsedTime(&milliseconds, begin, now));
  require(cudaEventDestroy(now));
  reply(std::to_string(static_cast<double>(milliseconds)));
}

void serve(const std::string& verb, std::istringstream& words, std::vector<char>& data) {
  if (verb == "load") return load(std::string(data.begin(), data.end()));
  if (verb == "symbol") return find_symbol(words);
  if (verb == "allocate") return allocate(words);
  if (verb == "free") return release(words);
  if (verb == "write") return write_memory(words, data);
  if (verb == "read") return read_memory(words);
  if (verb == "copy") return copy_memory(words);
  if (verb == "fill") return fill_memory(words);
  if (verb == "launch") return launch(words, data);
  if (verb == "report") return report(words);
  if (verb == "device") return device_attributes();
  if (verb == "kernel") return kernel_attributes(words);
  if (verb == "shared") return allow_shared(words);
  if (verb == "time") return device_time();
  if (verb == "order") {
    std::string order;
    words >> order;
    rung::simt::set_thread_order(rung::simt::ThreadOrder::parse(order));
  } else if (verb == "snapshot") {
    take_snapshot();
  } else if (verb == "restore") {
    restore_snapshot();
  } else if (verb == "forget_snapshot") {
    forget_snapshot();
  } else if (verb == "checks") {
    std::string launches;
    words >> launches;
    rung_emulate_set_checks(launches.c_str());
  } else {
    throw std::runtime_error("no such request: " + verb);
  }
  reply("");
}

}  // namespace

int main(int count, char** words) {
  if (count != 2) return 2;
  channel = std::atoi(words[1]);
  // A kernel may run for ever, and then nothing is read that would tell of the client's end.
  std::thread([client = getppid()] {
    while (getppid() == client) std::this_thread::sleep_for(std::chrono::milliseconds(500));
    std::_Exit(0);
  }).detach();
  for (;;) {
    std::string line;
    for (char c = 0; c != '\n'; line += c) {
      if (!read_all(&c, 1)) return 0;
    }
    line.pop_back();
    const std::size_t last = line.rfind(' ');
    std::vector<char> data(std::strtoull(line.c_str() + last + 1, nullptr, 10));
    if (!read_all(data.data(), data.size())) return 0;
    std::istringstream rest(line.substr(0, last));
    std::string verb;
    rest >> verb;
    try {
      serve(verb, rest, data);
    } catch (const std::exception& problem) {
      const std::string text = problem.what();
      reply("error", text.data(), text.size());
    }
  }
}

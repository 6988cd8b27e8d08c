// SPDX-License-Identifier: Apache-2.0
// Devices: their models, properties and settings.
#include "rung/emulate/runtime/model.hpp"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

#include "rung/emulate/runtime/api.hpp"
#include "rung/emulate/runtime/devices.hpp"
#include "rung/simt/simulator.hpp"

namespace rung::cuda {
namespace {

constexpr std::size_t kib = 1024;
constexpr std::size_t mib = kib * kib;
constexpr std::size_t gib = kib * mib;

// Compute capabilities are from the programming guide, other values from data sheets.
constexpr Model models[] = {
    {60, "Tesla P100", 56, 2048, 32, 64 * kib, 48 * kib, 4 * mib, 1328500, 715000, 4096, 16 * gib},
    {61, "GeForce GTX 1080 Ti", 28, 2048, 32, 96 * kib, 48 * kib, 2816 * kib, 1582000, 5505000, 352,
     11 * gib},
    {70, "Tesla V100", 80, 2048, 32, 96 * kib, 96 * kib, 6 * mib, 1380000, 877000, 4096, 16 * gib},
    {75, "Tesla T4", 40, 1024, 16, 64 * kib, 64 * kib, 4 * mib, 1590000, 5001000, 256, 16 * gib},
    {80, "NVIDIA A100", 108, 2048, 32, 164 * kib, 163 * kib, 40 * mib, 1410000, 1593000, 5120,
     80 * gib},
    {86, "NVIDIA A40", 84, 1536, 16, 100 * kib, 99 * kib, 6 * mib, 1740000, 7251000, 384, 48 * gib},
    {87, "Jetson Orin", 16, 1536, 16, 164 * kib, 163 * kib, 4 * mib, 1300000, 3199000, 256,
     32 * gib},
    {89, "GeForce RTX 4090", 128, 1536, 24, 100 * kib, 99 * kib, 72 * mib, 2520000, 10501000, 384,
     24 * gib},
    {90, "NVIDIA H200", 132, 2048, 32, 228 * kib, 227 * kib, 50 * mib, 1980000, 3201000, 6144,
     141 * gib},
    {100, "NVIDIA B200", 148, 2048, 32, 228 * kib, 227 * kib, 126 * mib, 1965000, 3996000, 8192,
     180 * gib},
    {120, "GeForce RTX 5090", 170, 1536, 32, 100 * kib, 99 * kib, 96 * mib, 2407000, 14001000, 512,
     32 * gib},
};

const Model& choose_model() {
  const char* given = std::getenv("RUNG_EMULATE_CAPABILITY");
  const int wanted = given != nullptr ? std::atoi(given) : 90;
  const Model* best = &models[0];
  for (const Model& one : models) {
    if (one.capability <= wanted) best = &one;
  }
  return *best;
}

std::size_t machine_memory() {
  return static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) *
         static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

thread_local unsigned device_flags = cudaDeviceScheduleAuto | cudaDeviceMapHost;
std::mutex limits_mutex;
std::map<cudaLimit, std::size_t>& limits() {
  static auto& values =
      *new std::map<cudaLimit, std::size_t>{{cudaLimitStackSize, 1024},
                                            {cudaLimitPrintfFifoSize, 8 * mib},
                                            {cudaLimitMallocHeapSize, 8 * mib},
                                            {cudaLimitDevRuntimeSyncDepth, 2},
                                            {cudaLimitDevRuntimePendingLaunchCount, 2048},
                                            {cudaLimitMaxL2FetchGranularity, 64},
                                            {cudaLimitPersistingL2CacheSize, 0}};
  return values;
}

}  // namespace

const Model& model() {
  static const Model& chosen = choose_model();
  return chosen;
}

simt::record::Chip modeled_caches() {
  const Model& m = model();
  simt::record::Chip chip;
  chip.multiprocessors = m.multiprocessors;
  chip.threads = m.threads_per_multiprocessor;
  chip.blocks = m.blocks_per_multiprocessor;
  chip.l2_bytes = m.l2_bytes;
  chip.shared_reserved = m.capability >= 80 ? kib : 0;
  // Sizes are from the programming guide's section on each compute capability.
  if (m.capability < 70) {  // shared memory is separate from L1
    const std::size_t l1 = m.capability == 60 ? 24 * kib : 48 * kib;
    chip.l1_bytes = l1 + m.shared_per_multiprocessor;
    chip.carveouts = {m.shared_per_multiprocessor};
    return chip;
  }
  if (m.capability == 75) {
    chip.l1_bytes = 96 * kib;
    chip.carveouts = {32 * kib, 64 * kib};
    return chip;
  }
  const bool small = m.shared_per_multiprocessor <= 100 * kib;
  chip.l1_bytes = small ? 128 * kib : m.capability >= 90 ? 256 * kib : 192 * kib;
  if (m.capability == 70) {
    chip.carveouts = {0, 8 * kib, 16 * kib, 32 * kib, 64 * kib, 96 * kib};
    return chip;
  }
  std::erase_if(chip.carveouts,
                [&](std::size_t bytes) { return bytes > m.shared_per_multiprocessor; });
  return chip;
}

}  // namespace rung::cuda

using namespace rung::cuda;  // NOLINT: implementation of the CUDA API

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* to, int device) {
  if (to == nullptr) return remember(cudaErrorInvalidValue);
  if (!is_device(device)) return remember(cudaErrorInvalidDevice);
  const Model& m = model();
  cudaDeviceProp p = {};
  std::snprintf(p.name, sizeof p.name, "%s (simulated by rung)", m.name);
  std::memcpy(p.uuid.bytes, "rung simulated!", 16);
  p.uuid.bytes[15] = static_cast<char>(device);
  p.pciBusID = device;
  p.isMultiGpuBoard = 0;
  p.totalGlobalMem = std::min(m.memory_bytes, machine_memory());
  p.sharedMemPerBlock = shared_without_asking;
  p.sharedMemPerBlockOptin = m.shared_per_block;
  p.sharedMemPerMultiprocessor = m.shared_per_multiprocessor;
  p.reservedSharedMemPerBlock = m.capability >= 80 ? 1024 : 0;
  p.regsPerBlock = p.regsPerMultiprocessor = registers_per_multiprocessor;
  p.warpSize = 32;
  p.memPitch = 0x7fffffff;
  p.maxThreadsPerBlock = p.maxThreadsDim[0] = p.maxThreadsDim[1] = 1024;
  p.maxThreadsDim[2] = 64;
  p.maxGridSize[0] = 0x7fffffff;
  p.maxGridSize[1] = p.maxGridSize[2] = 65535;
  p.clockRate = m.clock_khz;
  p.memoryClockRate = m.memory_clock_khz;
  p.memoryBusWidth = m.bus_bits;
  p.totalConstMem = 64 * kib;
  p.major = m.capability / 10;
  p.minor = m.capability % 10;
  p.textureAlignment = p.surfaceAlignment = 512;
  p.texturePitchAlignment = 32;
  p.multiProcessorCount = m.multiprocessors;
  p.maxThreadsPerMultiProcessor = m.threads_per_multiprocessor;
  p.maxBlocksPerMultiProcessor = m.blocks_per_multiprocessor;
  p.l2CacheSize = static_cast<int>(m.l2_bytes);
  p.maxTexture1D = 131072;
  p.maxTexture1DLinear = 1 << 28;
  p.maxTexture2D[0] = p.maxTexture2D[1] = p.maxSurface2D[0] = p.maxSurface2D[1] = 65536;
  p.maxTexture3D[0] = p.maxTexture3D[1] = p.maxTexture3D[2] = 16384;
  p.maxSurface1D = 32768;
  p.maxTexture1DLayered[0] = 32768;
  p.maxTexture1DLayered[1] = p.maxTexture2DLayered[2] = 2048;
  p.maxTexture2DLayered[0] = p.maxTexture2DLayered[1] = 32768;
  p.deviceOverlap = p.concurrentKernels = p.canMapHostMemory = p.unifiedAddressing = 1;
  p.managedMemory = p.concurrentManagedAccess = p.computePreemptionSupported = 1;
  p.streamPrioritiesSupported = p.globalL1CacheSupported = p.localL1CacheSupported = 1;
  p.cooperativeLaunch = p.hostRegisterSupported = p.memoryPoolsSupported = 1;
  p.asyncEngineCount = 3;
  p.singleToDoublePrecisionPerfRatio = 2;
  p.canUseHostPointerForRegisteredMem = 1;
  p.clusterLaunch = m.capability >= 90 ? 1 : 0;
  *to = p;
  return remember(cudaSuccess);
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  cudaDeviceProp p;
  if (const cudaError_t error = cudaGetDeviceProperties(&p, device); error != cudaSuccess) {
    return error;
  }
  if (value == nullptr) return remember(cudaErrorInvalidValue);
  const std::map<cudaDeviceAttr, int> values = {
      {cudaDevAttrMaxThreadsPerBlock, p.maxThreadsPerBlock},
      {cudaDevAttrMaxBlockDimX, p.maxThreadsDim[0]},
      {cudaDevAttrMaxBlockDimY, p.maxThreadsDim[1]},
      {cudaDevAttrMaxBlockDimZ, p.maxThreadsDim[2]},
      {cudaDevAttrMaxGridDimX, p.maxGridSize[0]},
      {cudaDevAttrMaxGridDimY, p.maxGridSize[1]},
      {cudaDevAttrMaxGridDimZ, p.maxGridSize[2]},
      {cudaDevAttrMaxSharedMemoryPerBlock, static_cast<int>(p.sharedMemPerBlock)},
      {cudaDevAttrTotalConstantMemory, static_cast<int>(p.totalConstMem)},
      {cudaDevAttrWarpSize, p.warpSize},
      {cudaDevAttrMaxPitch, static_cast<int>(p.memPitch)},
      {cudaDevAttrMaxRegistersPerBlock, p.regsPerBlock},
      {cudaDevAttrClockRate, p.clockRate},
      {cudaDevAttrTextureAlignment, static_cast<int>(p.textureAlignment)},
      {cudaDevAttrGpuOverlap, p.deviceOverlap},
      {cudaDevAttrMultiProcessorCount, p.multiProcessorCount},
      {cudaDevAttrCanMapHostMemory, p.canMapHostMemory},
      {cudaDevAttrConcurrentKernels, p.concurrentKernels},
      {cudaDevAttrMemoryClockRate, p.memoryClockRate},
      {cudaDevAttrGlobalMemoryBusWidth, p.memoryBusWidth},
      {cudaDevAttrL2CacheSize, p.l2CacheSize},
      {cudaDevAttrMaxThreadsPerMultiProcessor, p.maxThreadsPerMultiProcessor},
      {cudaDevAttrAsyncEngineCount, p.asyncEngineCount},
      {cudaDevAttrUnifiedAddressing, p.unifiedAddressing},
      {cudaDevAttrComputeCapabilityMajor, p.major},
      {cudaDevAttrComputeCapabilityMinor, p.minor},
      {cudaDevAttrStreamPrioritiesSupported, p.streamPrioritiesSupported},
      {cudaDevAttrGlobalL1CacheSupported, p.globalL1CacheSupported},
      {cudaDevAttrLocalL1CacheSupported, p.localL1CacheSupported},
      {cudaDevAttrMaxSharedMemoryPerMultiprocessor, static_cast<int>(p.sharedMemPerMultiprocessor)},
      {cudaDevAttrMaxRegistersPerMultiprocessor, p.regsPerMultiprocessor},
      {cudaDevAttrManagedMemory, p.managedMemory},
      {cudaDevAttrSingleToDoublePrecisionPerfRatio, p.singleToDoublePrecisionPerfRatio},
      {cudaDevAttrConcurrentManagedAccess, p.concurrentManagedAccess},
      {cudaDevAttrComputePreemptionSupported, p.computePreemptionSupported},
      {cudaDevAttrCanUseHostPointerForRegisteredMem, p.canUseHostPointerForRegisteredMem},
      {cudaDevAttrCooperativeLaunch, p.cooperativeLaunch},
      {cudaDevAttrMaxSharedMemoryPerBlockOptin, static_cast<int>(p.sharedMemPerBlockOptin)},
      {cudaDevAttrHostRegisterSupported, p.hostRegisterSupported},
      {cudaDevAttrMaxBlocksPerMultiprocessor, p.maxBlocksPerMultiProcessor},
      {cudaDevAttrReservedSharedMemoryPerBlock, static_cast<int>(p.reservedSharedMemPerBlock)},
      {cudaDevAttrMemoryPoolsSupported, p.memoryPoolsSupported},
      {cudaDevAttrClusterLaunch, p.clusterLaunch},
  };
  const auto found = values.find(attribute);
  *value = found != values.end() ? found->second : 0;
  return remember(cudaSuccess);
}

cudaError_t cudaSetDeviceFlags(unsigned int flags) {
  device_flags = flags | cudaDeviceMapHost;
  return remember(cudaSuccess);
}
cudaError_t cudaGetDeviceFlags(unsigned int* flags) {
  *flags = device_flags;
  return remember(cudaSuccess);
}
cudaError_t cudaDeviceGetLimit(std::size_t* value, cudaLimit limit) {
  const std::lock_guard lock(limits_mutex);
  const auto found = limits().find(limit);
  if (found == limits().end()) return remember(cudaErrorUnsupportedLimit);
  *value = found->second;
  return remember(cudaSuccess);
}
cudaError_t cudaDeviceSetLimit(cudaLimit limit, std::size_t value) {
  const std::lock_guard lock(limits_mutex);
  const auto found = limits().find(limit);
  if (found == limits().end()) return remember(cudaErrorUnsupportedLimit);
  found->second = value;
  // Stack frames are larger on a CPU than on a GPU because of return addresses and spilled
  // registers.
  if (limit == cudaLimitStackSize) rung::simt::set_stack_bytes(256 * kib + 4 * value);
  return remember(cudaSuccess);
}

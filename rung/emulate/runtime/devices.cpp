// SPDX-License-Identifier: Apache-2.0
// Devices. All are identical; peer access must be enabled.
#include "rung/emulate/runtime/devices.hpp"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>

#include "rung/emulate/runtime/api.hpp"
#include "rung/emulate/runtime/memory.hpp"

namespace rung::cuda {
namespace {

thread_local int chosen = 0;
// For each device, a mask of the devices that may access its memory.
std::atomic<std::uint64_t> visitors[max_devices];

std::uint64_t bit(int device) { return std::uint64_t{1} << device; }

/// Enables or disables the current device's access to the peer's memory.
cudaError_t change_access(int peer, bool enable, cudaError_t already) {
  if (!is_device(peer) || peer == current_device()) return cudaErrorInvalidDevice;
  const std::uint64_t me = bit(current_device());
  const std::uint64_t before = enable ? visitors[peer].fetch_or(me) : visitors[peer].fetch_and(~me);
  if (((before & me) != 0) == enable) return already;
  renew_access(peer);
  return cudaSuccess;
}

}  // namespace

int device_count() {
  static const int count = [] {
    const char* given = std::getenv("RUNG_EMULATE_DEVICES");
    return given != nullptr ? std::clamp(std::atoi(given), 1, max_devices) : 1;
  }();
  return count;
}
bool is_device(int device) { return device >= 0 && device < device_count(); }
int current_device() { return chosen; }

OnDevice::OnDevice(int device) : before_(chosen) { chosen = device; }
OnDevice::~OnDevice() { chosen = before_; }

std::uint64_t devices_with_access(int device) { return bit(device) | visitors[device]; }
void forget_peers(int device) {
  for (int peer = 0; peer < device_count(); ++peer) {
    if ((visitors[peer].fetch_and(~bit(device)) & bit(device)) != 0) renew_access(peer);
  }
}

}  // namespace rung::cuda

using namespace rung::cuda;  // NOLINT: implementation of the CUDA API

cudaError_t cudaGetDeviceCount(int* count) {
  if (count == nullptr) return remember(cudaErrorInvalidValue);
  *count = device_count();
  return remember(cudaSuccess);
}
cudaError_t cudaGetDevice(int* device) {
  if (device == nullptr) return remember(cudaErrorInvalidValue);
  *device = current_device();
  return remember(cudaSuccess);
}
cudaError_t cudaSetDevice(int device) {
  if (!is_device(device)) return remember(cudaErrorInvalidDevice);
  chosen = device;
  return remember(cudaSuccess);
}
cudaError_t cudaInitDevice(int device, unsigned, unsigned) {
  return remember(is_device(device) ? cudaSuccess : cudaErrorInvalidDevice);
}
cudaError_t cudaSetValidDevices(int* devices, int count) {
  const bool good =
      count == 0 || (devices != nullptr && std::all_of(devices, devices + count, is_device));
  return remember(good ? cudaSuccess : cudaErrorInvalidDevice);
}
cudaError_t cudaChooseDevice(int* device, const cudaDeviceProp*) {
  *device = 0;  // all devices are identical
  return remember(cudaSuccess);
}
cudaError_t cudaDeviceGetPCIBusId(char* id, int length, int device) {
  if (!is_device(device)) return remember(cudaErrorInvalidDevice);
  std::snprintf(id, static_cast<std::size_t>(length), "0000:%02x:00.0", device);
  return remember(cudaSuccess);
}
cudaError_t cudaDeviceGetByPCIBusId(int* device, const char* id) {
  unsigned bus = 0;
  const char* last = id;  // "domain:bus:device.function"; the domain is optional
  for (const char* c = id; *c != '\0'; ++c) {
    if (*c == ':' && last != id) break;
    if (*c == ':') last = c + 1;
  }
  if (std::count(id, id + std::char_traits<char>::length(id), ':') == 1) last = id;
  if (std::sscanf(last, "%x", &bus) != 1 || !is_device(static_cast<int>(bus))) {
    return remember(cudaErrorInvalidDevice);
  }
  *device = static_cast<int>(bus);
  return remember(cudaSuccess);
}

cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  if (can == nullptr) return remember(cudaErrorInvalidValue);
  if (!is_device(device) || !is_device(peer)) return remember(cudaErrorInvalidDevice);
  *can = device != peer ? 1 : 0;
  return remember(cudaSuccess);
}
cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
  if (flags != 0) return remember(cudaErrorInvalidValue);
  return remember(change_access(peer, true, cudaErrorPeerAccessAlreadyEnabled));
}
cudaError_t cudaDeviceDisablePeerAccess(int peer) {
  return remember(change_access(peer, false, cudaErrorPeerAccessNotEnabled));
}
cudaError_t cudaDeviceGetP2PAttribute(int* value, cudaDeviceP2PAttr attribute, int device,
                                      int peer) {
  if (value == nullptr) return remember(cudaErrorInvalidValue);
  if (!is_device(device) || !is_device(peer) || device == peer) {
    return remember(cudaErrorInvalidDevice);
  }
  *value = attribute == cudaDevP2PAttrPerformanceRank ? 0 : 1;
  return remember(cudaSuccess);
}

// SPDX-License-Identifier: Apache-2.0
// Devices, the current device of each host thread, and peer access.
#pragma once

#include <cstdint>

namespace rung::cuda {

/// Maximum number of devices, limited by the masks of record::Memory.
inline constexpr int max_devices = 64;

/// Returns the number of devices given by `rung emulate --devices`; 1 by default.
int device_count();
bool is_device(int device);
/// Returns the current device of the calling host thread.
int current_device();
/// Makes a device the current one of this thread during the object's lifetime.
class OnDevice {
 public:
  explicit OnDevice(int device);
  ~OnDevice();
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

 private:
  int before_;
};

/// Returns a mask of the devices that may access cudaMalloc memory of `device`: the device itself,
/// and devices that have enabled peer access to it.
std::uint64_t devices_with_access(int device);
/// Revokes the device's access to its peers, for cudaDeviceReset.
void forget_peers(int device);

}  // namespace rung::cuda

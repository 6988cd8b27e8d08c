// SPDX-License-Identifier: Apache-2.0
// Lists the devices, the current one of each host thread, and the access that each has to the
// memory of others.
#pragma once

#include <cstdint>

namespace rung::cuda {

/// Devices as bits in the masks of record::Memory.
inline constexpr int max_devices = 64;

/// Returns the number given by `rung emulate --devices`; 1 by default.
int device_count();
bool is_device(int device);
/// Returns the current device of the calling host thread.
int current_device();
/// Makes a device the current one of this thread for as long as it lives.
class OnDevice {
 public:
  explicit OnDevice(int device);
  ~OnDevice();
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

 private:
  int before_;
};

/// Returns the devices that may access memory from cudaMalloc on this one: itself, and those that
/// have enabled it as a peer.
std::uint64_t devices_with_access(int device);
/// Resets the device's access to peers, for cudaDeviceReset.
void forget_peers(int device);

}  // namespace rung::cuda

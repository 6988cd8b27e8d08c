// SPDX-License-Identifier: Apache-2.0
// Which devices there are, which one each host thread means, and who may access whose memory.
#pragma once

#include <cstdint>

namespace rung::cuda {

/// A bit each in the masks of record::Memory.
inline constexpr int max_devices = 64;

/// What `rung emulate --devices` says; 1 by default.
int device_count();
bool is_device(int device);
/// Of the calling host thread.
int current_device();
/// What this thread does while one exists concerns that device.
class OnDevice {
 public:
  explicit OnDevice(int device);
  ~OnDevice();
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

 private:
  int before_;
};

/// The devices that may access what cudaMalloc gave out on this one: itself, and those that have
/// enabled it as a peer.
std::uint64_t devices_with_access(int device);
/// cudaDeviceReset: the device accesses no peers any more.
void forget_peers(int device);

}  // namespace rung::cuda

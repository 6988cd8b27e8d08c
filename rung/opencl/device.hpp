// SPDX-License-Identifier: Apache-2.0
// OpenCL devices: found once, each opened on first use with a context and one in-order queue, which
// all contexts of rung on that device share. For kernels' host sides see launch.hpp.
#pragma once

#include <cstddef>
#include <mutex>
#include <string>
#include <vector>

#include "rung/opencl/limits.hpp"
#include "rung/opencl/runtime.hpp"

namespace rung::opencl {

/// A device of a platform, as the loader lists them.
struct FoundDevice {
  int platform;  // index among the platforms
  cl_platform_id platform_id;
  cl_device_id id;
};

struct FoundDevices {
  std::vector<std::string> platforms;  // names
  std::vector<FoundDevice> devices;    // of all platforms, in order
  std::string why_none;                // "" where there are devices
};
const FoundDevices& found_devices();

/// Text of a device, "Portable Computing Language" or so.
std::string device_text(cl_device_id device, cl_device_info what);

/// A device with its context and queue, which stay open until the process ends.
struct OpenDevice {
  cl_device_id id = nullptr;
  std::string name;
  Limits limits;
  cl_context context = nullptr;
  cl_command_queue queue = nullptr;
  /// Held while a kernel's arguments are set and it is enqueued: they belong to the kernel object.
  std::mutex launching;
};
/// The device of this index over all platforms, which exists.
OpenDevice& open_device(int index);

/// An address that rung gave out, as OpenCL has it: a buffer, and bytes from its start.
struct BufferPlace {
  cl_mem buffer = nullptr;
  std::size_t offset = 0;
};
/// Null for a null address. Throws Error(invalid_argument) for memory that is not the device's.
BufferPlace place_of(int device, const void* address);

}  // namespace rung::opencl

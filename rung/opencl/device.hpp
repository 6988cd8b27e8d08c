// SPDX-License-Identifier: Apache-2.0
// OpenCL devices: found once, each opened on first use with a context and one in-order queue, which
// all rung contexts on the device share. launch.hpp launches kernels.
#pragma once

#include <cstddef>
#include <mutex>
#include <string>
#include <vector>

#include "rung/opencl/limits.hpp"
#include "rung/opencl/runtime.hpp"

namespace rung::opencl {

/// A device of a platform, as listed by the loader.
struct FoundDevice {
  int platform;  // index among the platforms
  cl_platform_id platform_id;
  cl_device_id id;
};

struct FoundDevices {
  std::vector<std::string> platforms;  // names
  std::vector<FoundDevice> devices;    // of all platforms, in order
  std::string why_none;                // reason for no devices; "" if there are any
};
const FoundDevices& found_devices();

/// Returns a text property of a device, such as its name.
std::string device_text(cl_device_id device, cl_device_info what);

/// A device with its context and queue, which stay open until the process ends.
struct OpenDevice {
  cl_device_id id = nullptr;
  std::string name;
  Limits limits;
  cl_context context = nullptr;
  cl_command_queue queue = nullptr;
  /// Held while a kernel's arguments are set and the kernel is enqueued: arguments are state of the
  /// kernel object.
  std::mutex launching;
};
/// Returns the device of a valid index over all platforms; opens it on first use.
OpenDevice& open_device(int index);

/// OpenCL's equivalent of an address that allocate() returned: a buffer and an offset in bytes.
struct BufferPlace {
  cl_mem buffer = nullptr;
  std::size_t offset = 0;
};
/// Returns the buffer and offset of an address; a null buffer for a null address. Throws
/// Error(invalid_argument) for memory outside the device's buffers.
BufferPlace place_of(int device, const void* address);

}  // namespace rung::opencl

// SPDX-License-Identifier: Apache-2.0
// Finds and opens OpenCL devices, and registers them with core.
#include "rung/opencl/device.hpp"

#include <algorithm>
#include <array>
#include <memory>

#include "rung/core/error.hpp"
#include "rung/opencl/memory.hpp"

namespace rung::opencl {
namespace {

std::string platform_name(cl_platform_id platform) {
  std::size_t length = 0;
  runtime().get_platform_info(platform, CL_PLATFORM_NAME, 0, nullptr, &length);
  std::string name(length, '\0');
  runtime().get_platform_info(platform, CL_PLATFORM_NAME, length, name.data(), nullptr);
  return name.substr(0, name.find('\0'));
}

FoundDevices find() {
  FoundDevices found;
  const Runtime& cl = runtime();
  if (!cl.why_not.empty()) {
    found.why_none = cl.why_not;
    return found;
  }
  cl_uint count = 0;
  // Without a platform the loader returns CL_PLATFORM_NOT_FOUND_KHR.
  if (cl.get_platform_ids(0, nullptr, &count) != CL_SUCCESS) count = 0;
  std::vector<cl_platform_id> platforms(count);
  if (count > 0) cl.get_platform_ids(count, platforms.data(), nullptr);
  for (cl_platform_id platform : platforms) {
    const auto index = static_cast<int>(found.platforms.size());
    found.platforms.push_back(platform_name(platform));
    cl_uint devices = 0;
    if (cl.get_device_ids(platform, CL_DEVICE_TYPE_ALL, 0, nullptr, &devices) != CL_SUCCESS) {
      continue;
    }
    std::vector<cl_device_id> ids(devices);
    cl.get_device_ids(platform, CL_DEVICE_TYPE_ALL, devices, ids.data(), nullptr);
    for (cl_device_id id : ids) found.devices.push_back({index, platform, id});
  }
  if (found.devices.empty()) {
    found.why_none = found.platforms.empty() ? "the OpenCL loader finds no platform; install the "
                                               "device's driver, or pocl-opencl-icd for the CPU"
                                             : "no platform of OpenCL has a device";
  }
  return found;
}

template <class T>
T device_value(cl_device_id device, cl_device_info what) {
  T value{};
  check(runtime().get_device_info(device, what, sizeof(T), &value, nullptr),
        "querying a device's limits");
  return value;
}

Limits limits_of(cl_device_id id) {
  const auto axes = device_value<cl_uint>(id, CL_DEVICE_MAX_WORK_ITEM_DIMENSIONS);
  std::vector<std::size_t> sides(axes);
  check(runtime().get_device_info(id, CL_DEVICE_MAX_WORK_ITEM_SIZES,
                                  sides.size() * sizeof(std::size_t), sides.data(), nullptr),
        "querying a device's limits");
  return {
      .group_items = device_value<std::size_t>(id, CL_DEVICE_MAX_WORK_GROUP_SIZE),
      .side_items = std::min(sides[0], sides[1]),
      .local_bytes = device_value<cl_ulong>(id, CL_DEVICE_LOCAL_MEM_SIZE),
      .largest_buffer = device_value<cl_ulong>(id, CL_DEVICE_MAX_MEM_ALLOC_SIZE),
      .compute_units = static_cast<int>(device_value<cl_uint>(id, CL_DEVICE_MAX_COMPUTE_UNITS))};
}

std::unique_ptr<OpenDevice> open(const FoundDevice& found) {
  auto device = std::make_unique<OpenDevice>();
  device->id = found.id;
  device->name = device_text(found.id, CL_DEVICE_NAME);
  device->limits = limits_of(found.id);
  const std::array<cl_context_properties, 3> properties{
      CL_CONTEXT_PLATFORM, reinterpret_cast<cl_context_properties>(found.platform_id), 0};
  cl_int status = CL_SUCCESS;
  device->context =
      runtime().create_context(properties.data(), 1, &found.id, nullptr, nullptr, &status);
  check(status, "opening " + device->name);
  device->queue = runtime().create_command_queue(device->context, found.id, 0, &status);
  check(status, "making a queue on " + device->name);
  return device;
}

DeviceInfo info(int index) {
  const FoundDevice& found = found_devices().devices[static_cast<std::size_t>(index)];
  const Limits limits = limits_of(found.id);
  return {.name = device_text(found.id, CL_DEVICE_NAME),
          .sms = limits.compute_units,
          .shared_per_block = limits.local_bytes,
          .shared_per_sm = limits.local_bytes,
          .l2_bytes = device_value<cl_ulong>(found.id, CL_DEVICE_GLOBAL_MEM_CACHE_SIZE),
          .memory_bytes = device_value<cl_ulong>(found.id, CL_DEVICE_GLOBAL_MEM_SIZE)};
}

int index_of(int platform, int device) {
  const FoundDevices& found = found_devices();
  const auto platforms = static_cast<int>(found.platforms.size());
  if (platform < 0 || platform >= platforms) {
    throw Error(ErrorCode::invalid_argument, "opencl platform " + std::to_string(platform) +
                                                 " does not exist; accepted: 0 to " +
                                                 std::to_string(platforms - 1));
  }
  int seen = 0;
  for (std::size_t i = 0; i < found.devices.size(); ++i) {
    if (found.devices[i].platform != platform) continue;
    if (seen++ == device) return static_cast<int>(i);
  }
  const std::string accepted =
      seen == 0 ? "none, it has no device" : "0 to " + std::to_string(seen - 1);
  throw Error(ErrorCode::invalid_argument, "device " + std::to_string(device) +
                                               " of opencl platform " + std::to_string(platform) +
                                               " (" +
                                               found.platforms[static_cast<std::size_t>(platform)] +
                                               ") does not exist; accepted: " + accepted);
}

void* create_stream(int index) {
  const OpenDevice& device = open_device(index);
  cl_int status = CL_SUCCESS;
  cl_command_queue queue = runtime().create_command_queue(device.context, device.id, 0, &status);
  check(status, "making a queue on " + device.name);
  return queue;
}

void synchronize(int index, void* stream) {
  OpenDevice& device = open_device(index);
  check(runtime().finish(stream != nullptr ? static_cast<cl_command_queue>(stream) : device.queue),
        "waiting for the work on " + device.name);
}

const DeviceRegistration self{
    {.backend = Backend::opencl,
     .device_count = [] { return static_cast<int>(found_devices().devices.size()); },
     .why_not = [] { return found_devices().why_none.c_str(); },
     .info = info,
     .allocate = allocate,
     .release = release,
     .copy = copy,
     .create_stream = create_stream,
     .destroy_stream =
         [](int, void* stream) noexcept {
           runtime().release_command_queue(static_cast<cl_command_queue>(stream));
         },
     .synchronize = synchronize,
     .index_of = index_of}};

}  // namespace

const FoundDevices& found_devices() {
  static const FoundDevices found = find();
  return found;
}

std::string device_text(cl_device_id device, cl_device_info what) {
  std::size_t length = 0;
  check(runtime().get_device_info(device, what, 0, nullptr, &length), "querying a device's name");
  std::string text(length, '\0');
  check(runtime().get_device_info(device, what, length, text.data(), nullptr),
        "querying a device's name");
  return text.substr(0, text.find('\0'));
}

OpenDevice& open_device(int index) {
  static std::mutex guard;
  // Never destroyed: drivers may be unloaded before static objects are destroyed.
  static auto& opened =
      *new std::vector<std::unique_ptr<OpenDevice>>(found_devices().devices.size());
  const std::lock_guard lock(guard);
  std::unique_ptr<OpenDevice>& device = opened[static_cast<std::size_t>(index)];
  if (device == nullptr) {
    device = open(found_devices().devices[static_cast<std::size_t>(index)]);
  }
  return *device;
}

const Limits& limits(const Context& context) {
  // For descriptions of rungs on a machine without OpenCL.
  static constexpr Limits usual{
      .group_items = 256, .side_items = 256, .local_bytes = 32768, .largest_buffer = 1U << 30};
  if (context.backend() != Backend::opencl) return usual;
  return open_device(context.device().index).limits;
}

int largest_side(const Context& context, int most, int arrays) {
  const Limits& device = limits(context);
  int side = most;
  const auto fits = [&] {
    const auto items = static_cast<std::size_t>(side);
    return items <= device.side_items && items * items <= device.group_items &&
           static_cast<std::size_t>(arrays) * items * (items + 1) * sizeof(float) <=
               device.local_bytes;
  };
  while (side > 1 && !fits()) side /= 2;
  return side;
}

int largest_group(const Context& context, int most) {
  const Limits& device = limits(context);
  int items = most;
  while (static_cast<std::size_t>(items) > std::min(device.group_items, device.side_items)) {
    items /= 2;
  }
  return items;
}

}  // namespace rung::opencl

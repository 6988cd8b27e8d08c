// SPDX-License-Identifier: Apache-2.0
// Compiles, caches and enqueues kernels.
#include "rung/opencl/launch.hpp"

#include <map>
#include <mutex>
#include <tuple>

#include "rung/core/error.hpp"
#include "rung/opencl/device.hpp"

namespace rung::opencl {
namespace {

/// Cache key of a compiled kernel: device, path and address of the source text, options, name.
using Key = std::tuple<int, std::string, const char*, std::string, std::string>;

std::string build_log(cl_program program, cl_device_id device) {
  std::size_t length = 0;
  runtime().get_program_build_info(program, device, CL_PROGRAM_BUILD_LOG, 0, nullptr, &length);
  std::string log(length, '\0');
  runtime().get_program_build_info(program, device, CL_PROGRAM_BUILD_LOG, length, log.data(),
                                   nullptr);
  return log.substr(0, log.find('\0'));
}

/// Returns the source with a #line directive, so that compiler messages name its path. The
/// directive replaces the first line if it is a comment, so that tools that ignore #line count the
/// same lines.
std::string with_path(const Source& source) {
  const std::string path = std::string("\"") + source.path + "\"\n";
  const std::string text = source.text;
  const std::size_t end = text.find('\n');
  if (!text.starts_with("//") || end == std::string::npos) return "#line 1 " + path + text;
  return "#line 2 " + path + text.substr(end + 1);
}

cl_kernel compile(const OpenDevice& device, const Kernel& kernel) {
  const Runtime& cl = runtime();
  const std::string text = with_path(kernel.source);
  const char* lines = text.c_str();
  cl_int status = CL_SUCCESS;
  cl_program program = cl.create_program_with_source(device.context, 1, &lines, nullptr, &status);
  check(status, std::string("reading ") + kernel.source.path);
  std::string options = "-cl-std=CL1.2";
  if (!kernel.options.empty()) options += " " + kernel.options;
  status = cl.build_program(program, 1, &device.id, options.c_str(), nullptr, nullptr);
  if (status != CL_SUCCESS) {
    const std::string log = build_log(program, device.id);
    cl.release_program(program);
    throw Error(ErrorCode::device, std::string("OpenCL: ") + kernel.source.path +
                                       " does not compile on " + device.name + " with " + options +
                                       ":\n" + log);
  }
  cl_kernel compiled = cl.create_kernel(program, kernel.name, &status);
  cl.release_program(program);  // the kernel keeps it
  check(status, std::string("finding ") + kernel.name + " in " + kernel.source.path);
  return compiled;
}

/// Returns the kernel, compiled on first use; the caller holds device.launching.
cl_kernel compiled(int index, const OpenDevice& device, const Kernel& kernel) {
  static std::mutex guard;
  static auto& kernels = *new std::map<Key, cl_kernel>;
  const Key key{index, kernel.source.path, kernel.source.text, kernel.options, kernel.name};
  {
    const std::lock_guard lock(guard);
    if (const auto found = kernels.find(key); found != kernels.end()) return found->second;
  }
  cl_kernel made = compile(device, kernel);
  const std::lock_guard lock(guard);
  return kernels[key] = made;
}

/// Temporary buffers of a launch. Released after the enqueue; the command queue retains them until
/// the kernel has finished.
class OwnBuffers {
 public:
  OwnBuffers() = default;
  OwnBuffers(const OwnBuffers&) = delete;
  OwnBuffers& operator=(const OwnBuffers&) = delete;
  ~OwnBuffers() {
    for (cl_mem buffer : buffers_) runtime().release_mem_object(buffer);
  }
  /// Copies `bytes` bytes from `place` on to a new buffer and returns it; for `constant` arguments,
  /// whose whole buffer must fit in the device's constant memory.
  cl_mem copy_of(const OpenDevice& device, const BufferPlace& place, std::size_t bytes) {
    cl_int status = CL_SUCCESS;
    cl_mem buffer =
        runtime().create_buffer(device.context, CL_MEM_READ_ONLY, bytes, nullptr, &status);
    check(status, "a buffer of " + std::to_string(bytes) + " bytes on " + device.name);
    buffers_.push_back(buffer);
    check(runtime().enqueue_copy_buffer(device.queue, place.buffer, buffer, place.offset, 0, bytes,
                                        0, nullptr, nullptr),
          "copying to constant memory");
    return buffer;
  }

 private:
  std::vector<cl_mem> buffers_;
};

/// Sets a kernel's arguments one after the other.
class Setter {
 public:
  Setter(int index, const OpenDevice& device, cl_kernel kernel, const char* name)
      : index_(index), device_(device), kernel_(kernel), name_(name) {}

  void set(const detail::Argument& argument, OwnBuffers& own) {
    using Kind = detail::Argument::Kind;
    if (argument.kind == Kind::value) return put(argument.data, argument.bytes);
    if (argument.kind == Kind::local) return put(nullptr, argument.bytes);
    const BufferPlace place = place_of(index_, argument.data);
    if (argument.kind == Kind::constant) {
      cl_mem copy = own.copy_of(device_, place, argument.bytes);
      return put(&copy, sizeof(cl_mem));
    }
    put(&place.buffer, sizeof(cl_mem));
    // The offset is a multiple of the element: tensors are aligned to elements, buffers to pages.
    const cl_ulong first = place.offset / argument.bytes;
    put(&first, sizeof first);
  }

 private:
  void put(const void* data, std::size_t bytes) {
    check(runtime().set_kernel_arg(kernel_, next_, bytes, data),
          std::string("argument ") + std::to_string(next_) + " of " + name_);
    ++next_;
  }

  int index_;
  const OpenDevice& device_;
  cl_kernel kernel_;
  const char* name_;
  cl_uint next_ = 0;
};

}  // namespace

void detail::launch(const Context& context, const Kernel& kernel, const Groups& range,
                    const Argument* arguments, std::size_t count) {
  const int index = context.device().index;
  OpenDevice& device = open_device(index);
  const std::lock_guard lock(device.launching);
  cl_kernel found = compiled(index, device, kernel);
  OwnBuffers own;
  Setter setter(index, device, found, kernel.name);
  for (std::size_t i = 0; i < count; ++i) setter.set(arguments[i], own);
  const auto size = [](std::int64_t extent) { return static_cast<std::size_t>(extent); };
  const std::array items{size(range.items.x), size(range.items.y), size(range.items.z)};
  const std::array global{size(range.groups.x) * items[0], size(range.groups.y) * items[1],
                          size(range.groups.z) * items[2]};
  const cl_int status = runtime().enqueue_nd_range_kernel(
      device.queue, found, 3, nullptr, global.data(), items.data(), 0, nullptr, nullptr);
  if (status == CL_INVALID_WORK_GROUP_SIZE) {
    std::size_t most = 0;
    runtime().get_kernel_work_group_info(found, device.id, CL_KERNEL_WORK_GROUP_SIZE, sizeof most,
                                         &most, nullptr);
    throw Error(ErrorCode::device,
                std::string("OpenCL: ") + kernel.name + " needs work-groups of " +
                    std::to_string(items[0] * items[1] * items[2]) + " work-items; " + device.name +
                    " allows it " + std::to_string(most));
  }
  check(status, std::string("launching ") + kernel.name + " on " + device.name);
}

}  // namespace rung::opencl

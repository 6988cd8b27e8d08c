// SPDX-License-Identifier: Apache-2.0
// Loads libOpenCL.so.1, and names status codes.
#include "rung/opencl/runtime.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <utility>

#include "rung/core/error.hpp"

namespace rung::opencl {
namespace {

constexpr const char* library_name = "libOpenCL.so.1";

class Symbols {
 public:
  Symbols() {
    const char* const requested = std::getenv("RUNG_OPENCL_LIBRARY");
    const bool is_requested = requested != nullptr && *requested != '\0';
    const std::string file = is_requested ? requested : library_name;
    if (!is_requested && dlsym(RTLD_DEFAULT, "clGetPlatformIDs") != nullptr) {
      handle_ = RTLD_DEFAULT;
      return;
    }
    handle_ = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle_ != nullptr) return;
    const char* const reason = dlerror();
    const std::string said = reason != nullptr ? reason : "";
    why_not = said.find("No such file") != std::string::npos ? file + " not found" : said;
  }

  template <class Function>
  void find(Function& function, const char* name) {
    function = why_not.empty() ? reinterpret_cast<Function>(dlsym(handle_, name)) : nullptr;
    if (function == nullptr && why_not.empty()) {
      why_not = std::string("the OpenCL library lacks ") + name;
    }
  }

  std::string why_not;

 private:
  void* handle_ = nullptr;  // never closed: drivers do not survive dlclose()
};

Runtime load() {
  Symbols symbols;
  Runtime cl{};
  symbols.find(cl.get_platform_ids, "clGetPlatformIDs");
  symbols.find(cl.get_platform_info, "clGetPlatformInfo");
  symbols.find(cl.get_device_ids, "clGetDeviceIDs");
  symbols.find(cl.get_device_info, "clGetDeviceInfo");
  symbols.find(cl.create_context, "clCreateContext");
  symbols.find(cl.create_command_queue, "clCreateCommandQueue");
  symbols.find(cl.release_command_queue, "clReleaseCommandQueue");
  symbols.find(cl.create_buffer, "clCreateBuffer");
  symbols.find(cl.release_mem_object, "clReleaseMemObject");
  symbols.find(cl.create_program_with_source, "clCreateProgramWithSource");
  symbols.find(cl.build_program, "clBuildProgram");
  symbols.find(cl.get_program_build_info, "clGetProgramBuildInfo");
  symbols.find(cl.release_program, "clReleaseProgram");
  symbols.find(cl.create_kernel, "clCreateKernel");
  symbols.find(cl.set_kernel_arg, "clSetKernelArg");
  symbols.find(cl.get_kernel_work_group_info, "clGetKernelWorkGroupInfo");
  symbols.find(cl.enqueue_nd_range_kernel, "clEnqueueNDRangeKernel");
  symbols.find(cl.enqueue_read_buffer, "clEnqueueReadBuffer");
  symbols.find(cl.enqueue_write_buffer, "clEnqueueWriteBuffer");
  symbols.find(cl.enqueue_copy_buffer, "clEnqueueCopyBuffer");
  symbols.find(cl.finish, "clFinish");
  cl.why_not = std::move(symbols.why_not);
  return cl;
}

const char* name_of(cl_int status) {
  switch (status) {
    case CL_DEVICE_NOT_AVAILABLE:
      return "CL_DEVICE_NOT_AVAILABLE";
    case CL_COMPILER_NOT_AVAILABLE:
      return "CL_COMPILER_NOT_AVAILABLE";
    case CL_MEM_OBJECT_ALLOCATION_FAILURE:
      return "CL_MEM_OBJECT_ALLOCATION_FAILURE";
    case CL_OUT_OF_RESOURCES:
      return "CL_OUT_OF_RESOURCES";
    case CL_OUT_OF_HOST_MEMORY:
      return "CL_OUT_OF_HOST_MEMORY";
    case CL_BUILD_PROGRAM_FAILURE:
      return "CL_BUILD_PROGRAM_FAILURE";
    case CL_INVALID_VALUE:
      return "CL_INVALID_VALUE";
    case CL_INVALID_MEM_OBJECT:
      return "CL_INVALID_MEM_OBJECT";
    case CL_INVALID_BUFFER_SIZE:
      return "CL_INVALID_BUFFER_SIZE";
    case CL_INVALID_KERNEL_NAME:
      return "CL_INVALID_KERNEL_NAME";
    case CL_INVALID_KERNEL_ARGS:
      return "CL_INVALID_KERNEL_ARGS";
    case CL_INVALID_ARG_INDEX:
      return "CL_INVALID_ARG_INDEX";
    case CL_INVALID_ARG_SIZE:
      return "CL_INVALID_ARG_SIZE";
    case CL_INVALID_WORK_GROUP_SIZE:
      return "CL_INVALID_WORK_GROUP_SIZE";
    case CL_INVALID_WORK_ITEM_SIZE:
      return "CL_INVALID_WORK_ITEM_SIZE";
    default:
      return "status";
  }
}

}  // namespace

const Runtime& runtime() {
  static const Runtime loaded = load();
  return loaded;
}

void check(cl_int status, const std::string& doing) {
  if (status == CL_SUCCESS) return;
  const bool memory = status == CL_MEM_OBJECT_ALLOCATION_FAILURE ||
                      status == CL_INVALID_BUFFER_SIZE || status == CL_OUT_OF_HOST_MEMORY;
  throw Error(memory ? ErrorCode::out_of_memory : ErrorCode::device,
              "OpenCL: " + doing + ": " + name_of(status) + " (" + std::to_string(status) + ")");
}

}  // namespace rung::opencl

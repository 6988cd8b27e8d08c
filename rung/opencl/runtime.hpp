// SPDX-License-Identifier: Apache-2.0
// OpenCL 1.2 functions, looked up in the ICD loader on first use. rung does not link to OpenCL: a
// machine without libOpenCL.so.1 lacks this backend only.
#pragma once

#ifndef CL_TARGET_OPENCL_VERSION
#define CL_TARGET_OPENCL_VERSION 120
#endif
#include <CL/cl.h>

#include <string>

namespace rung::opencl {

struct Runtime {
  decltype(&::clGetPlatformIDs) get_platform_ids;
  decltype(&::clGetPlatformInfo) get_platform_info;
  decltype(&::clGetDeviceIDs) get_device_ids;
  decltype(&::clGetDeviceInfo) get_device_info;
  decltype(&::clCreateContext) create_context;
  decltype(&::clCreateCommandQueue) create_command_queue;
  decltype(&::clReleaseCommandQueue) release_command_queue;
  decltype(&::clCreateBuffer) create_buffer;
  decltype(&::clReleaseMemObject) release_mem_object;
  decltype(&::clCreateProgramWithSource) create_program_with_source;
  decltype(&::clBuildProgram) build_program;
  decltype(&::clGetProgramBuildInfo) get_program_build_info;
  decltype(&::clReleaseProgram) release_program;
  decltype(&::clCreateKernel) create_kernel;
  decltype(&::clSetKernelArg) set_kernel_arg;
  decltype(&::clGetKernelWorkGroupInfo) get_kernel_work_group_info;
  decltype(&::clEnqueueNDRangeKernel) enqueue_nd_range_kernel;
  decltype(&::clEnqueueReadBuffer) enqueue_read_buffer;
  decltype(&::clEnqueueWriteBuffer) enqueue_write_buffer;
  decltype(&::clEnqueueCopyBuffer) enqueue_copy_buffer;
  decltype(&::clFinish) finish;

  std::string why_not;  // reason for missing functions; "" if all were found
};

/// Returns OpenCL's functions; loads the library on first use. RUNG_OPENCL_LIBRARY names the file
/// to load; otherwise an OpenCL library that the process already has (linked, or preloaded by a
/// tool such as Oclgrind) takes precedence over libOpenCL.so.1.
const Runtime& runtime();

/// Throws Error(out_of_memory) or Error(device) unless `status` is CL_SUCCESS; the message has
/// `doing`, the failed operation, and the name of the status.
void check(cl_int status, const std::string& doing);

}  // namespace rung::opencl

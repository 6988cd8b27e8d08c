// SPDX-License-Identifier: Apache-2.0
// The functions of OpenCL 1.2 that rung calls, looked up in the ICD loader when first needed. Not
// linked: a machine without libOpenCL.so.1 loses the backend and nothing else.
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

  std::string why_not;  // "": all of them are there
};

/// Loads the library on first use. A process that has OpenCL already (linked, or preloaded by a
/// tool such as Oclgrind) keeps its own; RUNG_OPENCL_LIBRARY names another file.
const Runtime& runtime();

/// Throws Error unless `status` is CL_SUCCESS: out_of_memory or device, with the name of the status
/// behind what was being done.
void check(cl_int status, const std::string& doing);

}  // namespace rung::opencl

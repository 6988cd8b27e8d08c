// SPDX-License-Identifier: Apache-2.0
// Validates the arrays of a library call before its kernel runs, so that a finding names the
// argument and the line of the program's call instead of a line in the library's kernel.
#include <dlfcn.h>
#include <fmt/format.h>

#include <string>

#include "rung/emulate/cublas/call.hpp"
#include "rung/simt/record.hpp"

namespace rung::cublas {
namespace {

namespace record = simt::record;

void report(const CublasCall& call, record::Kind kind, std::string message, const char* advice) {
  record::Finding finding;
  finding.kind = kind;
  finding.message = std::move(message);
  finding.advice = advice;
  const record::Source place = record::place_of(call.code);
  finding.file = place.file;
  finding.line = place.line;
  record::add(finding);
}

/// Returns the number of contiguous registered bytes from `begin` on, across adjacent mappings; 0
/// if `begin` is not registered. Stops after the mapping with which the number reaches `enough`.
long long bytes_from(const void* begin, long long enough) {
  const char* at = static_cast<const char*>(begin);
  const char* const end = at + enough;
  while (at < end) {
    const record::Memory memory = record::find_memory(at);
    const char* const last = static_cast<const char*>(memory.begin) + memory.bytes;
    if (memory.bytes == 0 || last <= at) break;
    at = last;
  }
  return at - static_cast<const char*>(begin);
}

bool accessible(const CublasCall& call, const Operand& one) {
  if (one.bytes <= 0) return true;
  const char* const does = one.writes ? "writes" : "reads";
  if (one.begin == nullptr) {
    report(call, record::Kind::out_of_bounds,
           fmt::format("{} {} {}, which is a null pointer", call.name, does, one.name),
           "allocate it with cudaMalloc");
    return false;
  }
  const long long there = bytes_from(one.begin, one.bytes);
  if (there >= one.bytes) return true;
  Dl_info object;
  if (there == 0 && dladdr(one.begin, &object) != 0) return true;  // a __device__ variable
  if (there == 0) {
    report(call, record::Kind::out_of_bounds,
           fmt::format("{} {} {} at {}, which is no live memory of the device", call.name, does,
                       one.name, one.begin),
           "pass memory that cudaMalloc gave and that is not freed; copy the host's to it first");
  } else {
    report(call, record::Kind::out_of_bounds,
           fmt::format("{} {} {} bytes of {}, whose allocation ends after {}", call.name, does,
                       one.bytes, one.name, there),
           "check sizes, leading dimensions and increments; matrices are column-major");
  }
  return false;
}

}  // namespace

bool accessible(const CublasCall& call, std::initializer_list<Operand> operands) {
  // Memory of a captured graph may not be allocated before the graph runs.
  cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
  if (call.stream != nullptr) cudaStreamIsCapturing(call.stream, &capture);
  if (capture != cudaStreamCaptureStatusNone) return true;
  bool all = true;
  for (const Operand& one : operands) all = accessible(call, one) && all;
  return all;
}

bool fits_pointer_mode(const CublasCall& call, const char* name, const void* scalar,
                       long long bytes) {
  if (call.device_scalars) return accessible(call, {Operand{name, scalar, bytes}});
  cudaPointerAttributes attributes{};
  const bool known = cudaPointerGetAttributes(&attributes, scalar) == cudaSuccess;
  if (!known || attributes.type != cudaMemoryTypeDevice) return true;
  report(call, record::Kind::launch,
         fmt::format("{}: {} is memory of the device, but the handle's pointer mode is that of "
                     "the host",
                     call.name, name),
         "call cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_DEVICE)");
  return false;
}

}  // namespace rung::cublas

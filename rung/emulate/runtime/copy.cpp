// SPDX-License-Identifier: Apache-2.0
// Copies and fills: performed within the call, in call order, unless a graph captures them.
#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "rung/emulate/runtime/devices.hpp"
#include "rung/emulate/runtime/memory.hpp"
#include "rung/emulate/runtime/short_grid.hpp"
#include "rung/emulate/runtime/stream.hpp"
#include "rung/emulate/runtime/stream_order.hpp"
#include "rung/simt/limits.hpp"
#include "rung/simt/record.hpp"

namespace rung::cuda {
namespace {

namespace record = simt::record;

/// Returns true for variables of the program and its libraries, including __device__ variables.
bool in_image(const void* address) {
  Dl_info info{};
  return dladdr(address, &info) != 0;
}

/// Returns true if a copy may access these bytes. `device`: the copy's kind declares the address to
/// be device memory.
bool fits(const void* address, std::size_t bytes, bool device, bool writes) {
  const Allocation found = find(address);
  const std::string side = writes ? "the destination" : "the source";
  if (found.begin == nullptr) {
    if (!device || in_image(address)) return true;
    const bool freed = find_freed(address).begin != nullptr;
    note_reason(side + (freed ? " was freed" : " is no memory of the device, as the call says"));
    return false;
  }
  if (holds(address, bytes, writes)) return true;
  const auto offset = static_cast<std::size_t>(static_cast<const char*>(address) - found.begin);
  note_reason(side + " has " + std::to_string(found.bytes - offset) + " bytes, not " +
              std::to_string(bytes));
  return false;
}

/// Returns true for host memory that the runtime has neither allocated nor registered.
bool is_pageable(const void* address) { return find(address).begin == nullptr; }

cudaError_t check(const void* to, const void* from, std::size_t to_bytes, std::size_t from_bytes,
                  cudaMemcpyKind kind) {
  if (kind < cudaMemcpyHostToHost || kind > cudaMemcpyDefault) {
    return cudaErrorInvalidMemcpyDirection;
  }
  note_reason("");
  if (to == nullptr || from == nullptr) return cudaErrorInvalidValue;
  const bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  const bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  const bool good =
      fits(to, to_bytes, to_device, true) && fits(from, from_bytes, from_device, false);
  if (good) return cudaSuccess;
  const auto is_device = [](const void* address) {
    return find(address).type == cudaMemoryTypeDevice;
  };
  const auto is_unknown = [&](const void* address) {
    return find(address).begin == nullptr && find_freed(address).begin == nullptr;
  };
  // The copy's kind states the wrong direction: the addresses fit the opposite one.
  const bool turned = kind == cudaMemcpyHostToDevice && is_device(from) && is_unknown(to);
  const bool straight = kind == cudaMemcpyDeviceToHost && is_device(to) && is_unknown(from);
  if (turned) note_reason("from the device to the host it is cudaMemcpyDeviceToHost");
  if (straight) note_reason("from the host to the device it is cudaMemcpyHostToDevice");
  return cudaErrorInvalidValue;
}

std::atomic<std::uint64_t> launches{0};

/// Reports a copy of memory that no kernel has written. If no kernel has run since the allocation,
/// the program may only be timing the copy, which is not reported.
void check_written(const void* to, const void* from, std::size_t bytes, const void* code) {
  const Allocation source = find(from);
  if (code == nullptr || source.type != cudaMemoryTypeDevice || !record::checking()) return;
  if (find(to).type == cudaMemoryTypeDevice || source.launches_before == launches) return;
  if (!record::never_written(from, bytes)) return check_grid(from, bytes);
  // Some writes by kernels are not recorded, but they overwrite the allocation's poison.
  const DeviceAccess access;
  const auto* first = static_cast<const unsigned char*>(from);
  const auto is_poison = [](unsigned char one) { return one == simt::poison; };
  if (std::all_of(first, first + bytes, is_poison)) report_unwritten_copy(source, bytes, code);
}

/// Records a copy of 1/2, 1/4, 1/8 or 1/16 of an array: its size may count elements of 2, 4, 8 or
/// 16 bytes instead of bytes.
void check_whole(const void* to, const void* from, std::size_t bytes, const void* code) {
  const Allocation source = find(from);
  if (code == nullptr || source.begin != from || source.type != cudaMemoryTypeDevice) return;
  if (find(to).type == cudaMemoryTypeDevice || !record::checking()) return;
  for (const std::size_t size : {2, 4, 8, 16}) {
    if (bytes * size == source.bytes) note_short_copy(source, bytes, code);
  }
}

void move(void* to, const void* from, std::size_t bytes) {
  const DeviceAccess access;
  work_reads(from, bytes);
  work_writes(to, bytes);
  std::memmove(to, from, bytes);
  record::copy_initialized(to, from, bytes);
}

}  // namespace

void count_launch() { ++launches; }
std::uint64_t launches_so_far() { return launches; }

cudaError_t copy_bytes(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                       const void* code) {
  if (bytes == 0) return cudaSuccess;
  if (const cudaError_t error = check(to, from, bytes, bytes, kind); error != cudaSuccess) {
    return error;
  }
  check_written(to, from, bytes, code);
  check_whole(to, from, bytes, code);
  work_copies(to, from, kind);
  move(to, from, bytes);
  advance_clock(copy_time(static_cast<double>(bytes), kind));
  return cudaSuccess;
}

cudaError_t copy_rows(const Rows& rows, cudaMemcpyKind kind) {
  if (rows.width == 0 || rows.height == 0 || rows.depth == 0) return cudaSuccess;
  if (rows.width > rows.to_pitch || rows.width > rows.from_pitch) return cudaErrorInvalidPitchValue;
  const auto extent = [&](std::size_t pitch, std::size_t slice) {
    return (rows.depth - 1) * slice + (rows.height - 1) * pitch + rows.width;
  };
  const cudaError_t error = check(rows.to, rows.from, extent(rows.to_pitch, rows.to_slice),
                                  extent(rows.from_pitch, rows.from_slice), kind);
  if (error != cudaSuccess) return error;
  work_copies(rows.to, rows.from, kind);
  const DeviceAccess access;
  for (std::size_t z = 0; z < rows.depth; ++z) {
    for (std::size_t y = 0; y < rows.height; ++y) {
      move(rows.to + z * rows.to_slice + y * rows.to_pitch,
           rows.from + z * rows.from_slice + y * rows.from_pitch, rows.width);
    }
  }
  advance_clock(copy_time(static_cast<double>(rows.width * rows.height * rows.depth), kind));
  return cudaSuccess;
}

cudaError_t fill_bytes(void* to, int value, std::size_t bytes) {
  if (bytes == 0) return cudaSuccess;
  if (to == nullptr || !fits(to, bytes, true, true)) return cudaErrorInvalidValue;
  work_writes(to, bytes);
  work_fills(to);
  {
    const DeviceAccess access;
    std::memset(to, value, bytes);
  }
  record::mark_initialized(to, bytes);
  advance_clock(2000 + static_cast<double>(bytes) / 3000);
  return cudaSuccess;
}

cudaError_t copy_symbol(void* symbol, std::size_t size, void* memory, std::size_t bytes,
                        std::size_t offset, bool to_symbol, cudaMemcpyKind kind,
                        cudaStream_t stream) {
  if (offset > size || bytes > size - offset) return remember(cudaErrorInvalidValue);
  void* there = static_cast<char*>(symbol) + offset;
  return submit(stream, cudaGraphNodeTypeMemcpy, [=] {
    return to_symbol ? copy_bytes(there, memory, bytes, kind)
                     : copy_bytes(memory, there, bytes, kind);
  });
}

}  // namespace rung::cuda

using namespace rung::cuda;  // NOLINT: implementation of the CUDA API

cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  return submit(synchronous(), cudaGraphNodeTypeMemcpy, [=, code = __builtin_return_address(0)] {
    return copy_bytes(to, from, bytes, kind, code);
  });
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  const auto copy = [=, code = __builtin_return_address(0)] {
    return copy_bytes(to, from, bytes, kind, code);
  };
  if (!is_busy(stream)) return submit(stream, cudaGraphNodeTypeMemcpy, copy);
  // Pageable memory is read or written before the call returns.
  if (is_pageable(from) && kind != cudaMemcpyDeviceToHost) {
    auto kept = std::make_shared<std::vector<char>>(static_cast<const char*>(from),
                                                    static_cast<const char*>(from) + bytes);
    return submit(stream, cudaGraphNodeTypeMemcpy,
                  [=] { return copy_bytes(to, kept->data(), bytes, kind); });
  }
  const cudaError_t error = submit(stream, cudaGraphNodeTypeMemcpy, copy);
  if (error != cudaSuccess || !is_pageable(to)) return error;
  return remember(await_stream(stream));
}
cudaError_t cudaMemcpyPeer(void* to, int to_device, const void* from, int from_device,
                           std::size_t bytes) {
  // The copy is ordered after all work of the two devices.
  for (const int device : {to_device, from_device}) host_waited_for_device(device);
  return cudaMemcpyPeerAsync(to, to_device, from, from_device, bytes, synchronous());
}
cudaError_t cudaMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device,
                                std::size_t bytes, cudaStream_t stream) {
  if (!is_device(to_device) || !is_device(from_device)) return remember(cudaErrorInvalidDevice);
  const auto lies_on = [](const void* memory, int device) {
    const Allocation found = find(memory);
    return found.type != cudaMemoryTypeDevice || found.device == device;
  };
  if (!lies_on(to, to_device) || !lies_on(from, from_device)) {
    return remember(cudaErrorInvalidValue);
  }
  return submit(stream, cudaGraphNodeTypeMemcpy,
                [=] { return copy_bytes(to, from, bytes, cudaMemcpyDefault); });
}
cudaError_t cudaMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from,
                              std::size_t from_pitch, std::size_t width, std::size_t height,
                              cudaMemcpyKind kind, cudaStream_t stream) {
  const Rows rows{static_cast<char*>(to),
                  static_cast<const char*>(from),
                  width,
                  height,
                  1,
                  to_pitch,
                  from_pitch,
                  0,
                  0};
  return submit(stream, cudaGraphNodeTypeMemcpy, [=] { return copy_rows(rows, kind); });
}
cudaError_t cudaMemcpy2D(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                         std::size_t width, std::size_t height, cudaMemcpyKind kind) {
  return cudaMemcpy2DAsync(to, to_pitch, from, from_pitch, width, height, kind, synchronous());
}
cudaError_t cudaMemset(void* to, int value, std::size_t bytes) {
  return cudaMemsetAsync(to, value, bytes, nullptr);
}
cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t stream) {
  return submit(stream, cudaGraphNodeTypeMemset, [=] { return fill_bytes(to, value, bytes); });
}
cudaError_t cudaMemset3D(cudaPitchedPtr to, int value, cudaExtent extent) {
  return submit(nullptr, cudaGraphNodeTypeMemset, [=] {
    cudaError_t error = cudaSuccess;
    for (std::size_t row = 0; row < extent.depth * extent.height; ++row) {
      const std::size_t line = row / extent.height * to.ysize + row % extent.height;
      char* begin = static_cast<char*>(to.ptr) + line * to.pitch;
      if (error == cudaSuccess) error = fill_bytes(begin, value, extent.width);
    }
    return error;
  });
}
cudaError_t cudaMemset2DAsync(void* to, std::size_t pitch, int value, std::size_t width,
                              std::size_t height, cudaStream_t stream) {
  return submit(stream, cudaGraphNodeTypeMemset, [=] {
    cudaError_t error = cudaSuccess;
    for (std::size_t row = 0; row < height && error == cudaSuccess; ++row) {
      error = fill_bytes(static_cast<char*>(to) + row * pitch, value, width);
    }
    return error;
  });
}
cudaError_t cudaMemset2D(void* to, std::size_t pitch, int value, std::size_t width,
                         std::size_t height) {
  return cudaMemset2DAsync(to, pitch, value, width, height, nullptr);
}

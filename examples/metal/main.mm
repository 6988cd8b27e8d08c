// SPDX-License-Identifier: Apache-2.0
// The host side of the two Metal kernels: compiles them when it runs, launches them and checks the
// results. On macOS:
//   clang++ -std=c++20 -fobjc-arc -framework Foundation -framework Metal main.mm -o metal
#import <Foundation/Foundation.h>
#import <Metal/Metal.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

struct Sizes {
  std::uint32_t m, n, k;
};

[[noreturn]] void fail(NSString* what) {
  std::fprintf(stderr, "metal: %s\n", what.UTF8String);
  std::exit(1);
}

/// The kernel `name` of name.metal, compiled for the device.
id<MTLComputePipelineState> compile(id<MTLDevice> device, NSString* name) {
  NSError* error = nil;
  NSString* path = [name stringByAppendingString:@".metal"];
  NSString* source = [NSString stringWithContentsOfFile:path
                                               encoding:NSUTF8StringEncoding
                                                  error:&error];
  if (source == nil) fail(error.localizedDescription);
  id<MTLLibrary> library = [device newLibraryWithSource:source options:nil error:&error];
  if (library == nil) fail(error.localizedDescription);
  id<MTLFunction> function = [library newFunctionWithName:name];
  if (function == nil) fail([@"no kernel " stringByAppendingString:name]);
  id<MTLComputePipelineState> kernel = [device newComputePipelineStateWithFunction:function
                                                                             error:&error];
  if (kernel == nil) fail(error.localizedDescription);
  return kernel;
}

id<MTLBuffer> buffer_of(id<MTLDevice> device, const std::vector<float>& values) {
  return [device newBufferWithBytes:values.data()
                             length:values.size() * sizeof(float)
                            options:MTLResourceStorageModeShared];
}

/// Runs kernel(x, y, out, parameters) and waits: what CUDA's <<<grid, block>>> and
/// cudaDeviceSynchronize are.
void run(id<MTLCommandQueue> queue, id<MTLComputePipelineState> kernel, id<MTLBuffer> x,
         id<MTLBuffer> y, id<MTLBuffer> out, const void* parameters, std::size_t bytes,
         MTLSize groups, MTLSize threads) {
  id<MTLCommandBuffer> commands = [queue commandBuffer];
  id<MTLComputeCommandEncoder> encoder = [commands computeCommandEncoder];
  [encoder setComputePipelineState:kernel];
  [encoder setBuffer:x offset:0 atIndex:0];
  [encoder setBuffer:y offset:0 atIndex:1];
  [encoder setBuffer:out offset:0 atIndex:2];
  [encoder setBytes:parameters length:bytes atIndex:3];
  [encoder dispatchThreadgroups:groups threadsPerThreadgroup:threads];
  [encoder endEncoding];
  [commands commit];
  [commands waitUntilCompleted];
  if (commands.error != nil) fail(commands.error.localizedDescription);
}

void add(id<MTLDevice> device, id<MTLCommandQueue> queue) {
  constexpr std::uint32_t n = 1000;
  std::vector<float> x(n), y(n);
  for (std::uint32_t i = 0; i < n; ++i) {
    x[i] = static_cast<float>(i);
    y[i] = static_cast<float>(2 * i);
  }
  id<MTLBuffer> z = buffer_of(device, std::vector<float>(n));
  run(queue, compile(device, @"vector_add"), buffer_of(device, x), buffer_of(device, y), z, &n,
      sizeof n, MTLSizeMake((n + 255) / 256, 1, 1), MTLSizeMake(256, 1, 1));
  const auto* result = static_cast<const float*>(z.contents);
  for (std::uint32_t i = 0; i < n; ++i) {
    if (result[i] != x[i] + y[i]) fail(@"vector_add is wrong");
  }
}

void multiply(id<MTLDevice> device, id<MTLCommandQueue> queue) {
  constexpr Sizes size{.m = 37, .n = 50, .k = 41};
  constexpr std::uint32_t tile = 16;
  std::vector<float> a(size.m * size.k), b(size.k * size.n);
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i % 7);
  for (std::size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>(i % 5);
  id<MTLBuffer> c = buffer_of(device, std::vector<float>(size.m * size.n));
  run(queue, compile(device, @"gemm_shared_tile"), buffer_of(device, a), buffer_of(device, b), c,
      &size, sizeof size,
      MTLSizeMake((size.n + tile - 1) / tile, (size.m + tile - 1) / tile, 1),
      MTLSizeMake(tile, tile, 1));
  const auto* result = static_cast<const float*>(c.contents);
  for (std::uint32_t row = 0; row < size.m; ++row) {
    for (std::uint32_t column = 0; column < size.n; ++column) {
      float sum = 0;
      for (std::uint32_t i = 0; i < size.k; ++i) {
        sum += a[row * size.k + i] * b[i * size.n + column];
      }
      // Whole numbers below 2^24: exact in any order.
      if (result[row * size.n + column] != sum) fail(@"gemm_shared_tile is wrong");
    }
  }
}

}  // namespace

int main() {
  @autoreleasepool {
    id<MTLDevice> device = MTLCreateSystemDefaultDevice();
    if (device == nil) fail(@"no Metal device");
    id<MTLCommandQueue> queue = [device newCommandQueue];
    add(device, queue);
    multiply(device, queue);
    std::printf("vector_add and gemm_shared_tile are right on %s\n", device.name.UTF8String);
  }
}

// SPDX-License-Identifier: Apache-2.0
// Layers on which conv_backward_data and conv_backward_filter are checked and timed.
#pragma once

#include <string_view>
#include <vector>

#include "rung/core/context.hpp"
#include "rung/harness/problem.hpp"

namespace rung::conv_gradient {

inline std::vector<Problem> check_problems(Backend backend) {
  std::vector<Problem> problems = Problem::parse_all({
      "f32 0x3x4x4",                                       // no images
      "f32 2x3x4x4,out=0",                                 // no filters
      "f32 2x0x4x4,out=3",                                 // no channels
      "f32 1x1x1x1,k=1",                                   // one element
      "f32 1x1x2x3,k=3,p=4",                               // windows entirely in the padding
      "f32 1x1x5x5,k=7,p=1",                               // a filter larger than the image
      "f32 2x3x8x8,out=5,k=3,p=1",                         // few channels
      "f32 1x4x9x7,out=6,k=3,s=2,p=1",                     // positions that no filter reads
      "f32 2x17x7x11,out=19,k=3,p=1",                      // no extent is a multiple of a tile
      "f32 2x17x7x11,out=35,k=3,p=1,nhwc",                 //
      "f32 1x3x65x65,out=70,k=1",                          // more pixels than a few tiles have
      "f32 1x30x5x5,out=20,k=3,p=1",                       // more terms than a table holds
      "f32 1x20x9x10,out=70,k=1",                          // a matrix product
      "f32 2x20x5x9,out=70,k=1,nhwc",                      //
      "f32 1x24x9x9,out=8,k=1,s=2",                        //
      "f32 1x2x13x17,out=3,k=3,d=2,p=2",                   // dilated
      "f32 1x2x10x12,out=4,k=2x5,s=2x3,p=1x0,d=3x1",       // axes with different windows
      "f32 1x3x9x9,out=4,k=2,s=4",                         // strides beyond the filter
      "f32 1x2x40x31,out=5,k=9,s=9,p=1",                   // 81 phases
      "bf16 1x8x9x17,out=16,k=3x4,s=3x4,d=2x1,nhwc",       // phases with disjoint taps
      "bf16 2x24x9x10,out=16,k=1,s=2,nhwc",                // phases without taps
      "f16 2x12x9x11,out=16,k=3,s=2,p=1,nhwc",             // channels not a multiple of 8
      "f32 3x1x20x21,out=6,k=5",                           // one channel
      "f32 1x3x16x15,out=33,k=5,s=2,p=2,nhwc",             //
      "f32 1x1x5x70,out=9,k=3,s=2,p=1",                    // first layers: 1 to 4 channels
      "f32 2x2x9x13,out=17,k=3,s=2",                       //
      "f32 1x3x17x66,out=8,k=7,s=2,p=3",                   //
      "f32 1x4x11x260,out=3,k=3,p=1",                      // strips of columns
      "f32 1x3x6x9,out=5,k=2,s=1x2,p=5",                   // padding wider than the filter
      "f32 1x3x7x8,out=9,k=1x11,s=3x1,p=0x5",              // windows of taps
      "f32 1x2x6x40,out=6,k=4x13,s=2,p=1x6,nhwc",          //
      "f32 1x3x40x10,out=16,k=5,p=2,nhwc",                 //
      "f16 1x3x12x20,out=16,k=3,s=2,p=1,nhwc",             //
      "bf16 2x3x16x24,out=12,k=7,s=2,p=3",                 //
      "bf16 1x4x9x11,out=24,k=5x4,s=2,p=2,nhwc",           //
      "bf16 1x3x13x151,out=33,k=3,s=2",                    // rows of odd lengths
      "f16 1x3x9x150,out=70,k=7,s=2,p=3,nhwc",             //
      "bf16 1x4x6x262,out=8,k=7,p=3",                      // strips of columns
      "f16 140x1x6x5,out=2,k=2",                           // more bands of rows than blocks
      "f32 140x2x5x6,out=9,k=3,s=1x2,p=1",                 //
      "f32 2x6x7x9,k=3,p=1,g=6",                           // depthwise
      "f32 1x37x6x7,k=3,s=2,p=1,g=37,nhwc",                //
      "f32 3x3x25x10,k=5,p=2,g=3",                         //
      "f16 2x40x9x7,k=3,s=2,p=1,g=40,nhwc",                //
      "f32 3x5x37x11,k=7,p=3,g=5",                         // filters of 7 x 7
      "bf16 2x20x13x11,k=7,p=3,g=20,nhwc",                 // words of channels
      "f16 1x70x9x6,k=5,p=2,g=70,nhwc",                    // more words than a block has
      "f16 2x3x11x10,k=5,p=9,g=3",                         // rows entirely in the padding
      "bf16 2x8x5x5,k=7,p=3,g=8,nhwc",                     // images smaller than the filter
      "f16 2x40x17x9,k=7,s=2,p=3,g=40,nhwc",               //
      "f16 1x24x9x70,k=7,p=4,g=24",                        //
      "f32 2x6x15x13,k=7,d=2,p=6,g=6",                     // dilated
      "f16 2x33x70x5,k=5,s=2,p=1,g=33,nhwc",               // runs of several pieces of a column
      "f16 2x8x19x21,k=3,p=1,d=2,g=8,nhwc",                //
      "f32 1x4x9x11,k=1,s=2,g=4",                          // depthwise, phases without taps
      "f32 1x5x8x8,out=10,k=5,p=2,g=5",                    // two filters per channel
      "f32 1x12x6x8,out=20,k=3,p=1,g=4",                   // groups
      "f32 1x12x6x8,out=8,k=3,p=1,g=2,nhwc",               //
      "f32 2x3x50,out=4,k=5,p=2",                          // one dimension
      "f32 1x2x4x5x6,out=3,k=3,p=1",                       // three dimensions
      "f32 1x3x4x6x5,out=7,k=2x3x1,s=1x2x1,p=1x0x2,nhwc",  //
      "f64 1x3x6x7,out=5,k=3,p=1",                         // every type
      "f64 1x9x5x6,out=10,k=3,nhwc",                       //
      "f16 1x16x6x9,out=24,k=3,p=1,nhwc",                  //
      "f16 2x5x7x7,out=6,k=3,s=2,p=1",                     //
      "bf16 1x32x5x7,out=16,k=3,p=1,nhwc",                 //
      "f16 1x48x9x9,out=144,k=3,s=2,p=1,nhwc,g=2",         // channels and filters in multiples of 8
      "bf16 2x24x8x17,out=40,k=3x2,d=2x1,p=2x0,nhwc",      //
      "bf16 1x8x3x4,out=256,k=3,p=1,nhwc",                 // more filter chunks than a table holds
      "f16 1x72x15x16,out=16,k=1,nhwc",                    // more pixels than a tile
      "f16 3x8x15x16,out=72,k=1,nhwc",                     //
      "bf16 1x6x7x8,out=9,k=3,p=1",                        //
  });
  if (backend == Backend::simt) return problems;
  // Layers with more terms than a chunk, and with work for several threads.
  const std::vector<Problem> larger = Problem::parse_all({
      "f32 2x64x28x28,out=64,k=3,p=1", "f32 1x150x14x14,out=70,k=3,p=1",
      "f32 3x12x4x12,out=72,k=5x1,s=3x1,p=3x1,g=2",  // a phase of one row, by two taps
      "f32 2x64x20x21,out=96,k=3,s=2,p=1,nhwc", "f32 16x6x14x14,out=16,k=5",
      "f32 1x64x30x30,k=3,p=1,g=64", "bf16 1x64x15x16,out=40,k=3,s=2,p=1",
      "f64 1x40x17x18,out=30,k=3,p=1",
      "f32 2x9x11x70,out=7,k=1",                // no padding: rows of the image itself
      "f32 3x12x5x17,out=34,k=3,p=1,nhwc",      // a vector of channels, rows of odd lengths
      "f32 1x150x7x33,out=70,k=3,p=1,nhwc",     // blocks of channels, and of terms
      "f32 1x13x20x37,out=9,k=3,d=2,p=2,nhwc",  // dilated taps
      "f64 2x21x3x6x19,out=5,k=3,p=1,nhwc",     // depth taps, some in the padding
      "f32 2x9x1100,out=5,k=5,p=2,nhwc",        // rows of several bands
      "f32 2x40x9x37,k=5,p=2,g=40,nhwc",        // 2.5 vectors of channels
      "f32 3x11x9x14,out=6,k=1,s=3",            // phases without taps
  });
  problems.insert(problems.end(), larger.begin(), larger.end());
  return problems;
}

inline std::vector<Problem> bench_problems(Backend backend) {
  switch (backend) {
    case Backend::cpu:
    case Backend::opencl:
      return Problem::parse_all(
          {"f32 4x64x56x56,out=64,k=3,p=1", "f32 4x64x56x56,out=64,k=3,p=1,nhwc",
           "f32 4x256x14x14,out=256,k=3,p=1", "f32 64x1x28x28,out=6,k=5,p=2"});
    case Backend::cuda:
      return Problem::parse_all({"f32 32x64x224x224,out=64,k=3,p=1",
                                 "f32 32x128x28x28,out=128,k=3,p=1",
                                 "bf16 32x128x28x28,out=128,k=3,p=1,nhwc",
                                 "f32 32x256x56x56,out=64,k=1", "f32 256x1x28x28,out=6,k=5,p=2"});
    case Backend::simt:
      return Problem::parse_all({"f32 1x16x14x14,out=16,k=3,p=1", "f32 2x1x20x20,out=6,k=5"});
  }
  return {};
}

}  // namespace rung::conv_gradient
